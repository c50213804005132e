#!/usr/bin/env bash
# 10,000 functions at once: each call counted under its function's name, entries and returns, with
# one trampoline shared and with one for each.
. "$(dirname "$0")/../lib.sh"
program=$(dirname "$FAY")/many_target
mkfifo "$work/in"
"$program" <"$work/in" >"$work/out" &
target=$!
own "$target"
exec 9>"$work/in"
wait_for "$work/out" ready
before=$(text_hash "$target")
rounds() { # COUNT: run them
	local said
	said=$(grep -c sum "$work/out" || true)
	echo "$1" >&9
	wait_for "$work/out" sum $((said + 1))
	equal "what the functions returned" "sum $(($1 * 19999))" "$(tail -1 "$work/out")"
}
for ((i = 10000; i < 20000; i++)); do echo "f$i $((1 + (i - 10000) % 3))"; done >"$work/want"
each_name() { # WHAT QUERY OPTION...
	local what=$1 query=$2
	shift 2
	trace --timing "$@" -p "$target" "$query"
	rounds 1
	end_trace
	jq -r 'select(.type == "row" and .final) | .values | "\(.f) \(.n)"' "$work/trace.json" |
		sort >"$work/got"
	diff "$work/want" "$work/got" >"$work/diff" || {
		head -5 "$work/diff" >&2
		fail "$what: counts by name"
	}
	equal "$what: names with their counts" 10000 "$(wc -l <"$work/got")"
	equal "$what: text afterwards" "$before" "$(text_hash "$target")"
}
entries='from f in cluster.Function("many_target!f1????") group f by f.function into g
	select new { f = g.Key, n = g.Count() }'
returns='from f in cluster.Return("many_target!f1????") group f by f.function into g
	select new { f = g.Key, n = g.Count() }'
each_name "entries, shared" "$entries"
contains "the strategy was chosen by itself" "$work/trace.err" "10000 functions share a trampoline"
each_name "entries, not shared" "$entries" --share 1000000
! grep -q "share a trampoline" "$work/trace.err" ||
	fail "trampolines are shared though that was not asked for"
each_name "returns, shared" "$returns"
each_name "returns, not shared" "$returns" --share 1000000

# Two traces of everything; the one below goes first, then the one above.
trace -p "$target" 'cluster.Function("many_target!f*").Count()'
lower=$tracer
mv "$work/trace.json" "$work/lower.json"
trace -p "$target" 'cluster.Return("many_target!f*").Count()'
rounds 2
upper=$tracer
kill -INT "$lower"
ended "$lower"
rounds 3
tracer=$upper
end_trace
equal "the trace above counts on" $((5 * 19999)) "$(final_sum Count)"
equal "the trace below" $((2 * 19999)) \
	"$(jq -s '[.[] | select(.type == "row" and .final) | .values.Count] |
		add' "$work/lower.json")"
equal "text after both" "$before" "$(text_hash "$target")"
rounds 1

# More probes times functions than a session has places: a function counts once, whoever wants it.
{
	printf '#include <fay/probe.h>\nFAY_COUNT(calls);\n'
	for _ in $(seq 32); do echo 'FAY_ENTRY("many_target!f1????") { fay_count(&calls); }'; done
} >"$work/probes.c"
"$FAY" cc "$work/probes.c" -o "$work/probes.fay" || fail "32 probes do not compile"
trace -p "$target" --probe "$work/probes.fay"
rounds 1
end_trace
equal "32 probes on each of 10,000 functions" $((32 * 19999)) \
	"$(jq -s '[.[] | select(.type == "row" and .final) | .values.calls] |
		add' "$work/trace.json")"
