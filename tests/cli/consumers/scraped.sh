#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# scraped.sh FAY SOURCE [SECONDS]: Debian's Prometheus scrapes `fay serve` over a redis-server each
# second, beside one that hangs: no scrape fails or is missing, counters never fall, and the last
# values are those of `fay trace`, to the call.
set -euo pipefail
fay=$1 seconds=${3:-20}
# shellcheck source=/dev/null
. "$2/scripts/owned.sh"
for program in prometheus redis-server redis-benchmark jq curl; do
	command -v $program >/dev/null ||
		{ echo "skipped: $program is not installed (scripts/deps --test)"; exit 77; }
done
work=$(mktemp -d)
trap 'kill_owned TERM; wait; rm -rf "$work"' EXIT
fail() { echo "FAIL: $*" >&2; tail -n 5 "$work"/err* >&2; exit 1; }
export FAY_BUDGET=none
becomes() {
	for _ in $(seq 300); do ! "$@" 2>/dev/null || return 0; sleep 0.1; done
	fail "never: $*"
}
redis-server --port 0 --save '' --unixsocket "$work/redis" >"$work/log" 2>&1 &
redis=$!
own $redis
becomes test -S "$work/redis"
query='from r in cluster.Return("libc!read") where r.Arg(2) > 8192 group r by r.Failed into g
	select new { g.Key, n = g.Count(), bytes = g.Sum(r => r.ReturnValue),
		time = g.Histogram(r => r.Duration) }'
"$fay" serve --listen 127.0.0.1:0 -p $redis "reads=$query" 2>"$work/err.serve" &
serve=$!
own $serve
"$fay" trace -p $redis --json -o "$work/rows" "$query" 2>"$work/err.trace" &
trace=$!
own $trace
listens() {
	address=$(sed -n 's|.* at http://\([^/]*\)/metrics.*|\1|p' "$work/err.serve")
	[ -n "$address" ]
}
becomes listens
serves() { curl -sS --max-time 10 "http://$address/metrics" | grep -q "$1"; }
becomes serves '^fay_reads_lost_events_total 0$'
traces() { grep -q "tracing" "$work/err.trace" || grep -q '"schema"' "$work/rows"; }
becomes traces
sleep 1
cat >"$work/prometheus.yml" <<END2
global: { scrape_interval: 1s }
scrape_configs: [{ job_name: fay, static_configs: [{ targets: ["$address"] }] }]
END2
# a port of its own: one that was free a moment ago
port=$(/usr/bin/python3 -c 'import socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
prometheus --config.file "$work/prometheus.yml" --storage.tsdb.path "$work/data" \
	--web.listen-address "127.0.0.1:$port" 2>"$work/err.prometheus" &
own $!
asks() { # QUERY: what Prometheus finds
	curl -sS --max-time 10 "http://127.0.0.1:$port/api/v1/query" --data-urlencode "query=$1" |
		jq -c .data.result >"$work/found"
	[ -s "$work/found" ] && [ "$(cat "$work/found")" != "[]" ]
}
becomes asks up
began=$SECONDS
for ((rounds = 0; SECONDS - began < seconds; rounds++)); do
	# one that asks and does not read the answer
	exec 4<>"/dev/tcp/${address%:*}/${address#*:}"
	printf 'GET / HTTP/1.1\r\nHost: x\r\n\r\n' >&4
	redis-benchmark -q -s "$work/redis" -c 5 -n 2000 -t get,set >/dev/null
	sleep 0.7
done
exec 4>&-
signal_owned INT $trace
wait $trace || fail "fay trace: exit code $?"
sleep 3
time=$((SECONDS - began))

# each second has its scrape
asks "up[${time}s]" || fail "nothing is scraped"
jq -e --argjson time $time '.[0].values | (length >= $time - 3) and all(.[1] == "1") and
	([.[1:], .[:-1]] | transpose | all(.[0][0] - .[1][0] < 1.9))' "$work/found" >/dev/null ||
	fail "gaps: $(cat "$work/found")"
echo "ok: $(jq '.[0].values | length' "$work/found") scrapes in $time s, none failed"
jq -r '[.[0].values | [.[1:], .[:-1]] | transpose[] | .[0][0] - .[1][0]] | sort |
	"ok: from \(.[0]) to \(.[-1]) s apart"' "$work/found"
asks "fay_reads_n_total[${time}s]"
jq -e 'all(.values | map(.[1] | tonumber) | . == sort)' "$work/found" >/dev/null ||
	fail "a counter fell: $(cat "$work/found")"
# a value at the end: METRIC, of the rows: EXPRESSION
same() {
	local served traced
	asks "$1" || fail "no $1"
	served=$(jq -r '.[0].value[1]' "$work/found")
	traced=$(jq -s "map(select(.type == \"row\" and .final).values |
		select(.Key == false or .Key == \"false\" or .Key == 0)) | .[0] | $2" "$work/rows")
	jq -ne "$served == $traced and $traced > 0" >/dev/null ||
		fail "$1 is $served, not $traced: $(grep '"row"' "$work/rows")"
	echo "ok: $1 = $served"
}
same 'fay_reads_n_total{Key=~"false|0"}' .n
same 'fay_reads_bytes{Key=~"false|0"}' .bytes
same 'fay_reads_time_seconds_bucket{Key=~"false|0",le="+Inf"}' '.time | map(.count) | add'
asks fay_reads_lost_events_total
[ "$(jq -r '.[0].value[1]' "$work/found")" = 0 ] || fail "losses"
signal_owned INT $serve
wait $serve || fail "fay serve: exit code $?"
echo "ok: $rounds rounds of load"
