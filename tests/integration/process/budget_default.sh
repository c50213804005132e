#!/usr/bin/env bash
# Without --budget: what a trace will take is estimated before it attaches. Above the limit it asks on
# a terminal, and goes on with a budget elsewhere; where nothing can be measured yet the budget is in
# force; below the limit nothing changes.
. "$(dirname "$0")/../lib.sh"
unset FAY_BUDGET
command -v script >/dev/null || skip "script (bsdutils) is not installed"
hot='cluster.Function("budget_target!hot").Count()'
of() { jq -s "map(select(.type == \"$1\"))[0].$2" "$work/trace.json"; }
start() { # ARGUMENT...: a program that is busy
	start_target ready "$BUDGET_TARGET"
	echo >&9
	rest 2
}
finish() { # OUTPUT-TEXT: the program's output is right, and its code as it was
	echo >&9
	wait_for "$work/target.out" "hot "
	equal "the program's text" "$before" "$(text_hash "$target")"
	echo >&9
	end_target
}

start
trace -p "$target" "$hot" </dev/null
wait_for "$work/trace.err" "left out from now on: budget_target!hot"
end_trace
contains "a busy function: the budget is said" "$work/trace.err" \
	"--budget 5% is in force"
contains "with the function" "$work/trace.err" "most of them of budget_target!hot (100%)"
equal "in force" 0.05 "$(of budget share)"
[ "$(of estimate 'share > 0.05')" = true ] || fail "the estimate is $(of estimate share)"
equal "functions that were counted" 1 "$(of estimate functions)"

trace -p "$target" 'cluster.Function("budget_target!rare").Count()' </dev/null
end_trace
[ "$(of estimate 'share < 0.05')" = true ] || fail "the estimate is $(of estimate share)"
equal "a rare function: no budget" null "$(of budget share)"
equal "and not a word of one" 0 "$(grep -c budget "$work/trace.err" || true)"

trace -p "$target" --budget none "$hot" </dev/null
end_trace
equal "none is asked for" null "$(of budget share)"
equal "nor estimated" null "$(of estimate share)"
FAY_BUDGET=none trace -p "$target" "$hot" </dev/null
end_trace
equal "likewise in the environment" null "$(of budget share)"
FAY_BUDGET=3% trace -p "$target" --for 300ms "$hot" </dev/null
ended "$tracer" || fail "fay trace exits with $?"
equal "another one there" 0.03 "$(of budget share)"
exits "none of them" 2 env FAY_BUDGET=much "$FAY" trace -p "$target" "$hot"

# another one that ends while calls are counted
"$BUDGET_TARGET" < <(echo && exec sleep 60) >/dev/null &
other=$!
rest 2
(
	until grep -q memfd:fay- "/proc/$other/maps"; do :; done
	sleep 0.05
	kill -9 "$other"
) 2>/dev/null &
trace -p "$target" -p "$other" "$hot" </dev/null
wait_for "$work/trace.err" "left out from now on: budget_target!hot"
end_trace
equal "another one ends meanwhile: in force" 0.05 "$(of budget share)"

# answers WHAT ANSWER CODE: once the question is on the terminal
answers() {
	local code=0
	: >"$work/terminal"
	{
		tries grep -qF "trace all the same? [y/N]" "$work/terminal"
		printf '%s\n' "$2"
	} | script -qec "'$FAY' trace -p $target --for 300ms --json -o '$work/trace.json' \
		'$hot'" /dev/null >>"$work/terminal" || code=$?
	equal "$1 exits with" "$3" "$code"
	contains "$1: the question" "$work/terminal" "trace all the same? [y/N]"
}
answers "no, on a terminal," n 1
contains "is said" "$work/terminal" "not traced"
answers "nothing, on a terminal," "" 1
answers "yes, on a terminal," y 0
equal "yes: no budget" null "$(of budget share)"
equal "yes: nothing is left out" null "$(of left_out events)"
finish

# An idle program, a command, programs that come: measured as it goes, and exact while it is cheap.
start_target ready "$BUDGET_TARGET"
trace -p "$target" 'cluster.Function("budget_target!*").Count()' </dev/null
contains "an idle program" "$work/trace.err" "idle"
equal "has no estimate" null "$(of estimate share)"
echo >&9
wait_for "$work/trace.err" "left out from now on: budget_target!hot"
end_trace
finish
exits "--wait" 0 "$FAY" trace --for 300ms --json --wait 'cluster.Function("libc!nanosleep").Count()' \
	-- sleep 0.2 </dev/null
contains "--wait: the budget" "$work/err" "--budget 5% is in force"
exits "--follow" 0 "$FAY" trace --for 300ms --json --follow \
	'cluster.Function("libc!nanosleep").Count()' -- sleep 0.2 </dev/null
equal "--follow of a command: none" 0 "$(grep -c budget "$work/err" || true)"
exits "a command" 0 "$FAY" trace --json 'cluster.Function("budget_target!rare").Count()' -- \
	"$BUDGET_TARGET" burst </dev/null
contains "a command: the budget" "$work/err" "--budget 5% is in force"
equal "and nothing is left out" 0 "$(jq -s 'map(select(.type == "budget"))[0].left_out' "$work/out")"

exits "one number" 0 "$FAY" trace --budget 1% 'cluster.Function("budget_target!hot").Count()' -- \
	"$BUDGET_TARGET" burst </dev/null
contains "one number: what it lacks" "$work/out" "* without what was called while functions"

# A program that hardly runs: probes may take a large part of its little, and nothing is left out.
"$BUDGET_TARGET" seldom >"$work/seldom" &
seldom=$!
trace -p "$seldom" "$hot" </dev/null
wait "$seldom"
ended "$tracer" || fail "fay trace exits with $?"
equal "a program that rests: nothing is left out" null "$(of left_out events)"
[ "$(of row values.Count)" -gt 1000000 ] || fail "counted $(of row values.Count)"
exits "the same from its start" 0 "$FAY" trace --json -o "$work/trace.json" "$hot" -- \
	"$BUDGET_TARGET" seldom </dev/null
equal "likewise from its start: nothing" null "$(of left_out events)"
equal "and all is counted" "$(tail -1 "$work/out")" \
	"$(jq -s 'map(select(.type == "row"))[-1].values.Count' "$work/trace.json")"
