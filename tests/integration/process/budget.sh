#!/usr/bin/env bash
# --budget: the function that costs too much is taken out while the trace goes on, and how often its
# probes ran is exact; what is rare stays.
. "$(dirname "$0")/../lib.sh"
calls() { sed -n "s/.*$1 \([0-9]*\).*/\1/p" "$work/target.out"; }
rows() {
	jq -s --arg f "$1" \
		'[.[] | select(.type == "row" and .final and .values.Key == $f) | .values.n] |
			add // 0' \
		"$work/trace.json"
}
left_out() {
	jq -sr '[.[] | select(.type == "left_out") | .function] | join(" ")' "$work/trace.json"
}
one() { # KIND
	start_target ready "$BUDGET_TARGET"
	trace -p "$target" --budget 1% \
		"from f in cluster.$1(\"budget_target!*\") group f by f.function into g
			select new { g.Key, n = g.Count() }"
	echo >&9
	wait_for "$work/trace.err" "left out from now on: budget_target!hot"
	rest 10
	echo >&9
	wait_for "$work/target.out" "hot "
	end_trace
	equal "$1: functions left out" hot "$(left_out)"
	equal "$1: rare calls, all of them" "$(calls rare)" "$(rows rare)"
	equal "$1: events of what was left out, by the account" "$(rows hot)" \
		"$(jq -s 'map(select(.type == "left_out"))[0].events' "$work/trace.json")"
	[ "$(rows hot)" -gt 0 ] && [ "$(rows hot)" -lt "$(calls hot)" ] ||
		fail "$1: $(rows hot) of $(calls hot) calls of hot"
	equal "$1: the program's text" "$before" "$(text_hash "$target")"
	end_target
}
one Function
# A table marks it.
start_target ready "$BUDGET_TARGET"
echo >&9
exits "a table" 0 "$FAY" trace -p "$target" --budget 1% --for 2s \
	'from f in cluster.Function("budget_target!*") group f by f.function into g
		select new { g.Key, n = g.Count() }'
contains "a table: what was left out" "$work/out" "hot* "
contains "a table: what that means" "$work/out" "* not traced all the time, to stay within the budget"
exits "CSV, which has no such marks" 0 "$FAY" trace -p "$target" --csv --budget 1% --for 2s \
	'from f in cluster.Function("budget_target!*") group f by f.function into g
	select new { g.Key, n = g.Count() }'
contains "CSV: what is missing is said beside it" "$work/err" "budget_target!hot"
end_target
one Return
# With records of calls. What jumps to a function that is left out ends at the jump, and is counted,
# whether anybody asked for that function or not; and the function comes back.
durations() { # FUNCTIONS
	start_target ready "$BUDGET_TARGET"
	trace -p "$target" --budget 5% "from f in cluster.Return(\"budget_target!$1\")
		group f by f.function into g
		select new { g.Key, n = g.Count(), t = g.Max(r => r.Duration) }"
	echo >&9
	wait_for "$work/trace.err" "left out from now on: budget_target!hot"
	rest 10
	echo >&9
	wait_for "$work/target.out" "hot "
	wait_for "$work/trace.err" "traced again: budget_target!hot"
	known=$(jq -s 'map(select(.type == "row" and .values.Key == "hot"))[-1].values.n // 0' \
		"$work/trace.json")
	echo >&9
	wait_for "$work/target.out" "slow 1000"
	end_trace
	equal "durations of $1: what was left out" hot "$(left_out)"
	equal "all calls of what leads to it" "$(calls leads)" "$(rows leads)"
	[ "$(jq -s 'map(select(.type == "end"))[0].calls_left_by_jump' "$work/trace.json")" -gt 0 ] ||
		fail "$1: no call was left by a jump"
	equal "the program's text" "$before" "$(text_hash "$target")"
	end_target
}
durations "*"
equal "durations: events of what was left out, by the account" "$(rows hot)" \
	"$(jq -s 'map(select(.type == "left_out"))[0].events' "$work/trace.json")"
[ "$(rows hot)" -ge $((known + 1000)) ] || fail "calls after it came back were not counted"
durations leads
equal "of a function that nobody asked for" 0 "$(rows hot)"

start_target ready "$BUDGET_TARGET"
echo >&9
"$FAY" trace -p "$target" --budget 0.5% --for 60s \
	--json 'cluster.Function("budget_target!hot").Count()' >"$work/trace.json" \
	2>"$work/trace.err"
equal "a trace of which nothing is left ends" "the budget leaves nothing to trace" \
	"$(jq -sr 'map(select(.type == "end"))[0].reason' "$work/trace.json")"
equal "with exact counts" \
	"$(jq -s 'map(select(.type == "left_out"))[0].events' "$work/trace.json")" \
	"$(final_sum Count)"
for wrong in 0 -1 101% 2percent ""; do
	exits "--budget '$wrong'" 2 "$FAY" trace -p "$target" --budget "$wrong" \
		'cluster.Function("budget_target!hot").Count()'
done
exits "--budget with --cluster" 2 "$FAY" trace -p "$target" --cluster nats://127.0.0.1:1 --budget 2% \
	'cluster.Function("budget_target!hot").Count()'
kill "$target"
ended "$target" || true
exec 9>&-

# What is not called any more comes back, and is exact again.
start_target ready "$BUDGET_TARGET"
trace -p "$target" --budget 50% 'cluster.Function("budget_target!hot").Count()'
echo >&9
wait_for "$work/trace.err" "left out from now on: budget_target!hot"
echo >&9
wait_for "$work/target.out" "hot "
wait_for "$work/trace.err" "traced again: budget_target!hot"
known=$(jq -s 'map(select(.type == "row"))[-1].values.Count // 0' "$work/trace.json")
echo >&9
wait_for "$work/target.out" "slow 1000"
end_trace
equal "events by the account, after it came back" "$(final_sum Count)" \
	"$(jq -s 'map(select(.type == "left_out"))[0].events' "$work/trace.json")"
[ "$(final_sum Count)" -ge $((known + 1000)) ] || fail "calls after it came back were not counted"
equal "the program's text" "$before" "$(text_hash "$target")"
end_target

# A program that is followed has a budget of its own.
code=0
"$FAY" trace --json --follow --budget 5% 'cluster.Function("budget_target!*").Count()' -- \
	sh -c "'$BUDGET_TARGET' burst; '$BUDGET_TARGET' burst" >"$work/trace.json" \
	2>"$work/trace.err" </dev/null || code=$?
equal "--budget with --follow exits with" 0 "$code"
equal "hot functions of two programs, one after the other" "hot hot" "$(left_out)"
equal "in two processes" 2 "$(jq -s '[.[] | select(.type == "left_out") | .process] | unique | length' \
	"$work/trace.json")"
