#!/usr/bin/env bash
# The tables of docs/performance.md from what bench/stream/stream.sh wrote, with or without --early:
# stream_table.sh [FILE.json]
set -euo pipefail
jq -rs '
def number: tostring | explode | reverse | [recurse(.[3:]; length > 0)[:3]] | map(reverse |
	implode) | reverse | join(",");
def percent: . * 1000 | round / 10 | "\(if . == floor then "\(.).0" else . end) %";
def megabytes: .bytes / (.events + .lost) * .calls_per_second / 1e6 | round;
(.[] | select(.what == "machine") |
	"\(.cpu), \(.processors) processors, load \(.load_at_start) at the start, \(.date), commit \(.commit)", ""),
if any(.[]; .what == "not traced") then
	"| calls asked for | | calls/s | events | lost | bytes written | fay'"'"'s processor time |",
	"| --- | --- | --- | --- | --- | --- | --- |",
	(.[] | select(.what != "machine") | "| \(if .what == "not traced" then .asked | number else "" end) | \(.what) | \(
		if .what == "not traced" then "\(.calls_per_second | number) | | | | |"
		elif .seconds then "| \(.events | number) | | | \(.seconds * 100 | round / 100) s |"
		else "\(.calls_per_second | number) | \(.events | number) | \(.lost | number) | \(.bytes | number) | \(.fay_cpu_share | percent) |" end)")
else
	"| threads | asked for, events/s | called | lost | MB/s | fay'"'"'s processor time |",
	"| --- | --- | --- | --- | --- | --- |",
	(.[] | select(.what != "machine") | "| \(.threads) | \(.asked | number) | \(.calls_per_second | number) | \(.lost | number) | \(megabytes) | \(.fay_cpu_share | percent) |")
end' "${1:-$(dirname "$0")/../results/stream.json}"
