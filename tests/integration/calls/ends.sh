#!/usr/bin/env bash
# Two traces of the ends of the same functions: the program lives and computes what it would
# untraced, and each trace counts what the program itself has counted (ends_target.cc), whatever
# becomes of the calls and whichever trace ends first.
. "$(dirname "$0")/../lib.sh"
here=$(cd "$(dirname "$0")" && pwd)
bin=$(dirname "$FAY")
make_probe() { # NAME PATTERN
	sed "s/PROGRAM!traced_\*/$2/" "$here/calls.c" >"$work/$1.c"
	"$FAY" cc "$work/$1.c" -o "$work/$1.fay" || fail "the probe $1 does not compile"
}
make_probe ends_target 'ends_target!traced_*'
make_probe calls_target 'calls_target!traced_*'
make_probe caller 'ends_target!traced_to_*'
make_probe called 'ends_target!traced_wait'

# watch NAME PROBE: a trace of $target; its pid in tracers[NAME]
declare -A tracers
watch() {
	rm -f "$work/$1.err"
	"$FAY" trace --json ${FAY_TRACE_OPTIONS:-} -p "$target" --probe "$work/$2.fay" \
		>"$work/$1.json" 2>"$work/$1.err" &
	tracers[$1]=$!
	own $!
	wait_for "$work/$1.err" "fay: tracing"
}
watched() { # NAME: the trace has ended
	local code=0
	ended "${tracers[$1]}" || code=$?
	[ "$code" = 0 ] || { cat "$work/$1.err" >&2; fail "trace $1 exited with $code"; }
}
unwatch() { # NAME
	kill -INT "${tracers[$1]}"
	watched "$1"
}
value() {
	jq -s --arg c "$2" \
		'[.[] | select(.type == "row" and .final) | .values[$c] // empty | numbers] |
			add // 0' \
		"$work/$1.json"
}
ending() { jq -s "map(select(.type == \"end\"))[0].$2" "$work/$1.json"; }
counted() { echo "$(value "$1" entries) $(value "$1" returns) $(value "$1" exceptions)"; }
go_on() { echo >&9; }
finished() { # WHAT: the program has ended well; its tally into e, r, x
	local code=0
	exec 9>&-
	ended "$target" || code=$?
	[ "$code" = 0 ] || {
		cat "$work/target.out" >&2
		fail "$1: the program's exit code is $code"
	}
	read -r e r x < <(tail -1 "$work/target.out")
}
names="one two"
begin() { # PROGRAM ARGUMENTS...
	start_target ready "$bin/$@"
	for name in $names; do watch $name "$1"; done
}
# whole PROGRAM ARGUMENTS...: from begin to end under all traces
whole() {
	begin "$@"
	go_on
	finished "$*"
	for name in $names; do watched $name; done
}
exact() {
	whole "$@"
	for name in $names; do
		equal "$*, $name: entries, returns, exceptions" "$e $r $x" "$(counted $name)"
		equal "$*, $name: lost" 0 "$(ending $name events_lost)"
	done
}
# Calls that longjmp has left are noticed when their place on the stack is used again: all but the
# last ones.
noticed() {
	whole "$@"
	for name in $names; do
		equal "$*, $name: entries, returns" "$e $r" \
			"$(value $name entries) $(value $name returns)"
		[ $((x - $(value $name exceptions))) -ge 0 ] &&
			[ $((x - $(value $name exceptions))) -le 2 ] ||
			fail "$*, $name: $(value $name exceptions) exceptions of $x"
	done
}
gone() { # WHAT
	equal "$1: text" "$before" "$(text_hash "$target")"
	equal "$1: mappings left" 0 "$(grep -c fay-code "/proc/$target/maps" || true)"
}

