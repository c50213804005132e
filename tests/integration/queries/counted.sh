#!/usr/bin/env bash
# Windows of so many events: of several threads, in the order of their times, while a program runs
# and over a saved trace beside a plain computation.
. "$(dirname "$0")/../lib.sh"
rows() { jq -c 'select(.type == "row" and .final) | .values' "$work/trace.json"; }
end_of() { jq -c "select(.type == \"end\") | .counted.$1" "$work/trace.json"; }
start() { start_target ready "$TARGET" "$@"; } # THREADS CALLS
go() { echo >&9; wait_for "$work/target.out" done; }

start 4 5000
trace -p "$target" \
	'from w in cluster.Function("threads_target!work").Where(w => w.Arg(1) % 2 == 0).Every(3000)
		group w by 1 into g
	select new { n = g.Count(), first = g.Min(w => w.time) - Now, last = g.Max(w => w.time) -
	Now }'
wait_for "$work/trace.err" "fay: tracing"
go
wait_for "$work/trace.json" '"type":"row"' 3
equal "full windows are shown while the trace runs" '[[0,3000],[1,3000],[2,3000]]' \
	"$(rows | jq -sc 'map([.window, .n])')"
end_trace
equal "the last one as far as it went" '[[0,3000],[1,3000],[2,3000],[3,1000]]' \
	"$(rows | jq -sc 'map([.window, .n])')"
equal "events and windows are told" '[10000,4]' \
	"$(jq -c 'select(.type == "end") | [.counted.events, .counted.windows]' "$work/trace.json")"
late=$(end_of late)
overlap=$(rows | jq -s '[range(1; length) as $i | select(.[$i].first < .[$i - 1].last)] | length')
[ "$overlap" -le "$late" ] ||
	fail "$overlap windows begin before the one before ends, and $late events came late"
echo "ok: windows follow each other in time ($late events came late)"
end_target

# Groups, an aggregate over groups, order in each window by itself; functions' names.
start 3 1000
trace -p "$target" \
	'from w in cluster.Function("threads_target!work").Every(500) group w by new { w.tid,
		w.function } into g orderby g.Count() descending
	select new { g.Key.tid, g.Key.function, n = g.Count(), numbers = g.Sum(w => w.Arg(1)) }'
go
end_trace
equal "six windows of 500" '[[0,500],[1,500],[2,500],[3,500],[4,500],[5,500]]' \
	"$(rows | jq -sc 'group_by(.window) | map([.[0].window, (map(.n) | add)])')"
equal "each thread's calls" '[[1000,499500],[1000,499500],[1000,499500]]' \
	"$(rows | jq -sc 'group_by(.tid) | map([(map(.n) | add), (map(.numbers) | add)])')"
equal "named" '["work"]' "$(rows | jq -sc 'map(.function) | unique')"
equal "in order" true "$(rows | jq -sc 'group_by(.window) | map(map(.n) | . == (sort | reverse)) |
	all')"
end_target
start 3 1000
trace -p "$target" \
	'cluster.Function("threads_target!work").Every(700).GroupBy(w => w.tid).Select(g =>
		g.Count()).Sum()'
go
end_trace
equal "one value a window" \
	'[{"window":0,"Sum":700},{"window":1,"Sum":700},{"window":2,"Sum":700},{"window":3,"Sum":700},{"window":4,"Sum":200}]' \
	"$(rows | jq -sc .)"
end_target

start 2 1000
trace -p "$target" \
	'cluster.Function("threads_target!work").Every(400).Count(w => w.Arg(0) == 0 && w.Arg(1) <
		500)'
go
end_trace
equal "conditions behind the window choose among its events" '[5,500]' \
	"$(rows | jq -sc '[length, (map(.Count) | add)]')"
end_target

# Nothing happens: there is no window.
start 1 1
trace -p "$target" 'cluster.Function("threads_target!unused_function").Every(10).Count()'
end_trace
equal "no events" "" "$(rows)"
go
end_target

# A saved trace, its rows thread by thread: as jq finds them, sorted by time.
start 4 2000
rm -f "$work/trace.err"
"$FAY" trace --save "$work/calls.fay" -p "$target" 'cluster.Function("threads_target!work")' \
	>/dev/null 2>"$work/trace.err" &
tracer=$!
own "$tracer"
wait_for "$work/trace.err" "fay: tracing"
go
kill -INT "$tracer"
ended "$tracer" || fail "saving"
end_target
# (jq's numbers have 53 bits: times since the epoch would lose some. Events of equal times are left
# out.)
"$FAY" trace --json \
	"from x in file(\"$work/calls.fay\") select new { time = x.time - Now, t = x.Arg(0),
		a = x.Arg(1) }" 2>"$work/err" | jq -c 'select(.type == "row") | .values' \
		>"$work/calls"
want=$(jq -sc 'sort_by(.time) | [range(0; length; 600) as $i | .[$i:$i + 600]] |
	map([length, (map(.a) | add), .[0].time, .[-1].time])' "$work/calls")
"$FAY" trace --json "from x in file(\"$work/calls.fay\").Every(600) group x by 1 into g
	select new { n = g.Count(), s = g.Sum(x => x.Arg(1)), first = g.Min(x => x.time) - Now,
	last = g.Max(x => x.time) - Now }" >"$work/trace.json" 2>"$work/err"
equal "none came late" 0 "$(end_of late)"
# Each query has a `Now` of its own: times count from the first event on.
relative='(.[0][2]) as $start | map([.[0], .[1], .[2] - $start, .[3] - $start])'
got=$(rows | jq -sc 'map([.n, .s, .first, .last])')
if [ "$(jq -s 'map(.time) | length == (unique | length)' "$work/calls")" = true ]; then
	equal "windows of a saved trace" "$(jq -c "$relative" <<<"$want")" \
		"$(jq -c "$relative" <<<"$got")"
else
	echo "ok: some events have the same time, so which of two windows has them is open"
	equal "windows of a saved trace" \
		"$(jq -c "$relative | map([.[0], .[2], .[3]])" <<<"$want")" \
		"$(jq -c "$relative | map([.[0], .[2], .[3]])" <<<"$got")"
fi

# Return values, arguments that are kept, stacks and callers go through, too.
start 2 300
trace -p "$target" \
	'from r in cluster.Return("threads_target!work").Every(100) group r by r.Arg(0) into g
		select new { g.Key, n = g.Count(), wrong = g.Count(r => r.ReturnValue != (r.Arg(0) ^
		r.Arg(1))) }'
go
end_trace
equal "arguments and results" '[[0,300,0],[1,300,0]]' \
	"$(rows | jq -sc 'group_by(.Key) | map([.[0].Key, (map(.n) | add), (map(.wrong) | add)])')"
end_target
start 2 300
trace -p "$target" \
	'from r in cluster.Function("threads_target!work").Every(100) group r by r.Stack(2) into g
		select new { g.Key, n = g.Count() }'
go
end_trace
equal "stacks" 600 "$(rows | jq -s 'map(.n) | add')"
equal "of the function" true \
	"$(rows | jq -s 'map(.Key[0] | startswith("threads_target!work")) | all')"
end_target

exits "a trace without times" 0 "$FAY" trace --save "$work/y.fay" \
	'from x in cluster.Function("libc!read") select new { x.tid }' -- cat /dev/null
exits "cannot be counted in the order of time" 1 "$FAY" trace \
	"file(\"$work/y.fay\").Every(10).Count()"
contains "says why" "$work/err" 'does not have `time`'
exits "windows are not saved" 2 "$FAY" trace --save "$work/z.fay" \
	'cluster.Function("libc!read").Every(10).Count()' -- true
