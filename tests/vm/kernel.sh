#!/usr/bin/env bash
# Verified native probes in the kernel: exact counts, values, groups, filters, what is refused, and
# how things end. FAY_VM_APPEND: parameters for the kernel.
. "$(dirname "$0")/lib.sh"
cat >"$work/script" <<'IN'
. /inside.sh
case $(cat /proc/cmdline) in *preempt=full*) check_has "preemption" "Dynamic Preempt: full" \
	"$(dmesg)" ;; esac
q() { fay trace --json "$@" 2>/tmp/said; }

check "count" 1000 \
	"$(q 'cluster.Function(kernel, "__x64_sys_getppid").Count()' -- kernel_calls getppid 1000 |
	value Count)"
check "filter, sum of arguments" 2080 \
	"$(q 'from io in cluster.Function(kernel, "vfs_read") where io.comm == "kernel_calls"
		group io by io.pid into g select new { n = g.Sum(io => io.Arg(2)) }' \
	-- kernel_calls read 64 | value n)"
check "returned" \
	-9 "$(q 'from c in cluster.Return(kernel, "__x64_sys_close") where c.comm == "kernel_calls"
		&& c.ReturnValue < 0 group c by c.ReturnValue into g select new { v = g.Key,
		n = g.Count() }' \
	-- kernel_calls badclose 37 | value v)"
check "returns counted" 37 \
	"$(q 'from c in cluster.Return(kernel, "__x64_sys_close") where c.comm == "kernel_calls" &&
		c.ReturnValue < 0 group c by c.ReturnValue into g select new { v = g.Key,
		n = g.Count() }' \
	-- kernel_calls badclose 37 | value n)"
q 'from f in cluster.Function(kernel, "vfs_*") group f by new { f.pid, f.comm, f.function } into g
	select new { g.Key.pid, g.Key.comm, g.Key.function, n = g.Count() }' \
	-- kernel_calls read 500 >/tmp/rows
check "vfs_* by pid, comm, function" 500 \
	"$(grep '"comm":"kernel_calls","function":"vfs_read"' /tmp/rows | value n)"
check "nothing lost" 0 "$(sed -n 's/.*"events_lost":\([0-9]*\).*/\1/p' /tmp/rows)"
check "a call sleeps while it is traced" 20 \
	"$(q 'from c in cluster.Return(kernel, "hrtimer_nanosleep") where c.comm == "kernel_calls"
		&& c.Duration >= 1000000 group c by c.pid into g select new { n = g.Count() }' \
	-- kernel_calls sleep 20 | value n)"

check "calls that fail" 37 \
	"$(q 'cluster.Return(kernel, "__x64_sys_close").Count(c => c.Failed &&
		c.comm == "kernel_calls")' -- kernel_calls badclose 37 | value Count)"
check "an int that is returned" 50 \
	"$(q 'cluster.Return(kernel, "user_path_at_empty").Count(c => c.ReturnValue == -2 &&
		c.comm == "kernel_calls")' -- kernel_calls access 50 | value Count)"
q 'from c in cluster.Return(kernel, "vfs_*") where c.comm == "kernel_calls"
	group c by c.function into g select new { f = g.Key, n = g.Count(),
	sum = g.Sum(c => c.ReturnValue) }' \
	-- kernel_calls read 64 >/tmp/rows
check_has "values of several types at once" '"f":"vfs_read","n":64,"sum":2080' "$(cat /tmp/rows)"
check_has "an int beside them" '"f":"vfs_open","n":1,"sum":0' "$(cat /tmp/rows)"

# Of some processes only, while another one calls the same.
(while :; do kernel_calls getpgid 50; done) &
others=$!
check "a command's own calls" 100 \
	"$(q 'cluster.Function(kernel, "__x64_sys_getpgid").Count()' -- kernel_calls getpgid 100 |
	value Count)"
check_has "natively" "native code through fay.ko" "$(cat /tmp/said)"
check "a process's" 0 \
	"$(q --for 1s -p 1 'cluster.Return(kernel, "__x64_sys_getpgid").Count()' | value Count)"
check "a thread's" 0 "$(q --for 1s --tid 1 'cluster.Function(kernel, "__x64_sys_getpgid").Count()' |
	value Count)"
q --for 4s --comm kernel_calls 'cluster.Function(kernel, "__x64_sys_getpgid").Count()' >/tmp/rows
[ "$(value Count </tmp/rows)" -gt 0 ] || check "processes of a name" "some" "$(cat /tmp/rows)"
check_has "through BPF" "through BPF" "$(cat /tmp/said)"
kill $others

