# Inside the machine, read by cost.sh: other tracers at $F. Those that count must have counted the
# 40,000 calls of added().

# with_peer NAME READY COUNTED COMMAND...: instructions added while COMMAND runs, from when it says
# READY on; at its end it must say COUNTED and 40000.
with_peer() {
	local name=$1 ready=$2 counted=$3 pid
	shift 3
	: >/tmp/peer
	"$@" >/tmp/peer 2>&1 &
	pid=$!
	while ! grep -q "$ready" /tmp/peer && [ -d /proc/$pid ]; do sleep 0.5; done
	sleep 3
	kill -STOP $pid
	added
	kill -CONT $pid
	kill -INT $pid
	# its sleep outlives it, and must not hold what the caller reads
	(sleep 60 && kill -9 $pid) >/dev/null 2>&1 &
	wait $pid
	kill $! 2>/dev/null
	grep -q "$counted.*40000" /tmp/peer || {
		echo "FAIL $name: did not count 40000 calls" && cat /tmp/peer
	} >&2
}
# The same for what runs the program itself; it prints one cost.
under() { echo $(($("$@" | grep -x '[0-9]*' | tail -1) - base)); }

grep -x '.*_sys_getppid' available_filter_functions >set_ftrace_filter && echo function_graph \
	>current_tracer && graph=$(added)
echo nop >current_tracer
: >set_ftrace_filter
echo "function_graph $graph"
echo "perf stat, tracepoint $(under perf stat -a -e syscalls:sys_enter_getppid kernel_calls cost \
	20000 cost 20000)"
echo "perf record, tracepoint $(under perf record -a -o /tmp/perf.data \
	-e syscalls:sys_enter_getppid kernel_calls cost 20000 cost 20000)"
if [ -e /stap/stap_entry.ko ]; then
	echo "SystemTap, entry count $(with_peer 'SystemTap, entry' ready counted staprun \
		/stap/stap_entry.ko)"
	echo "SystemTap, return with duration $(with_peer 'SystemTap, return' ready counted \
		staprun /stap/stap_return.ko)"
fi
mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null
D=__do_sys_getppid
if [ -e /libbpf_peer.bpf.o ]; then
	for what in entry leave duration; do
		echo "libbpf, $what $(with_peer "libbpf, $what" ready counted libbpf_peer \
			/libbpf_peer.bpf.o $what)"
	done
fi
echo "bpftrace, kprobe count $(with_peer 'bpftrace, kprobe' Attaching @: bpftrace \
	-e "kprobe:$F { @ = count(); }")"
echo "bpftrace, kfunc (fentry) count $(with_peer 'bpftrace, kfunc' Attaching @: bpftrace \
	-e "kfunc:$D { @ = count(); }")"
echo "bpftrace, kretfunc (fexit) count $(with_peer 'bpftrace, kretfunc' Attaching @: bpftrace \
	-e "kretfunc:$D { @ = count(); }")"
echo "bpftrace, kretprobe count $(with_peer 'bpftrace, kretprobe' Attaching @: bpftrace \
	-e "kretprobe:$F { @ = count(); }")"
echo "bpftrace, kfunc and kretfunc with duration $(with_peer 'bpftrace, duration' Attaching n: \
	bpftrace -e "kfunc:$D { @s[tid] = nsecs; } kretfunc:$D { @d = sum(nsecs - @s[tid]); @n = count(); }")"
