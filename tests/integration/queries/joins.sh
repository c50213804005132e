#!/usr/bin/env bash
# Joins of two sources: while programs run, and over saved traces beside a plain computation of the
# same pairs.
. "$(dirname "$0")/../lib.sh"
bin=$(dirname "$TARGET")

# run QUERY [COMMAND...]: the rows' values, one JSON object a line, into $work/rows; the end into
# $work/end
run() {
	local query=$1
	shift
	"$FAY" trace --json "$query" ${1:+-- "$@"} >"$work/out" 2>"$work/err" ||
		{ cat "$work/err" >&2; fail "$query"; }
	jq -c 'select(.type == "row" and .final) | .values' "$work/out" >"$work/rows"
	jq -c 'select(.type == "end")' "$work/out" >"$work/end"
	equal "events lost, dropped, late" '[0,0,0]' \
		"$(jq -c '[.events_lost, .join.evicted, .join.late]' "$work/end")"
}

# The k-th call's end comes after k calls' beginnings, all of one thread: so many pairs each.
head -c 123456 /dev/zero >"$work/file"
run 'from a in cluster.Function("libc!read") where a.Arg(2) == 100
	join b in cluster.Return("libc!read") on new { a.pid, a.tid } equals new { b.pid, b.tid }
	within 1h
	where b.time >= a.time
	group new { a, b } by b.ReturnValue into g
	orderby g.Key descending
	select new { bytes = g.Key, pairs = g.Count(), function = g.First(x => x.b.function),
	longest = g.Max(x => x.b.time - x.a.time) }' \
	dd if="$work/file" of=/dev/null bs=100 status=none
equal "pairs by what was returned" "[[100,$((1234 * 1235 / 2))],[56,1235],[0,1236]]" \
	"$(jq -sc 'map([.bytes, .pairs])' "$work/rows")"
equal "named" '"read"' "$(jq -s '.[0].function' "$work/rows")"
equal "calls on both sides" '[1236,true]' "$(jq -c '[.join.left, .join.right >= 1236]' "$work/end")"

# One value, with pairs and without.
run '(from a in cluster.Function("libc!read") where a.Arg(2) == 100
	join b in cluster.Function("libc!read") on a.time equals b.time within 0
	select a).Count()' \
	dd if="$work/file" of=/dev/null bs=100 status=none
equal "each with itself" '{"Count":1236}' "$(cat "$work/rows")"
run '(from a in cluster.Function("libc!read") join b in cluster.Function("libc!write") on a.tid
	equals b.tid + 1 within 1s select a).Count()' \
	dd if="$work/file" of=/dev/null bs=10000 status=none
equal "none" '{"Count":0}' "$(cat "$work/rows")"

# Three sources, and groups that have no events.
run '(from a in cluster.Function("libc!read") where a.Arg(2) == 100
	join b in cluster.Function("libc!read") on a.time equals b.time within 0
	join c in cluster.Function("libc!read") on new { b.tid, b.time } equals new { c.tid,
	c.time } within 0 select a).Count()' \
	dd if="$work/file" of=/dev/null bs=100 status=none
equal "each with itself, twice" '{"Count":1236}' "$(cat "$work/rows")"
equal "counted apart" '[1236,1236,1236,0]' \
	"$(jq -c '[.join.pairs, .second_join.left, .second_join.pairs, .second_join.evicted +
		.second_join.late]' "$work/end")"
run 'from a in cluster.Function("libc!read") where a.Arg(2) == 100
	join w in cluster.Function("libc!write") on a.tid equals w.tid + 1 within 1s into g
	let n = g.Count()
	group n by n into h select new { h.Key, calls = h.Count() }' dd if="$work/file" \
	of=/dev/null bs=100 status=none
equal "calls without" '{"Key":0,"calls":1236}' "$(cat "$work/rows")"

# Saved traces: all pairs, beside those that jq finds.
# (It takes about a millisecond: recorded again until it lies in two, for the windows below.)
recorded() {
	"$FAY" trace --save "$work/calls.fay" 'cluster.Function("calls_target!traced_*")' \
		-- "$bin/calls_target" exceptions >/dev/null 2>"$work/err"
	[ "$("$FAY" trace --json "file(\"$work/calls.fay\").Where(c => c.Arg(0) <
		40).Tumbling(1ms).Count()" 2>/dev/null | jq -s 'map(select(.type == "row") |
		.values.window) | unique | length')" -gt 1 ]
}
await "calls in two milliseconds" recorded
"$FAY" trace --save "$work/ends.fay" 'cluster.Return("calls_target!traced_*")' \
	-- "$bin/calls_target" exceptions >/dev/null 2>"$work/err"
