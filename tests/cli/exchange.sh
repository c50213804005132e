#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# exchange.sh FAY: one saved trace in several formats says the same: as JSON, as Chrome's trace, as
# folded stacks, as a profile that pprof reads, as spans and metrics of OpenTelemetry.
set -euo pipefail
fay=$1
perfetto=$(dirname "$(realpath "$0")")/perfetto.py
otlp=$(dirname "$(realpath "$0")")/otlp.py
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAIL: $*" >&2; exit 1; }
command -v jq >/dev/null || { echo "skipped: jq is not installed (scripts/deps)"; exit 77; }
export FAY_BUDGET=none
cd "$work"
columns='r.time, r.pid, r.tid, r.function, r.Duration'
"$fay" trace --save s.fay "cluster.Return(\"libc!*alloc\").Select(r => new { $columns,
	stack = r.Stack(12) })" -- ls -l /etc >/dev/null 2>err || fail "$(cat err)"
ask() { "$fay" trace "$@" 2>err || fail "$*: $(cat err)"; }
all="file(\"s.fay\").Select(r => new { $columns, r.stack })"
ask --json "$all" | jq -c 'select(.type == "row") | .values' >rows
[ -s rows ] || fail "no events"

ask --format chrome "$all" >chrome
jq -es '(.[0] | map([.name, (.dur * 1000 | round), .tid]) | sort) == (.[1] | sort) and
	(.[0] | all(.ph == "X" and .ts >= 0 and .pid == .tid and (.args.stack | length) > 0))' \
	chrome <(jq -cs 'map([.function, .Duration, .tid])' rows) >/dev/null ||
	fail "$(head -3 chrome)"
# Perfetto takes all of them.
/usr/bin/python3 "$perfetto" chrome >taken 2>err || fail "Perfetto: $(cat err)"
read -r slices dropped <taken
[ "$slices" = "$(wc -l <rows)" ] && [ "$dropped" = 0 ] ||
	fail "Perfetto: $(cat taken)"
# The calls' ends are as far from one another as the events' times, which jq knows to 256 ns only.
ends=$(jq '(map(.ts + .dur) | max - min) * 1000 | round' chrome)
times=$(jq -s 'map(.time) | max - min' rows)
[ $((ends - times)) -lt 1000 ] && [ $((times - ends)) -lt 1000 ] || fail "times: $ends, $times"
[ "$(ask --format chrome 'file("s.fay").Where(e => e.pid == 0)')" = "[]" ] || fail "no events"
# Spans that overlap others are pairs: here of all that begin before another's end.
ask --format chrome "file(\"s.fay\").Select(r => new { r.time, r.function, span = r.Duration + 50us,
	n = 1 })" >chrome
jq -es --argjson n "$(wc -l <rows)" '.[0] | (map(select(.ph == "X")) | length > 0) and
	([.[] | select(.ph != "e")] | length == $n and all(.args.n == 1)) and
	(map(select(.ph == "b")) | length > 0 and (map(.id) | unique | length) == length) and
	([.[] | select(.ph != "X")] | group_by(.id) | all(map([.ph, .cat]) ==
		[["b", "overlapping"], ["e", "overlapping"]] and .[0].ts < .[1].ts and
		.[0].name == .[1].name))' chrome >/dev/null || fail "$(head -3 chrome)"
/usr/bin/python3 "$perfetto" <(jq 'map(select(.ph == "X"))' chrome) >taken 2>err ||
	fail "Perfetto: $(cat err)"
read -r slices dropped <taken
[ "$dropped" = 0 ] || fail "Perfetto: $(cat taken)"

by_stack='from e in file("s.fay") group e by new { e.function, e.stack } into g
	select new { g.Key, n = g.Count(), time = g.Sum(e => e.Duration) }'
n=$(wc -l <rows)
[ "$(ask --format folded "$by_stack" | awk '{ n += $NF } END { print n }')" = "$n" ] ||
	fail "folded"
ask --format pprof "$by_stack" >profile
if command -v go >/dev/null; then
	HOME=$work go tool pprof -raw profile >raw 2>err || fail "$(cat err)"
	grep -q '^n/count time/nanoseconds' raw || fail "$(cat raw)"
	time=$(jq -s 'map(.Duration) | add' rows)
	awk '/^Locations/ { exit } /^ +[0-9]+ +[0-9]+:/ { n += $1; time += $2 }
		END { printf "%d %d\n", n, time }' raw | grep -qx "$n $time" ||
		fail "not $n, $time: $(cat raw)"
	grep -q 'function:\[malloc\]' raw || fail "no label"
else
	echo "skipped: go, whose pprof reads profiles, is not installed (scripts/deps --test)"
	gzip -t profile || fail "no gzip"
fi
# Spans have what the rows have, to the nanosecond; a thread's are one trace.
ask --format otlp "$all" >otlp
python3 "$otlp" otlp >spans 2>err || fail "$(cat err)"
jq -es '(.[0] | map([.name, .duration, .end]) | sort) ==
	(.[1] | map([.function, .Duration, .time]) | sort) and
	(.[0] | (map(.span) | unique | length) == length and (map(.trace) | unique | length) == 1 and
		all(.attributes["process.pid"] == .attributes["thread.id"]))' \
	<(jq -s . spans) <(jq -s . rows) >/dev/null || fail "spans: $(head -3 spans) $(head -3 rows)"
OTEL_SERVICE_NAME='a "service"' ask --format otlp 'from e in file("s.fay")
	group e by e.function into g select new { g.Key, n = g.Count(),
		time = g.Histogram(e => e.Duration),
		longest = g.Max(e => e.Duration) }' >otlp
grep -q '"stringValue":"a \\"service\\""' otlp || fail "the service: $(cat otlp)"
python3 "$otlp" otlp >points 2>err || fail "$(cat err)"
jq -es --argjson n "$n" '(map(select(.name == "fay_n") | .value) | add) == $n and
	(map(select(.name == "fay_time") | .value.count) | add) == $n and
	all(.name != "fay_time" or .unit == "s" and .value.bounds[-1] < 10) and
	any(.name == "fay_lost_events" and .kind == "sum" and .value == 0) and
	any(.name == "fay_longest" and .labels.Key == "malloc" and .value > 0)' points >/dev/null ||
	fail "metrics: $(cat points)"

# refused before anything is traced
status=0
"$fay" trace --format otlp 'file("s.fay").Select(e => new { e.pid })' 2>err || status=$?
[ $status = 2 ] && grep -q "a span of time" err || fail "$status $(cat err)"
status=0
"$fay" trace --format chrome "$by_stack" 2>err || status=$?
[ $status = 2 ] && grep -q "this result has no time" err || fail "$status $(cat err)"
echo "ok: $n events"
