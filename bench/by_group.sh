#!/usr/bin/env bash
# What quantiles by group cost redis-server: all its functions traced at their returns under
# redis-benchmark's GET, with a count, the longest duration, and the 99th percentile of the
# durations by function. Prints for each, and untraced, redis' processor time per request and
# requests a second, medians [quartiles] of interleaved rounds, and the events lost in all of them.
#   bench/by_group.sh [ROUNDS]      default 5; JSON goes to $OUT if that is set. REQUESTS: of one
#                                   measurement, default 60000
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-5}
requests=${REQUESTS:-60000}
bin=${BIN:-$PWD/build/bin}
work=$(mktemp -d)
. scripts/owned.sh
cleanup() { kill_owned TERM; wait 2>/dev/null || true; rm -rf "$work"; }
trap cleanup EXIT

redis-server --port 0 --unixsocket "$work/socket" --save '' --appendonly no >"$work/redis.log" &
redis=$!
own "$redis"
until redis-cli -s "$work/socket" ping >/dev/null 2>&1; do sleep 0.05; done
ticks() { awk '{print $14 + $15}' "/proc/$redis/stat"; }

load() { # prints ns of processor time per request, and requests a second
	local first rate
	first=$(ticks)
	rate=$(redis-benchmark -s "$work/socket" -t get -n "$requests" -c 20 --csv |
		awk -F '[",]+' 'END {print $3}')
	awk -v t=$(($(ticks) - first)) -v n="$requests" -v r="$rate" \
		-v hz="$(getconf CLK_TCK)" 'BEGIN {print t * 1e9 / hz / n, r}'
}

traced() { # MODE VALUE
	rm -f "$work/err"
	"$bin/fay" trace --json -p "$redis" 'from r in cluster.Return("redis-server!*")
		group r by r.function into g select new { g.Key, v = '"$2"' }' \
		>"$work/out.json" 2>"$work/err" &
	local tracer=$!
	own "$tracer"
	until grep -qs "fay: tracing" "$work/err"; do
		kill -0 "$tracer" 2>/dev/null || { cat "$work/err" >&2; exit 1; }
		sleep 0.05
	done
	local measured
	measured=$(load)
	kill -INT "$tracer"
	wait "$tracer"
	echo "$1 $measured $(jq 'select(.type == "end").events_lost' "$work/out.json")" >>"$work/all"
}

for _ in $(seq "$rounds"); do
	echo "untraced $(load) 0" >>"$work/all"
	traced count 'g.Count()'
	traced longest 'g.Max(r => r.Duration)'
	traced p99 'g.Quantile(0.99, r => r.Duration)'
done
jq -Rn '[inputs | split(" ") | {mode: .[0], ns_per_request: (.[1] | tonumber),
	requests_per_second: (.[2] | tonumber), lost: (.[3] | tonumber)}]' "$work/all" >"$work/rows"
jq -r 'def three: sort | [.[(length - 1) / 2 | floor], .[(length - 1) / 4 | floor],
		.[(length - 1) * 3 / 4 | ceil]] | map(round) | "\(.[0]) [\(.[1]), \(.[2])]";
	("untraced", "count", "longest", "p99") as $mode | map(select(.mode == $mode)) |
	"\($mode): \(map(.ns_per_request) | three) ns of processor time per request, " +
	"\(map(.requests_per_second) | three) requests/s, \(map(.lost) | add) events lost"' \
	"$work/rows"
[ -z "${OUT:-}" ] || cp "$work/rows" "$OUT"
