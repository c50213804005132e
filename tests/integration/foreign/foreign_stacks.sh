#!/usr/bin/env bash
# Stacks other than a thread's own: coroutines of all kinds, clone, fork, handlers, split stacks;
# threads that are cancelled; what reads stacks: backtrace(), a collector, sanitizers, debuggers,
# profilers.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/foreign_lib.sh"
flags="-O2 -falign-functions=64 -fno-optimize-sibling-calls -pthread -I$here"
all="contexts clones forks vforks cancelled walks deep"
stacks() { # NAME SCENARIOS COMPILER OPTIONS...
	local name=$1 scenarios=$2 scenario more
	shift 2
	compiled "$name" "$@" $flags -o "$name" "$here/stacks.cc"
	for scenario in $scenarios; do
		# A thread that is cancelled goes on by a longjmp at last.
		more=${slack:-0}
		[ "$scenario" != cancelled ] || more=10
		program "$name $scenario" "$name" 'traced_*' "$more" "$work/$name" "$scenario"
	done
}
coroutines() { # NAME SCENARIOS OPTIONS...
	local name=$1 scenarios=$2 scenario
	shift 2
	compiled "$name" g++ $flags -o "$name" "$here/coroutines.cc" "$@"
	for scenario in $scenarios; do
		program "$name $scenario" "$name" 'traced_*' 0 "$work/$name" "$scenario"
	done
}
if has C++ g++ g++; then
	stacks dynamic "$all" g++
	stacks static "$(long_or "contexts clones forks vforks walks deep" "clones vforks deep")" \
		g++ -static
	stacks static_pie "contexts deep" g++ -fPIE -static-pie
	stacks cet "$(long_or "$all" "contexts cancelled")" g++ -fcf-protection=full
	# No exceptions are asked for: whose stack is left is in the tally only.
	untimed=1 slack=1000000000 stacks split "contexts deep" g++ -fsplit-stack
	if [[ "split deep" == $only ]]; then
		exits "durations with split stacks" 1 "$FAY" trace \
			'cluster.Return("split!traced_*").Max(r => r.Duration)' \
			-- "$work/split" deep </dev/null
		contains "the reason" "$work/err" \
			"is a -fsplit-stack function, whose stack is small and moves"
	fi
	stacks asan "$(long_or "forks cancelled walks deep" "cancelled walks")" \
		g++ -fsanitize=address
	stacks ubsan "$(long_or "$all" "contexts deep")" g++ -fsanitize=undefined
	stacks tsan "$(long_or "forks walks deep" "forks deep")" g++ -fsanitize=thread
	coroutines cxx20 generators -std=c++20
	boost=/usr/include/boost
	if [ -e $boost/fiber/all.hpp ] && [ -e $boost/coroutine2/all.hpp ]; then
		coroutines boost "coroutines continuations fibers" -std=c++17 -DBOOST \
			-lboost_fiber -lboost_context
	else
		lacks Boost "libboost-coroutine-dev libboost-context-dev libboost-fiber-dev"
	fi
	if [ -e /usr/include/gc/gc.h ]; then
		compiled "a collector" gcc $flags -o collected "$here/collected.c" -lgc
		# It stops threads by a signal, now and then in a probe.
		program "a collector" collected 'traced_*' untraced_handlers "$work/collected" trees
	else
		lacks "a collector" libgc-dev
	fi
fi
all_done