# What is refused, in words.
q 'cluster.Function(kernel, "no_such_function").Count()'; check "no such function" 2 $?
check_has "no such function, said" "no kernel function matches" "$(cat /tmp/said)"
q 'cluster.Function(kernel, "exc_page_fault").Count()'; check "notrace" 1 $?
check_has "notrace, said" "has no hotpatch point" "$(cat /tmp/said)"
q 'cluster.Return(kernel, "do_exit").Count()'; check "never returns" 1 $?
check_has "never returns, said" "does not return" "$(cat /tmp/said)"
# Tasks are killed, leave by a system call, and are ended by seccomp, in whatever functions they
# are: no call may be left that never ends.
for ends in "*signal*" "*seccomp*" "*user_mode*"; do
	q --verbose "cluster.Return(kernel, \"$ends\").Count()" -- kernel_calls killed 5 exit 5 \
		strict 5 >/tmp/rows
	check "tasks that end in $ends" 0 $?
	check "calls under way then" 0 "$(grep -c 'have not returned' /tmp/said)"
	grep 'not traced.*if its task' /tmp/said >>/tmp/ends
done
for function in __secure_computing x64_sys_call; do
	q "cluster.Return(kernel, \"$function\").Count()" && check "$function" refused traced
	cat /tmp/said >>/tmp/ends
done
for function in get_signal arch_do_signal_or_restart __seccomp_filter __secure_computing \
	exit_to_user_mode_prepare x64_sys_call; do
	check_has "left out: $function" \
		"kernel!$function: does not return if its task ends or is killed in it" \
		"$(cat /tmp/ends)"
done
q -p 4194303 'cluster.Function(kernel, "vfs_read").Count()'
check "a process that is not there" 1 $?
check_has "said" "there is no process" "$(cat /tmp/said)"
fay trace -p 1 --probe /probes/pair.fay >/dev/null 2>/tmp/said
check "a process with an image for the kernel" 2 $?
check_has "a process, said" "in all processes" "$(cat /tmp/said)"

# The machine sleeps (S3), and wakes with the stack that it had before: no call may be left that
# never ends.
begin slept --verbose --json --for 600s 'cluster.Return(kernel, "*acpi_*").Count()'
echo +4 >/sys/class/rtc/rtc0/wakealarm
echo mem >/sys/power/state || check "the machine sleeps" yes no
kill -INT $fay
wait $fay
check "a trace while the machine sleeps" 0 $?
check "calls under way then" 0 "$(grep -c 'have not returned' /tmp/slept.said)"
check_has "it has slept" "Low-level resume complete" "$(dmesg)"
check_has "left out: x86_acpi_enter_sleep_state" \
	"kernel!x86_acpi_enter_sleep_state: does not return if the machine sleeps in it" \
	"$(cat /tmp/slept.said)"

# ftrace gives up after a fault while functions are traced: it takes nothing back, so all that is
# called stays, and only that. One of them is a kprobe's, too, and is called by ftrace's list: a
# session's entry there must not make the kernel complain when the session has ended. For good: the
# last here.
echo 'p:fay_beside __x64_sys_getpgid' >/sys/kernel/tracing/kprobe_events &&
	echo 1 >/sys/kernel/tracing/events/kprobes/fay_beside/enable || check "a kprobe" made no
begin held --for 600s \
	--json 'cluster.Function(kernel, "__x64_sys_getp*id").Count(c => c.comm == "kernel_calls")'
check_has "beside a kprobe" "sys_getpgid (2)" "$(cat /sys/kernel/tracing/enabled_functions)"
check_has "alone" "sys_getppid (1)" "$(cat /sys/kernel/tracing/enabled_functions)"
insmod /ftrace_dead.ko kill=0x$(sed -n 's/ T ftrace_kill$//p' /proc/kallsyms) ||
	check "ftrace is off" yes no
kernel_calls getpgid 60 getppid 40
kill -INT $fay
wait $fay
check "ftrace gives up: the trace fails" 1 $?
check_has "ftrace gives up, said" "a fault has switched ftrace off" "$(cat /tmp/held.said)"
check "ftrace gives up: what was counted" 100 "$(value Count </tmp/held.rows)"
kernel_calls getpgid 1000 getppid 1000
rmmod fay 2>/dev/null && check "fay.ko stays" held unloaded
fay trace 'cluster.Function(kernel, "__x64_sys_getppid").Count()' -- kernel_calls getppid 10 \
	>/tmp/rows 2>/tmp/said
check "ftrace gave up: the next trace" 1 $?
check_has "ftrace gave up, said" "a fault has switched ftrace off" "$(cat /tmp/said)"
kernel_calls getpgid 1000 getppid 1000
finish fay_s0
IN
dead=$(module ftrace_dead) || fail "ftrace_dead.ko is not built"
inside "$work/script" ${FAY_VM_APPEND:+--append "$FAY_VM_APPEND"} \
	--with "$BUILD/tests/vm/pair.fay:probes/pair.fay" --with "$dead:ftrace_dead.ko"
