#!/usr/bin/env bash
# Events that leave the traced program one by one, and events that are aggregated where they happen.
#
#     bench/stream/stream.sh [SECONDS [THREADS [RATE...]]]   rows of 32 bytes (time, thread, two
#                                                            arguments) saved to disk, at growing
#                                                            rates
#     bench/stream/stream.sh --early [SECONDS]               one question at 1,000,000 and
#                                                            20,000,000 calls/s asked for: answered
#                                                            in the probe, or from saved rows
#
# For each run: calls, events saved or counted, lost, processor time of fay as a share of one
# processor. Saved (counted) and lost together must be the calls, exactly.
# One JSON object a line, the machine first; bench/stream/stream_table.sh makes tables of them.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d -p "${TMPDIR:-.}")
trap 'rm -rf "$work"' EXIT
rows='from e in cluster.Function("fay_stream_target!event") select new { e.time, e.tid,
	n = e.Arg(0), size = e.Arg(1) }'
groups='from e in cluster.Function("fay_stream_target!event") group e by e.Arg(1) / 64 into g
	select new { g.Key, n = g.Count() }'

# target RATE SECONDS THREADS: starts it; `go` lets it run and waits for its two numbers
target() {
	rm -f "$work/in" "$work/err" "$work/rows.fay"
	mkfifo "$work/in"
	build/bin/fay_stream_target "$@" <"$work/in" >"$work/target" &
	target=$!
	exec 9>"$work/in"
	until grep -q ready "$work/target"; do sleep 0.05; done
}
go() {
	echo go >&9
	until [ "$(wc -l <"$work/target")" = 2 ]; do sleep 0.2; done
	exec 9>&-
	wait "$target" || true
	read -r calls nanoseconds < <(tail -1 "$work/target")
}

# measure NAME RATE SECONDS THREADS FAY-ARGUMENTS...
measure() {
	local name=$1 rate=$2 seconds=$3 threads=$4 tracer lost had
	shift 4
	target "$rate" "$seconds" "$threads"
	( TIMEFORMAT='%U %S'; time build/bin/fay trace --json -p "$target" "$@" >"$work/out" \
		2>"$work/err" ) 2>"$work/time" &
	tracer=$!
	until grep -q tracing "$work/err" 2>/dev/null; do sleep 0.05; done
	go
	wait "$tracer"
	lost=$(jq -s 'map(select(.type == "end"))[0].events_lost' "$work/out")
	had=$(sed -n 's/^fay: \([0-9]*\) events saved.*/\1/p' "$work/err")
	[ -n "$had" ] || had=$(jq -s 'map(select(.type == "row" and .final) | .values.n) | add' \
		"$work/out")
	[ $((had + lost)) = "$calls" ] || {
		echo "bench/stream/stream.sh: $had events and $lost lost are not $calls calls" >&2
		exit 1
	}
	jq -nc --arg name "$name" --argjson asked "$rate" --argjson calls "$calls" --argjson ns \
		"$nanoseconds" --argjson had "$had" --argjson lost "$lost" \
		--argjson threads "$threads" --arg time "$(tail -1 "$work/time")" --argjson bytes \
		"$(stat -c %s "$work/rows.fay" 2>/dev/null || echo 0)" \
		'{what: $name, asked: $asked, threads: $threads, calls_per_second: ($calls / $ns * 1e9 | round), events: $had, lost: $lost, bytes: $bytes,
		  fay_cpu_share: (($time | split(" ") | map(tonumber) | add) / ($ns / 1e9) * 1000 | round / 1000)}'
}

jq -nc --arg cpu "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1)" --argjson n "$(nproc)" \
	--argjson load "$(cut -d' ' -f1 /proc/loadavg)" --arg date "$(date -u +%F)" \
	--arg commit "$(git log -1 --format=%h 2>/dev/null)" \
	'{what: "machine", cpu: $cpu, processors: $n, load_at_start: $load, date: $date, $commit}'
if [ "${1:-}" = --early ]; then
	seconds=${2:-5}
	for rate in 1000000 20000000; do
		target "$rate" "$seconds" 1
		go
		jq -nc --argjson asked "$rate" --argjson calls "$calls" --argjson ns \
			"$nanoseconds" \
			'{what: "not traced", asked: $asked, threads: 1, calls_per_second: ($calls /
				$ns * 1e9 | round)}'
		measure "aggregated in the probe" "$rate" "$seconds" 1 "$groups"
		measure "rows saved" "$rate" "$seconds" 1 --save "$work/rows.fay" "$rows"
		start=$(date +%s%N)
		build/bin/fay trace --json "file(\"$work/rows.fay\").Count()" >"$work/out" \
			2>/dev/null
		jq -nc --argjson events \
			"$(jq -s 'map(select(.type == "row"))[0].values.Count' "$work/out")" \
			--argjson ns $(($(date +%s%N) - start)) \
			'{what: "and counted from the file afterwards", events: $events, seconds:
				($ns / 1e6 | round / 1000)}'
	done
	exit
fi
seconds=${1:-5} threads=${2:-1}
shift $(($# < 2 ? $# : 2))
rates=("$@")
[ ${#rates[@]} -gt 0 ] || rates=(250000 500000 1000000 2000000 4000000)
for rate in "${rates[@]}"; do
	measure "rows saved" "$rate" "$seconds" "$threads" --save "$work/rows.fay" "$rows"
done
