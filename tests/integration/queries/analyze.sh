#!/usr/bin/env bash
# --analyze: rows, bytes and losses at each edge of the plan, beside what is known of the program.
. "$(dirname "$0")/../lib.sh"

# analyze QUERY COMMAND...: the analysis into $work/a
analyze() {
	local query=$1
	shift
	"$FAY" trace --analyze --json "$query" ${1:+-- "$@"} >"$work/out" 2>"$work/err" ||
		{ cat "$work/err" >&2; fail "$query"; }
	jq -c 'select(.type == "analysis")' "$work/out" >"$work/a"
	[ "$(wc -l <"$work/a")" = 1 ] || fail "one analysis"
}
at() { jq -c "$1" "$work/a"; }

head -c 100000 /dev/zero >"$work/file"
dd=(dd if="$work/file" of=/dev/null bs=100 status=none) # 1001 reads of 100 bytes

analyze 'cluster.Function("libc!read").Where(x => x.Arg(2) == 100).Count()' "${dd[@]}"
equal "events, at least" true "$(at '.events >= 1001 and .probe_ns > .events')"
equal "one value: nothing handed on" '[0,0,1,1]' \
	"$(at '[.sources[0].rows, .sources[0].bytes, .merged_rows, .result_rows]')"

analyze 'from r in cluster.Function("libc!read") where r.Arg(2) == 100 select r.Arg(0)' "${dd[@]}"
equal "each row handed on and shown" '[1001,1001]' "$(at '[.sources[0].rows, .result_rows]')"
equal "8 bytes a row, and the records around them" true \
	"$(at '.sources[0].bytes >= 8008 and .poll_ns > 0')"

# 1001 calls whose ends are by 1000 and 1 of two values, joined, grouped, grouped again.
analyze 'from a in cluster.Function("libc!read") where a.Arg(2) == 100
	join b in cluster.Return("libc!read") on a.tid equals b.tid within 1h
	where b.time >= a.time
	group b by b.ReturnValue into g
	group g by g.Key >= 0 into h
	orderby h.Key
	select new { h.Key, pairs = h.Sum(x => x.Count()) }
	take 1' "${dd[@]}"
equal "left rows" 1001 "$(at '.sources[0].rows')"
equal "pairs that were kept" $((1001 * 1002 / 2)) "$(at .pairs_kept)"
equal "pairs before the condition" true \
	"$(at '.pairs >= .pairs_kept and .pairs <= .sources[0].rows * .sources[1].rows')"
equal "rows of each step" '[[2,1],[1,1],[1,1]]' "$(at '.root | map([.rows_in, .rows_out])')"
equal "steps" true "$(at '.root[0].step | startswith("group by")')"
equal "groups and result" '[2,1]' "$(at '[.merged_rows, .result_rows]')"

"$FAY" trace --analyze \
	'cluster.Function("libc!read").GroupBy(x => x.tid).Select(g => g.Count()).Max()' \
	-- "${dd[@]}" >"$work/out" 2>"$work/err"
contains "the tree" "$work/err" '<- 1 row of 1, '
contains "down to the tracepoint" "$work/err" 'bytes: entry of libc!read'
# While it runs: with each picture, and when it is asked for.
target=$(dirname "$TARGET")/rotate_target
"$FAY" trace --analyze --json --every 100ms \
	'from s in cluster.Function("rotate_target!step") select new { n = s.Arg(1) }' \
	-- "$target" 1500 1000 >"$work/out" 2>"$work/err" ||
	{ cat "$work/err" >&2; fail "--every"; }
jq -c 'select(.type == "analysis")' "$work/out" >"$work/a"
equal "several analyses, the last one final" true \
	"$(jq -sc 'length > 2 and (.[:-1] | all(.final == false)) and .[-1].final' "$work/a")"
equal "rows that grow" true \
	"$(jq -sc 'map(.sources[0].rows) | . == sort and .[0] < .[-1]' "$work/a")"
equal "events up to the last" '[1500,1500,0]' \
	"$(jq -sc '.[-1] | [.sources[0].rows, .result_rows, .events_lost]' "$work/a")"
# Windows of so many events are shown as they come; pictures in between have none.
"$FAY" trace --analyze --json --every 50ms \
	'cluster.Function("rotate_target!step").Every(300).GroupBy(s => s.Arg(1) %
		10).Select(g => g.Count()).Max()' -- "$target" 1500 1000 >"$work/out" \
		2>"$work/err" ||
	{ cat "$work/err" >&2; fail "an aggregate over windows of events"; }
equal "windows of 300 events, 30 in each group" '[30,30,30,30,30]' \
	"$(jq -sc '[.[] | select(.type == "row") | .values | del(.window) | .[]]' "$work/out")"
"$target" 100000 1000 &
stepping=$!
own "$stepping"
runs "$stepping" rotate_target
rm "$work/err"
"$FAY" trace --analyze -p "$stepping" \
	'cluster.Function("rotate_target!step").GroupBy(s => s.Arg(2)).Select(g =>
		g.Count()).Max()' >"$work/out" 2>"$work/err" &
tracer=$!
own "$tracer"
wait_for "$work/err" "fay: tracing"
kill -USR1 "$tracer"
wait_for "$work/err" "fay: measured so far, from the result down to the probes"
kill -INT "$tracer"
ended "$tracer" || fail "a trace that was asked for its figures"
contains "and at the end" "$work/err" "fay: measured, from the result down to the probes"

exits "explaining runs nothing" 2 "$FAY" explain --analyze 'cluster.Function("libc!read").Count()'
contains "says what does" "$work/err" "fay trace --analyze"
exits "no query, no plan" 2 "$FAY" trace --analyze --probe x.fay -p $$
