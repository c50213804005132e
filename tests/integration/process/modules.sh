#!/usr/bin/env bash
# Modules that a program loads and unloads while it is traced: no call of theirs is missed, and
# nothing of them stays behind.
. "$(dirname "$0")/../lib.sh"
bin=$(dirname "$FAY")
program=$bin/modules_target
one=$bin/modules_plugin.so
two=$bin/modules_plugin_two.so
all='cluster.Function("modules_*!*_work").Count()'
plugins='cluster.Function("modules_plugin*!*_work").Count()'
# Each module calls its function 3 times when it is loaded and twice when it is unloaded.
cycles() { echo $(($1 * ($2 + 5))); }
late() { jq -s 'map(select(.type == "end"))[0].modules_late' "$work/${1:-trace}.json"; }
nothing_left() {
	if grep -q fay- "/proc/$1/maps"; then
		grep fay- "/proc/$1/maps" >&2
		fail "process $1 still has memory of fay's"
	fi
}
# counts WHAT EXPECTED OPTION... -- COMMAND...: the final count of a command that is traced from its
# start. Where a fay got no processor for seconds, and says so, once more.
counts() {
	local what=$1 want=$2 code=0
	shift 2
	for _ in 1 2 3; do
		"$FAY" trace --json "$@" >"$work/trace.json" 2>"$work/trace.err" </dev/null ||
			code=$?
		[ "$code" = 0 ] || {
			cat "$work/trace.err" >&2
			fail "$what: fay exited with $code"
		}
		[ "$(late)" != 0 ] || break
	done
	equal "$what" "$want" "$(final_sum Count)"
	equal "$what: events lost" 0 \
		"$(jq -s 'map(select(.type == "end"))[0].events_lost' "$work/trace.json")"
	equal "$what: times it did not wait" 0 "$(late)"
}

counts "100 times loaded, called 1,000 times at once, unloaded" "$(cycles 100 1000)" "$all" \
	-- "$program" cycle "$one" 100 1000
counts "one after the other at one place" $((10 * $(cycles 1 10))) "$all" -- "$program" \
	$(for _ in 1 2 3 4 5; do echo "cycle $one 1 10 cycle $two 1 10"; done)
counts "nothing there at first, with --wait" "$(cycles 20 100)" --wait "$plugins" -- "$program" \
	cycle "$one" 20 100
counts "with --follow" $((7 + $(cycles 5 100))) --follow "$all" -- sh \
	-c "'$program' calls 7; exec '$program' cycle '$one' 5 100"
counts "with --follow, while threads are born" "$(cycles 30 100)" --follow --wait "$plugins" \
	-- "$program" births cycle "$one" 30 100
counts "namespaces of their own" "$(cycles 10 100)" "$all" -- "$program" spaces "$one" 10 100
for i in 0 1 2 3; do cp "$one" "$work/modules_plugin.so.$i"; done
counts "four threads at once" $((4 * $(cycles 5 100))) "$plugins" --wait -- "$program" threads \
	"$work/modules_plugin.so" 5 100
counts "the returns" "$(cycles 20 100)" 'cluster.Return("modules_*!*_work").Count()' -- "$program" \
	calls 0 cycle "$one" 20 100
for i in 4 5 6 7 8; do cp "$one" "$work/modules_plugin.so.$i"; done
counts "the returns in the program and nine modules" 46 \
	'cluster.Return("modules_*!*_work").Count()' -- "$program" calls 1 \
	$(for i in 0 1 2 3 4 5 6 7 8; do echo "keep $work/modules_plugin.so.$i"; done)
counts "interrupted by signals" "$(cycles 20 100)" --wait "$plugins" -- "$program" signals cycle \
	"$one" 20 100 quiet
counts "a module that is not there" 9 "$all" -- "$program" missing /no/such/module.so calls 9
counts "a child's modules are its own" 4 "$all" -- "$program" calls 4 fork "$one" 3 100

