#!/usr/bin/env bash
# The table of docs/performance.md from what bench/cluster/cluster_overhead.sh wrote:
# cluster_overhead_table.sh [FILE.json]
set -euo pipefail
jq -rs '
def round(n): . * pow(10; n) | round / pow(10; n);
def percent: (. - 1) * 100 | round(1) + 0 | if . >= 0 then "+\(.)" else "\(.)" end;
def share: "\(.median | percent) % [\(.q1 | percent), \(.q3 | percent)]";
(.[] | select(.what == "machine") |
	"\(.cpu), \(.processors) processors, load \(.load_at_start) at the start, \(.date)", ""),
"| what | processes | threads each | an allocation untraced, ns | traced | traced, with each thread'"'"'s first event | counted | lost | exact | agent, share of a processor |",
"| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
(.[] | select(.what != "machine") |
	"| \(.what) | \(.processes) | \(.threads) | \(.untraced_ns.median | round(1)) | \(.steady | share) | \(.first | share) | \(.counted) | \(.lost) | \(if .exact then "yes" else "NO" end) | \(.agent_share.median * 100 | round(1)) % |"),
([.[] | select(.what == "by thread") | .steady.median] | "", "By thread, mean of \(length): \(add / length | percent) %, up to \(max | percent) %.")' \
"${1:-$(dirname "$0")/../results/cluster_overhead.json}"
