#!/usr/bin/env bash
# Instructions that tracing adds to a getppid system call: with -icount shift=0 the guest's time
# stamp counter counts executed instructions. One boot, one CPU, each way of tracing in turn.
# Compared is fay with its own limit (40 for an entry count) and with the others; nothing here
# depends on the host's speed.
# FAY_VM_PEERS=1: other tracers in the same boot, too, as far as they are installed here
# (scripts/deps --bench): ftrace's function_graph, perf, bpftrace, libbpf, SystemTap.
. "$(dirname "$0")/lib.sh"
cat >"$work/script" <<'IN'
. /inside.sh
F=__x64_sys_getppid
cost() { kernel_calls cost 20000 >/dev/null; kernel_calls cost 20000; }
added() { echo $(($(cost) - base)); }
# with_fay QUERY
with_fay() {
	begin cost --for 900s "$1"
	[ -d /proc/$fay ] || { cat /tmp/cost.said >&2; echo 0; return; }
	kill -STOP $fay
	added
	kill -CONT $fay
	kill -INT $fay
	wait $fay
}
cd /sys/kernel/tracing
base=$(cost)
count=$(with_fay "cluster.Function(kernel, \"$F\").Count()")
by_pid=$(with_fay "from c in cluster.Function(kernel, \"$F\") group c by c.pid into g
	select new { g.Key, n = g.Count() }")
returned=$(with_fay "cluster.Return(kernel, \"$F\").Count()")
duration=$(with_fay "from c in cluster.Return(kernel, \"$F\") group c by 1 into g
	select new { n = g.Sum(c => c.Duration) }")

echo "p:fay_p $F" >kprobe_events && echo 1 >events/kprobes/fay_p/enable && kprobe=$(added)
echo 0 >events/kprobes/fay_p/enable
: >kprobe_events
echo "r:fay_r $F" >kprobe_events && echo 1 >events/kprobes/fay_r/enable && kretprobe=$(added)
echo 0 >events/kprobes/fay_r/enable
: >kprobe_events
grep -x '.*_sys_getppid' available_filter_functions >set_ftrace_filter && echo function \
	>current_tracer && tracer=$(added)
echo nop >current_tracer
: >set_ftrace_filter
echo 1 >events/syscalls/sys_enter_getppid/enable && event=$(added)
echo 0 >events/syscalls/sys_enter_getppid/enable
if [ -e /peers.sh ]; then
	. /peers.sh
fi
# What fentry is attached to has the name that the kernel's types know.
D=__do_sys_getppid
rmmod fay && mv /lib/modules/*/extra/fay.ko /fay.ko
bpf_count=$(with_fay "cluster.Function(kernel, \"$D\").Count()")
bpf_returned=$(with_fay "cluster.Return(kernel, \"$D\").Count()")
bpf_duration=$(with_fay "from c in cluster.Return(kernel, \"$D\") group c by 1 into g
	select new { n = g.Sum(c => c.Duration) }")
again=$(cost)
cd /
echo "getppid untraced: $base, at the end $again"
echo "added: fay entry count $count, by pid $by_pid, return count $returned, return with duration $duration; kprobe $kprobe, kretprobe $kretprobe, function tracer $tracer, tracepoint event $event"
echo "added through BPF: fay entry count $bpf_count, return count $bpf_returned, return with duration $bpf_duration"
others="$kprobe $kretprobe $tracer $event $bpf_count $bpf_returned $bpf_duration"
for each in $count $by_pid $returned $duration $others; do
	[ "$each" -gt 10 ] || check "every way of tracing costs something" "more than 10" "$each"
done
[ "$count" -le 40 ] || check "an entry count adds at most 40" "up to 40" "$count"
for other in $others; do
	[ "$count" -lt "$other" ] || check "an entry count costs fewer than all others" \
		"less than $other" "$count"
done
for other in $kprobe $kretprobe $tracer $event $bpf_duration; do
	[ "$duration" -lt "$other" ] ||
		check "fewer than all others, entry and return with duration" "less than $other" \
		"$duration"
done
finish
IN
peers=()
if [ -n "${FAY_VM_PEERS:-}" ]; then
	peers=(--time 3000 --memory 1024 --with "$here/peers/peers.sh:peers.sh" --with
		"$(command -v perf)" --with "$(command -v bpftrace)")
	if "$here/peers/stap.sh" "$kernel" "$BUILD/stap"; then
		peers+=(--with "$BUILD/stap/stap_entry.ko:stap/stap_entry.ko" --with
			"$BUILD/stap/stap_return.ko:stap/stap_return.ko")
		peers+=(--with "$(command -v staprun)" --with
			/usr/lib/systemtap/stapio:usr/lib/systemtap/stapio)
	fi
	if "$here/peers/libbpf.sh" "$BUILD/libbpf_peer"; then
		peers+=(--with "$BUILD/libbpf_peer/libbpf_peer" --with
			"$BUILD/libbpf_peer/libbpf_peer.bpf.o:libbpf_peer.bpf.o")
	fi
fi
inside "$work/script" --icount "${peers[@]}"
