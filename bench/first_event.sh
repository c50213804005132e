#!/usr/bin/env bash
# From the start of `fay trace` to the first counted event on a loaded redis-server, and the
# server's longest pause, over ROUNDS runs (default 15): the median and the quartiles of each stage
# that --timing names.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-15}
bin=${BIN:-$PWD/build/bin}
work=$(mktemp -d)
. scripts/owned.sh
cleanup() { kill_owned TERM; wait 2>/dev/null || true; rm -rf "$work"; }
trap cleanup EXIT
port=$((20000 + RANDOM % 20000))
redis-server --port "$port" --bind 127.0.0.1 --save "" --appendonly no --dir "$work" >/dev/null \
	2>&1 &
server=$!
own $server
for _ in $(seq 100); do redis-cli -p "$port" ping >/dev/null 2>&1 && break; sleep 0.05; done
redis-benchmark -p "$port" -c 4 -l -t get -q >/dev/null 2>&1 &
own $!
for _ in $(seq "$rounds"); do
	"$bin/fay" trace -p "$server" --for 300ms --budget none --timing 'from io in cluster.Function("libc!read")
		where io.time < Now.AddMinutes(5)
		let size = io.Arg(2)
		group io by size/1024 into g
		select new { sizeInKilobytes = g.Key, countOfReadIOs = g.Count() };' 2>&1 \
		>/dev/null | sed -n 's/^  \(.*[^ ]\)  *\([0-9.]*\) ms$/\1|\2/p' >>"$work/all"
done
echo "milliseconds, median [quartiles] of $rounds runs ($(sed -n 's/^model name\s*: //p' \
	/proc/cpuinfo | head -1), $(date +%F))"
cut -d'|' -f1 "$work/all" | awk '!seen[$0]++' | while read -r stage; do
	awk -F'|' -v s="$stage" '$1 == s {print $2}' "$work/all" | sort -g |
		awk -v s="$stage" \
		'{v[NR] = $1} function q(p) {i = 1 + p * (NR - 1); f = int(i);
			return f == NR ? v[NR] : v[f] + (i - f) * (v[f + 1] - v[f])} END {printf "%-26s %8.2f [%.2f, %.2f]\n", s, q(.5), q(.25), q(.75)}'
done
