#!/usr/bin/env bash
# N agents with made-up counts on this machine, one NATS server, with and without a tree: what
# arrives at the asking side each second while all groups change in each window, and whether the
# total is exact. JSON=FILE: appends a line for each run, for bench/cluster/cluster_scale.sh.
# Usage: bench/cluster/cluster.sh [N [KEYS [FAN-OUT...]]]     default: 128 agents, 1000 groups,
# fan-outs 0 16 4
set -euo pipefail
agents=${1:-128} keys=${2:-1000} steps=1200
fanouts=("${@:3}")
[ ${#fanouts[@]} -gt 0 ] || fanouts=(0 16 4)
bin=${BIN:-$(dirname "$0")/../../build/bin}
bin=$(realpath "$bin")
json=$(realpath "${JSON:-/dev/null}")
work=$(mktemp -d)
port=$((20000 + RANDOM % 10000))
. "$(dirname "$0")/../../scripts/owned.sh"
trap 'kill_owned; rm -rf "$work"' EXIT
cd "$work"
"$bin/fay_bench_cluster" merge 100 1000
"$bin/fay_bench_cluster" merge 20 100000
"$bin/fay" cluster keygen asker >/dev/null 2>&1
echo "signer bench $(cat asker.pub)" >signers
nats-server -a 127.0.0.1 -p $port >/dev/null 2>&1 &
own $!
until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do sleep 0.05; done
PHASES=$work/phases STATS=$work/stats "$bin/fay_bench_cluster" agents "nats://127.0.0.1:$port" \
	"$work/signers" "$agents" "$keys" $steps &
own $!
printf '%-8s %12s %14s %10s %10s %s\n' fan-out messages/s bytes/s duplicates conflicts total
for fanout in "${fanouts[@]}"; do
	: >phases
	: >stats
	"$bin/fay" trace --cluster "nats://127.0.0.1:$port" --key asker.key --await "$agents" \
		--fanout "$fanout" --lost-after 60s --comm none --for 20s --every 1s --json \
		'from c in cluster.Function("m!f") group c by c.Arg(0) into g
			select new { k = g.Key, n = g.Count() }' >out.json 2>err ||
			{ cat err >&2; exit 1; }
	# Six windows in the middle of the time in which groups change.
	# The middle nine tenths, as if all were spread evenly.
	spread=$(sort -n -k2 phases |
		awk '{ t[NR] = $2 } END {
			printf "%.0f", (t[int(NR * 0.95)] - t[int(NR * 0.05) + 1]) / 0.9 / 1e6 }')
	# How long each agent's windows are behind the first one's, in the order of the tree, which
	# is that of their numbers.
	behind=$(sort -n -k2 phases |
		awk 'NR == 1 { first = $2 } { printf "%d %.3f\n", $1, ($2 - first) / 1e6 }' |
		sort -n | awk '{ print $2 }' | jq -sc .)
	for _ in $(seq 100); do [ "$(wc -l <stats)" -ge "$agents" ] && break; sleep 0.1; done
	# What agents sent again, what inner agents did not take, and how late windows were closed.
	stats=$(awk '{ r += $2; f += $3; d += $4; l += $5; if ($6 > m) m = $6 } END {
		printf "{\"agents\": %d, \"resent\": %d, \"inner_refused\": %d, \"inner_duplicates\": %d, \"late_ms\": %.1f, \"latest_ms\": %.1f}", NR, r, f, d, NR ? l / NR / 1e6 : 0, m / 1e6 }' \
		stats)
	jq -cs --argjson stats "$stats" --argjson behind "$behind" --argjson spread "$spread" \
		--argjson a "$agents" --argjson g "$keys" --argjson f "$fanout" --argjson want \
		$((agents * keys * steps)) '
		(map(select(.type == "coverage"))) as $c | ([.[] | select(.type == "row" and .final)
		| .values.n] | add) as $t |
		{machines: $a, fanout: $f, groups: $g, messages_per_s: (($c[8].messages -
		$c[2].messages) / 6), bytes_per_s: (($c[8].bytes - $c[2].bytes) / 6),
		 hellos_per_s: (($c[8].hellos - $c[2].hellos) / 6), spread_ms: $spread,
		 duplicates: $c[-1].duplicates, conflicts: $c[-1].conflicts, total: $t, exact:
		 ($t == $want), $stats, behind_ms: $behind}' \
		 out.json >line
	cat line >>"$json"
	jq -r '[.fanout, .messages_per_s, .bytes_per_s, .duplicates, .conflicts,
		"\(.total)\(if .exact then ", exact" else ": WRONG" end)"] | @tsv' line |
		awk -F'\t' '{printf "%-8s %12.0f %14.0f %10d %10d %s\n", $1, $2, $3, $4, $5, $6}'
	jq -r '.stats |
		"         \(.resent) sent again, \(.inner_refused) not taken by inner agents as strangers, \(.inner_duplicates) as duplicates; windows closed \(.late_ms) ms late, \(.latest_ms) at worst"' \
		line
done
