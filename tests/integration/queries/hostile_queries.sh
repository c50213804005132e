#!/usr/bin/env bash
# Queries that are made to be too much. Texts: tests/query/test_hostile.c; here what reaches the
# command, and groups without end.
. "$(dirname "$0")/../lib.sh"
source='cluster.Function("libc!write")'
exits "a text of 100,000 bytes" 3 "$FAY" trace "$source$(printf '%100000s' '').Count()" -- true
contains "the limit" "$work/err" "longer than 65536 bytes"
exits "10,000 brackets" 3 "$FAY" explain "$source.Count(x => $(printf '(%.0s' $(seq 10000))1"
contains "the limit" "$work/err" "levels of nesting"
[ "$(wc -c <"$work/err")" -lt 1000 ] || fail "the message shows the whole text"

# A new key with each event, as ten seconds of 10,000 keys a second would make: all are shown, in
# bounded memory.
events=100000
"$FAY" trace --json "from w in $source group w by w.time into g select new { g.Key, n = g.Count(),
	bytes = g.Histogram(x => x.Arg(2)) }" \
	-- dd if=/dev/zero of=/dev/null bs=1 count=$events status=none >"$work/out" 2>"$work/err" &
tracer=$!
own "$tracer"
peak=0
while now=$(awk '/VmHWM/ { print $2 }' "/proc/$tracer/status" 2>/dev/null) && [ -n "$now" ]; do
	peak=$now
	sleep 0.05
done
ended "$tracer" || { cat "$work/err" >&2; fail "a key with each event"; }
counted=$(jq -n '[inputs | select(.type == "row" and .final).values.n] | add' "$work/out") \
	lost=$(jq 'select(.type == "end").events_lost' "$work/out")
equal "events counted and lost" $events $((counted + lost))
echo "at most $peak KiB for $events groups"
[ "$peak" -gt 0 ] && [ "$peak" -lt 600000 ] || fail "fay took $peak KiB"