# at_most EXPECTED CASE: a program from its begin to its end; once more where a fay got no processor
# for seconds, so that the program went on without it more often, as counts() does.
at_most() {
	for _ in 1 2 3; do
		$2
		echo "$2: the program did not wait: $times times"
		[ "$times" -gt "$1" ] || break
	done
}

# Two traces of one process, each with its own hook.
linker=$(readlink -f /lib64/ld-linux-x86-64.so.2)
two_traces() {
	start_target waiting "$program" wait cycle "$one" 10 100 wait
	clean=$(text_hash "$target" "$linker")
	"$FAY" trace --json -p "$target" "$all" >"$work/other.json" 2>"$work/other.err" &
	other=$!
	own "$other"
	wait_for "$work/other.err" "fay: tracing"
	trace -p "$target" "$all"
	echo >&9
	wait_for "$work/target.out" waiting 2
	end_trace
	kill -INT "$other"
	ended "$other" || fail "the other trace failed"
	nothing_left "$target"
	equal "the dynamic linker's code, restored" "$clean" "$(text_hash "$target" "$linker")"
	end_target
	times=$(($(late) + $(late other)))
}
at_most 0 two_traces
equal "one of two traces at once" "$(cycles 10 100)" "$(final_sum Count)"
equal "the other one" "$(cycles 10 100)" \
	"$(jq -s '[.[] | select(.type == "row" and .final) | .values.Count] |
		add // 0' "$work/other.json")"

# A fay that does not come: the program goes on after a while, does not wait again, and waits again
# once fay has come: two pictures later it has.
not_there() {
	start_target waiting "$program" wait cycle "$two" 10 1 wait cycle "$one" 10 100 wait
	trace --every 100ms -p "$target" "$all"
	kill -STOP "$tracer"
	echo >&9
	wait_for "$work/target.out" waiting 2
	lines=$(wc -l <"$work/trace.json")
	kill -CONT "$tracer"
	wait_for "$work/trace.json" '"row"' $((lines + 3))
	echo >&9
	wait_for "$work/target.out" waiting 3
	end_trace
	nothing_left "$target"
	end_target
	times=$(late)
}
at_most 1 not_there
equal "times the program did not wait for a fay that stood still" 1 "$times"
equal "calls since it came" "$(cycles 10 100)" "$(final_sum Count)"

# Where a module was there is another when the trace ends.
another() {
	start_target waiting "$program" wait cycle "$one" 1 10 keep "$two" wait
	trace -p "$target" "$all"
	echo >&9
	wait_for "$work/target.out" waiting 2
	end_trace
	nothing_left "$target"
	end_target
	times=$(late)
}
at_most 0 another
equal "both modules' calls" $(($(cycles 1 10) + 3)) "$(final_sum Count)"

# One that is killed while the program waits for it.
start_target waiting "$program" wait cycle "$one" 3 10 wait calls 5 wait
trace -p "$target" "$all"
kill -STOP "$tracer"
echo >&9
rest 3
kill -KILL "$tracer"
ended "$tracer" 2>/dev/null || true
wait_for "$work/target.out" waiting 2
echo "ok: the program goes on"
[ "$(text_hash "$target" "$linker")" != "$clean" ] || fail "the dynamic linker is not hooked"
exits "doctor --clean" 0 "$FAY" doctor --clean
equal "the dynamic linker's code behind doctor --clean" "$clean" "$(text_hash "$target" "$linker")"
nothing_left "$target"
trace -p "$target" "$all"
echo >&9
wait_for "$work/target.out" waiting 3
end_trace
equal "calls traced again" 5 "$(final_sum Count)"
end_target

# A program without a dynamic linker says so.
exits "a static program" 0 "$FAY" trace --verbose --for 1s \
	'cluster.Function("awkward_static_target!main").Count()' -- "$bin/awkward_static_target" \
	</dev/null
contains "is looked at instead" "$work/err" "does not wait when it loads modules"
