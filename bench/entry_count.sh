#!/usr/bin/env bash
# Added cost of a traced call (entry; entry and return; duration), interleaved: in each round the same loop runs untraced, under fay, under a kernel
# uprobe that counts (bpftrace), and as the hand-made bounds. Prints medians with quartiles of (traced - untraced) of the same round.
#   bench/entry_count.sh [ROUNDS]      default 7; JSON goes to $OUT if that is set
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-7}
bin=${BIN:-$PWD/build/bin}
calls=${CALLS:-50000000}
uprobe_calls=${UPROBE_CALLS:-500000}
work=$(mktemp -d)
target=
cleanup() { [ -z "$target" ] || kill "$target" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$work"; }
trap cleanup EXIT

mkfifo "$work/in"
"$bin/fay_bench_target" 1 <"$work/in" >"$work/out" &
target=$!
exec 9>"$work/in"
lines=0
run() { # FUNCTION CALLS LABEL
	echo "run $1 $2" >&9
	lines=$((lines + 1))
	while [ "$(wc -l <"$work/out")" -lt $lines ]; do sleep 0.01; done
	echo "$3 $(tail -1 "$work/out" | cut -d' ' -f2,3)" >>"$work/round"
}
under_fay() { # LABEL QUERY
	rm -f "$work/fay.err"
	"$bin/fay" trace --json -p "$target" "$2" >"$work/fay.json" 2>"$work/fay.err" &
	local tracer=$!
	until grep -qs "fay: tracing" "$work/fay.err"; do kill -0 $tracer || { cat "$work/fay.err"; exit 1; }; sleep 0.01; done
	run work "$calls" "$1"
	kill -INT $tracer
	wait $tracer
	grep -q "\"final\":true.*:$calls" "$work/fay.json" || [ "$1" != fay_count ] || { echo "fay's count is wrong" >&2; cat "$work/fay.json" >&2; exit 1; }
}
under_image() { # LABEL IMAGE
	rm -f "$work/fay.err"
	"$bin/fay" trace --json -p "$target" --probe "$2" >"$work/fay.json" 2>"$work/fay.err" &
	local tracer=$!
	until grep -qs "fay: tracing" "$work/fay.err"; do kill -0 $tracer || { cat "$work/fay.err"; exit 1; }; sleep 0.01; done
	run work "$calls" "$1"
	kill -INT $tracer
	wait $tracer
	grep -q "\"final\":true.*:$calls" "$work/fay.json" || { echo "$1: fay's count is wrong" >&2; cat "$work/fay.json" >&2; exit 1; }
}
cat >"$work/pair.c" <<'EOF'
#include <fay/probe.h>
FAY_COUNT(entries);
FAY_COUNT(returns);
FAY_ENTRY("fay_bench_target!work") { fay_count(&entries); }
FAY_RETURN("fay_bench_target!work") { fay_count(&returns); }
EOF
cat >"$work/duration.c" <<'EOF'
#include <fay/probe.h>
FAY_CELL(durations, FAY_VALUES(FAY_VALUE_COUNT(n), FAY_VALUE_HISTOGRAM(ns)));
FAY_RETURN("fay_bench_target!work") { fay_count(&durations.n); fay_hist(&durations.ns, event->duration); }
EOF
for image in pair duration; do "$bin/fay" cc "$work/$image.c" -o "$work/$image.fay"; done
under_bpftrace() { # LABEL PROGRAM
	rm -f "$work/bpftrace.out"
	bpftrace -e "$2" >"$work/bpftrace.out" 2>&1 &
	local tracer=$!
	until grep -qs Attaching "$work/bpftrace.out"; do kill -0 $tracer || { cat "$work/bpftrace.out"; return 1; }; sleep 0.05; done
	sleep 0.5
	run work "$uprobe_calls" "$1"
	kill -INT $tracer
	wait $tracer || true
}
run work "$calls" warmup
: >"$work/all"
for round in $(seq "$rounds"); do
	: >"$work/round"
	run work "$calls" untraced
	run bound_inlined "$calls" bound_inlined
	run bound_called "$calls" bound_called
	run bound_return "$calls" bound_return
	run bound_return_called "$calls" bound_return_called
	run bound_return_timed "$calls" bound_return_timed
	under_fay fay_count 'cluster.Function("fay_bench_target!work").Count()'
	under_fay fay_histogram 'cluster.Function("fay_bench_target!work").Histogram(w => w.Arg(2))'
	under_fay fay_group 'cluster.Function("fay_bench_target!work").GroupBy(w => w.Arg(2)/1024).Select(g => new { g.Key, n = g.Count() })'
	under_image fay_entry_return "$work/pair.fay"
	under_image fay_duration "$work/duration.fay"
	if command -v bpftrace >/dev/null; then
		under_bpftrace uprobe_pair "uprobe:$bin/fay_bench_target:work { @a = count(); } uretprobe:$bin/fay_bench_target:work { @b = count(); }"
		under_bpftrace uprobe_duration "uprobe:$bin/fay_bench_target:work { @s[tid] = nsecs; } uretprobe:$bin/fay_bench_target:work { @ = hist(nsecs - @s[tid]); }"
		under_bpftrace uprobe_count "uprobe:$bin/fay_bench_target:work { @ = count(); }"
		under_bpftrace uprobe_group "uprobe:$bin/fay_bench_target:work { @[arg2/1024] = count(); }"
	fi
	awk -v r="$round" '$1 == "untraced" {n = $2; c = $3} {a[NR] = $0} END {for (i in a) {split(a[i], f); if (f[1] == "untraced") print r, f[1], f[2], f[3]; else print r, f[1], f[2] - n, f[3] - c}}' "$work/round" >>"$work/all"
	echo "round $round of $rounds done" >&2
done
exec 9>&-
summary() {
	awk '{print $2}' "$work/all" | sort -u | while read -r label; do
		for column in 3 4; do
			awk -v l="$label" -v c=$column '$2 == l {print $c}' "$work/all" | sort -g |
				awk -v l="$label" -v u=$([ $column = 3 ] && echo ns || echo cycles) '{v[NR] = $1} function q(p) {i = 1 + p * (NR - 1); f = int(i); return f == NR ? v[NR] : v[f] + (i - f) * (v[f + 1] - v[f])} END {printf "%s %s %.3f %.3f %.3f\n", l, u, q(.5), q(.25), q(.75)}'
		done
	done
}
summary >"$work/summary"
echo "added per call over untraced, median [quartiles] of $rounds interleaved rounds ($(sed -n 's/^model name\s*: //p' /proc/cpuinfo | head -1), $(date +%F))"
awk '{k = $1; if ($2 == "ns") ns[k] = sprintf("%9.2f [%.2f, %.2f]", $3, $4, $5); else cy[k] = sprintf("%9.1f [%.1f, %.1f]", $3, $4, $5); n[k]} END {printf "%-16s %-28s %s\n", "mode", "ns", "TSC cycles"; for (k in n) printf "%-16s %-28s %s\n", k, ns[k], cy[k] | "sort"}' "$work/summary"
if [ -n "${OUT:-}" ]; then
	awk -v d="$(date +%F)" -v r="$rounds" 'BEGIN {printf "{\"date\":\"%s\",\"rounds\":%d,\"results\":[", d, r} {printf "%s{\"mode\":\"%s\",\"unit\":\"%s\",\"median\":%s,\"q1\":%s,\"q3\":%s}", (NR > 1 ? "," : ""), $1, $2, $3, $4, $5} END {print "]}"}' "$work/summary" >"$OUT"
fi