# (jq's numbers have 53 bits: times since the epoch would lose some.)
times() {
	"$FAY" trace --json \
		"from x in file(\"$1\") where x.Arg(0) < 40 select new { time = x.time - Now,
			a = x.Arg(0) }" 2>/dev/null | jq -c 'select(.type == "row") | .values'
}
times "$work/calls.fay" >"$work/calls"
want=$(jq -sc '. as $all | [.[] as $l | $all[] | select(.a % 7 == $l.a % 5 and .a > $l.a and (.time
	- $l.time | fabs) <= 200000)] | [length, (map(.a) | add // 0)]' "$work/calls")
[ "$want" != "[0,0]" ] || fail "no pairs to be found"
run "from l in file(\"$work/calls.fay\") where l.Arg(0) < 40
	join r in (from x in file(\"$work/calls.fay\") where x.Arg(0) < 40
	select new { x.time, a = x.Arg(0) }) on l.Arg(0) % 5 equals r.a % 7 within 200us
	where r.a > l.Arg(0)
	group r by 1 into g
	select new { pairs = g.Count(), sum = g.Sum(x => x.a) }"
equal "pairs of saved events" "$want" "$(jq -c '[.pairs, .sum]' "$work/rows")"
# What the times rule out is not even put together.
run "from l in file(\"$work/calls.fay\") join r in file(\"$work/calls.fay\") on l.tid equals r.tid
	within 1h where r.time >= l.time && l.time >= r.time group r by 1 into g
	select new { n = g.Count() }"
equal "pairs that the times allow" "$(jq -c .n "$work/rows")" "$(jq -c .join.pairs "$work/end")"
run "from l in file(\"$work/calls.fay\") join r in file(\"$work/ends.fay\") on l.function
	equals r.function within 1h
	group r by l.function into g orderby g.Key select new { g.Key, n = g.Count(),
	failed = g.Count(x => x.Failed) } take 3"
[ -s "$work/rows" ] || fail "two files have no pairs"
jq -e '.Key | startswith("traced_")' "$work/rows" >"$work/named" ||
	fail "functions of both files have names"

run "from l in file(\"$work/calls.fay\") where l.Arg(0) < 40
	join r in (from x in file(\"$work/calls.fay\") where x.Arg(0) < 40
	select new { x.time, a = x.Arg(0) }) on l.Arg(0) % 5 equals r.a % 7 within 200us
	where r.a > l.Arg(0)
	join t in (from x in file(\"$work/calls.fay\") where x.Arg(0) < 40
	select new { x.time, a = x.Arg(0) }) on l.Arg(0) + 3 equals t.a within 100us
	group new { r, t } by 1 into g
	select new { triples = g.Count(), sum = g.Sum(x => x.r.a * x.t.a) }"
want=$(jq -sc '. as $all | [.[] as $l | $all[] as $r | select($r.a % 7 == $l.a % 5 and $r.a > $l.a
	and ($r.time - $l.time | fabs) <= 200000)
	| ([$l.time, $r.time] | max) as $later | $all[] | select(.a == $l.a + 3 and (.time - $later
	| fabs) <= 100000) | .a * $r.a] | [length, add // 0]' "$work/calls")
[ "$want" != "[0,0]" ] || fail "no triples to be found"
equal "triples of saved events" "$want" "$(jq -c '[.triples, .sum]' "$work/rows")"
run "from l in file(\"$work/calls.fay\") where l.Arg(0) < 40
	join r in (from x in file(\"$work/calls.fay\") where x.Arg(0) < 40
	select new { x.time, a = x.Arg(0) }) on l.Arg(0) % 5 equals r.a % 7 within 20us into g
	select new { a = l.Arg(0), n = g.Count(), sum = g.Sum(x => x.a) }"
want=$(jq -sc '. as $all | map(. as $l | [$all[] | select(.a % 7 == $l.a % 5 and (.time - $l.time |
	fabs) <= 20000) | .a] | [$l.a, length, add // 0]) | sort' "$work/calls")
equal "groups of saved events" "$want" "$(jq -sc 'map([.a, .n, .sum]) | sort' "$work/rows")"

# Windows: of a pair the later event's time counts. All windows together have all pairs.
# (A window that is shown again, revised, counts once.)
total() { jq -s 'group_by(.window) | map(last.Count) | add' "$work/rows"; }
run '(from a in cluster.Function("libc!read") where a.Arg(2) == 100
	join b in cluster.Function("libc!read") on a.time equals b.time within 0
	select a).Tumbling(20ms).Count()' \
	dd if="$work/file" of=/dev/null bs=100 status=none
equal "pairs of all windows" 1236 "$(total)"
run "(from l in file(\"$work/calls.fay\") where l.Arg(0) < 40 join r in file(\"$work/calls.fay\")
	on l.Arg(0) equals r.Arg(0) within 30us select l).Count()"
want=$(total)
run "(from l in file(\"$work/calls.fay\") where l.Arg(0) < 40 join r in file(\"$work/calls.fay\")
	on l.Arg(0) equals r.Arg(0) within 30us select l).Tumbling(1ms).Count()"
equal "saved pairs of all windows" "$want" "$(total)"
[ "$(wc -l <"$work/rows")" -gt 1 ] || fail "all pairs in one window"
jq -se '[.[].window] | . == sort and . == unique' "$work/rows" >"$work/sorted" ||
	fail "windows in order"

# Refusals.
query='from a in cluster.Function("libc!read") join b in cluster.Function("libc!write") on a.tid
	equals b.tid within 1ms group a by b.tid into g select g.Count()'
exits "groups of pairs are not saved" 2 "$FAY" trace --save "$work/x.fay" "$query" -- true
contains "says what to do" "$work/err" "leave out the aggregates"
exits "live and saved" 1 "$FAY" trace \
	"from a in cluster.Function(\"libc!read\") join b in file(\"$work/calls.fay\") on a.tid
		equals b.tid within 1ms select a" -- true
exits "no bound" 2 "$FAY" trace \
	'from a in cluster.Function("libc!read") join b in cluster.Function("libc!write") on a.tid
		equals b.tid select a' -- true
exits "a file without times" 0 "$FAY" trace --save "$work/y.fay" \
	'from x in cluster.Function("libc!read") select new { x.tid }' -- "$bin/calls_target" \
	exceptions
exits "cannot be joined" 1 "$FAY" trace \
	"from a in file(\"$work/y.fay\") join b in file(\"$work/y.fay\") on a.tid equals b.tid
		within 1ms select a.tid"
contains "says why" "$work/err" "joined by time"

# Pairs that take long after the end: the program is left in time all the same; it is said, and
# ended by one signal more.
dd if=/dev/zero of=/dev/null bs=1 status=none &
reader=$!
own $reader
"$FAY" trace --json --for 3s -p $reader 'from a in cluster.Function("libc!read")
	join b in cluster.Function("libc!read") on a.tid equals b.tid within 1h
	group new { a, b } by 1 into g select new { n = g.Sum(x => x.b.time - x.a.time) }' \
	>"$work/out" 2>"$work/err" &
tracer=$!
own $tracer
wait_for "$work/err" "pairs of the events that came until the end are being made"
equal "what is still in the program" 0 "$(grep -c "memfd:fay" "/proc/$reader/maps")"
kill -INT $tracer
ended $tracer || fail "interrupted: $(cat "$work/err")"
contains "what is missing" "$work/err" "events came that were not joined; pairs are missing"
equal "in JSON, too" true "$(jq 'select(.type == "end") | .unjoined > 0' "$work/out")"

# Pairs, grouped twice.
run "from l in file(\"$work/calls.fay\") join r in file(\"$work/calls.fay\") on l.time equals r.time
	within 0
	group r by r.function into g group g by g.Count() % 2 into h orderby h.Key
	select new { odd = h.Key, functions = h.Count(), calls = h.Sum(x => x.Count()) }"
want=$(jq -sc 'group_by(.f) | map(length) | group_by(. % 2) | map([.[0] % 2, length, add])' \
	<("$FAY" trace --json "from x in file(\"$work/calls.fay\")
		select new { f = x.function }" 2>/dev/null | jq -c 'select(.type == "row") |
		.values'))
equal "functions by whether their calls are odd" "$want" \
	"$(jq -sc 'map([.odd, .functions, .calls])' "$work/rows")"