# Calls that both watch are under way, one of them by a tail call, and end after one trace or both
# have ended: by returning, by an exception.
for scenario in blocked blocked_throw; do
	for order in "one two" "two one"; do
		read -r first last <<<"$order"
		begin ends_target $scenario
		go_on
		wait_for "$work/target.out" inside
		unwatch "$first"
		unwatch "$last"
		gone "$scenario, $first first"
		go_on
		finished "$scenario, $first first"
		equal "$scenario, $first first: entries" "3 3" \
			"$(value one entries) $(value two entries)"

		begin ends_target $scenario
		go_on
		wait_for "$work/target.out" inside
		unwatch "$first"
		go_on
		finished "$scenario, $first alone"
		watched "$last"
		equal "$scenario, $last goes on: entries, returns, exceptions" "$e $r $x" \
			"$(counted "$last")"
		equal "$scenario, $last: lost" 0 "$(ending "$last" events_lost)"
	done
done

# One trace has the function that ends in a tail call, the other the one that is called so. The
# first of the two ends while both are under way.
for scenario in blocked blocked_throw; do
	for order in "caller called caller" "caller called called" "called caller caller" \
		"called caller called"; do
		read -r first second last <<<"$order"
		start_target ready "$bin/ends_target" $scenario
		watch "$first" "$first"
		watch "$second" "$second"
		go_on
		wait_for "$work/target.out" inside
		[ "$last" = "$first" ] || unwatch "$first"
		[ "$last" = "$second" ] || unwatch "$second"
		go_on
		finished "$scenario, $order stays"
		watched "$last"
		equal "$scenario, $order stays: entries, returns, exceptions" \
			"1 $((r / 3)) $((x / 3))" "$(counted "$last")"
		equal "$scenario, $order stays: lost" 0 "$(ending "$last" events_lost)"
	done
done

for scenario in thrown jumped tails; do exact ends_target $scenario; done

whole ends_target deep
for name in $names; do
	equal "deep, $name: entries" "$e" "$(value $name entries)"
	equal "deep, $name: returns and lost ones" "$r" \
		$(($(value $name returns) + $(ending $name lost_calls)))
done

# Longer chains of tail calls than there is room for: those in between have their events where they
# jump. And longjmp out of one: noticed when their place on the stack is used again.
whole ends_target chain
for name in $names; do
	equal "chain, $name: entries" "$e" "$(value $name entries)"
	equal "chain, $name: exceptions and jumps" "$x" \
		$(($(value $name exceptions) + $(ending $name "calls_left_by_jump // 0")))
	equal "chain, $name: events at jumps" "$(value $name returns)" \
		"$(ending $name "calls_left_by_jump // 0")"
	equal "chain, $name: lost" 0 "$(ending $name events_lost)"
done
noticed ends_target leaps

noticed calls_target jumps 30 wait
for scenario in values recursion tail exceptions mirror coroutines migration thread_exit forks \
	threads; do
	exact calls_target $scenario 30 wait
done

# A second session comes and goes while several threads call, or throw, without a pause. A call, or
# an exception on its way, may keep one of those that throw mapped: that harms nobody.
names="one"
for scenario in calling throwing; do
	begin ends_target $scenario
	go_on
	wait_for "$work/target.out" inside
	code=0
	"$bin/storm" "$target" 20 "$work/ends_target.fay" >"$work/storm.out" 2>&1 || code=$?
	grep -q ": 20 attached" "$work/storm.out" || {
		cat "$work/storm.out" >&2
		fail "$scenario: the second session"
	}
	[ $scenario = throwing ] ||
		equal "$scenario: storm's exit code ($(cat "$work/storm.out"))" 0 "$code"
	go_on
	finished "$scenario"
	watched one
	equal "$scenario: entries, returns, exceptions" "$e $r $x" "$(counted one)"
	equal "$scenario: lost" 0 "$(ending one events_lost)"
done

# Of three traces one ends while a child of the program is within calls that began before the fork.
names="one two three"
for gone in $names; do
	begin ends_target forked
	go_on
	wait_for "$work/target.out" inside
	unwatch "$gone"
	go_on
	finished "forked, $gone has gone"
	for name in $names; do
		[ "$name" = "$gone" ] && continue
		watched "$name"
		equal "forked, $gone has gone, $name: entries, returns, exceptions" "$e $r $x" \
			"$(counted "$name")"
	done
done

for scenario in thrown jumped tails; do exact ends_target $scenario; done
exact calls_target exceptions 30 wait
