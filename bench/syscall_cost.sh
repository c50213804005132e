#!/usr/bin/env bash
# What a traced system call costs through BPF, beside bpftrace on the same tracepoint: rounds of
# each in turn, medians of nanoseconds a call.
#   bench/syscall_cost.sh [ROUNDS] [CALLS]
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-15} calls=${2:-300000}
fay=build/bin/fay target=build/bin/fay_bench_syscall
[ -x "$fay" ] && [ -x "$target" ] || { echo "scripts/build release first" >&2; exit 2; }
[ "$(id -u)" = 0 ] || { echo "BPF needs root" >&2; exit 1; }
work=$(mktemp -d)
. scripts/owned.sh
trap 'kill_owned INT; rm -rf "$work"' EXIT

number=110 # getppid
fay_count='cluster.Syscall("getppid").Count()'
fay_group='from c in cluster.Syscall("getppid") group c by c.comm into g
	select new { g.Key, n = g.Count() }'
fay_duration='cluster.Syscall("getppid").Histogram(c => c.Duration)'
bpftrace_args="tracepoint:raw_syscalls:sys_enter /args->id == $number/"
bpftrace_count="$bpftrace_args { @ = count(); }"
bpftrace_group="$bpftrace_args { @[comm] = count(); }"
bpftrace_duration="$bpftrace_args { @start[tid] = nsecs; } tracepoint:raw_syscalls:sys_exit /@start[tid]/ { @ = hist(nsecs - @start[tid]); delete(@start[tid]); }"

# run NAME READY COMMAND...: the tracer in the background, the target's time, the tracer's end
run() {
	local name=$1 ready=$2
	shift 2
	: >"$work/log"
	"$@" >"$work/log" 2>&1 &
	tracer=$!
	own $tracer
	for _ in $(seq 400); do grep -q "$ready" "$work/log" && break; sleep 0.05; done
	grep -q "$ready" "$work/log" || { cat "$work/log" >&2; exit 4; }
	sleep 1 # bpftrace says so before it has attached
	"$target" "$calls" >>"$work/$name"
	kill -INT "$tracer"
	wait "$tracer" || true
}
names=(untraced fay_count fay_group fay_duration)
# bpftrace wants tracefs where it expects it.
if command -v bpftrace >/dev/null && [ "${FAY_BENCH_INSIDE:-}" = "" ]; then
	FAY_BENCH_INSIDE=1 exec unshare -m bash \
		-c 'mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing; exec "$0" "$@"' \
		"$PWD/bench/syscall_cost.sh" "$@"
fi
if command -v bpftrace >/dev/null; then
	names+=(bpftrace_count bpftrace_group bpftrace_duration)
	bpftrace --version
else
	echo "bpftrace is not installed: not compared"
fi
for ((round = 0; round < rounds; round++)); do
	for name in "${names[@]}"; do
		case $name in
		untraced) "$target" "$calls" >>"$work/$name" ;;
		fay_*) run "$name" "fay: tracing" "$fay" trace "${!name}" ;;
		*) run "$name" "Attaching" bpftrace -B none -e "${!name}" ;;
		esac
	done
done
median() { sort -n "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)], v[1], v[NR] }'; }
base=$(median "$work/untraced" | cut -d' ' -f1)
printf '%-18s %10s %10s   %s\n' "" "ns a call" "added" "least .. most"
for name in "${names[@]}"; do
	read -r middle least most <<<"$(median "$work/$name")"
	printf '%-18s %10.1f %10.1f   %s .. %s\n' "$name" "$middle" \
		"$(bc -l <<<"$middle - $base")" "$least" "$most"
done
