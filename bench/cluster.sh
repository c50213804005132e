#!/usr/bin/env bash
# N agents with made-up counts on this machine, one NATS server, with and without a tree: what arrives at the asking side, and whether the total is exact.
# Usage: bench/cluster.sh [N [KEYS]]     default: 128 agents, 1000 groups
set -euo pipefail
agents=${1:-128} keys=${2:-1000} steps=400
bin=${BIN:-$(dirname "$0")/../build/bin}
bin=$(realpath "$bin")
work=$(mktemp -d)
port=$((20000 + RANDOM % 10000))
started=()
trap 'kill -9 "${started[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT
cd "$work"
"$bin/fay_bench_cluster" merge 100 1000
"$bin/fay_bench_cluster" merge 20 100000
"$bin/fay" cluster keygen asker >/dev/null 2>&1
echo "signer bench $(cat asker.pub)" >signers
nats-server -a 127.0.0.1 -p $port >/dev/null 2>&1 &
started+=($!)
until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do sleep 0.05; done
"$bin/fay_bench_cluster" agents "nats://127.0.0.1:$port" "$work/signers" "$agents" "$keys" $steps &
started+=($!)
printf '%-8s %10s %12s %14s %10s %10s %s\n' fan-out seconds messages/s bytes/s duplicates conflicts total
for fanout in 0 16 4; do
	begin=$(date +%s.%N)
	"$bin/fay" trace --cluster "nats://127.0.0.1:$port" --key asker.key --await "$agents" --fanout $fanout --lost-after 60s --comm none --for 12s --json \
		'from c in cluster.Function("m!f") group c by c.Arg(0) into g select new { k = g.Key, n = g.Count() }' >out.json 2>err || { cat err >&2; exit 1; }
	seconds=$(echo "$(date +%s.%N) - $begin" | bc)
	jq -rs --arg f "$fanout" --arg s "$seconds" --argjson want $((agents * keys * steps)) '
		(map(select(.type == "coverage"))[-1]) as $c | ([.[] | select(.type == "row" and .final) | .values.n] | add) as $t |
		[$f, $s, $c.messages / ($s | tonumber), $c.bytes / ($s | tonumber), $c.duplicates, $c.conflicts, "\($t) of \($want)\(if $t == $want then ", exact" else ": WRONG" end)"] | @tsv' out.json |
		awk -F'\t' '{printf "%-8s %10.1f %12.0f %14.0f %10d %10d %s\n", $1, $2, $3, $4, $5, $6, $7}'
done
