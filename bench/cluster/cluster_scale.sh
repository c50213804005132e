#!/usr/bin/env bash
# How a query's traffic grows with the machines: agents that were run (bench/cluster/cluster.sh with
# JSON=...), the same simulated, and simulations to 100,000 machines with what a message costs on
# this machine. Prints JSON lines; bench/cluster/cluster_plot.sh draws them.
# Usage: bench/cluster/cluster_scale.sh MEASURED-FILE >bench/results/cluster_scale.json
set -euo pipefail
measured=${1:?a file that bench/cluster/cluster.sh appended to}
bin=$(realpath "${BIN:-$(dirname "$0")/../../build/bin}")
# The least of nine: the machine may be shared. A message that takes longer than one a thousand
# times as large says nothing.
costs=$(for _ in 1 2 3 4 5 6 7 8 9; do "$bin/fay_bench_cluster" costs; done |
	jq -cs '[.[] | select(.sign_byte_ns > 0 and .verify_byte_ns > 0) | to_entries[]] |
		group_by(.key) | map({key: .[0].key, value: (map(.value) | min)}) | from_entries')
message=$(jq -r '"\(.sign_ns) \(.sign_byte_ns) \(.verify_ns) \(.verify_byte_ns) \(.merge_ns)"' \
	<<<"$costs")
jq -c '{kind: "costs"} + .' <<<"$costs"
jq -c '{kind: "measured"} + .' "$measured"
# As the agents were that ran: of one machine and its processors, looking every 50 ms, with windows
# as far behind one another and as many HELLOs as they had.
phases=$(mktemp)
trap 'rm -f "$phases"' EXIT
while read -r run; do
	jq -r '.behind_ms[]' <<<"$run" >"$phases"
	read -r machines fanout groups spread hellos \
		< <(jq -r '"\(.machines) \(.fanout) \(.groups) \(.spread_ms) \(.hellos_per_s)"' \
		<<<"$run")
	"$bin/cluster_sim" "$machines" "$fanout" "$groups" 1 "$spread" 50 "$(nproc)" "$hellos" 300 \
		$message "$phases" | jq -c '{kind: "check"} + .'
done <"$measured"
for machines in 16 64 256 1000 4000 16000 50000 100000; do
	for fanout in 0 4 16 64; do
		"$bin/cluster_sim" "$machines" "$fanout" 1000 1 50 2 0 20 300 $message |
			jq -c '{kind: "simulated"} + .'
	done
done
