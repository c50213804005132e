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
one Return

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
exits "--budget with --follow" 2 "$FAY" trace -p "$target" --follow --budget 2% \
	'cluster.Function("budget_target!hot").Count()'
exec 9>&-
