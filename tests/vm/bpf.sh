#!/usr/bin/env bash
# The same queries through BPF in the machine, where fay.ko is not loaded and the kernel grants
# fentry; and arguments by name in both.
. "$(dirname "$0")/lib.sh"
cat >"$work/script" <<'IN'
. /inside.sh
q() { fay trace --json "$@" 2>/tmp/said; }

# Events saved by one query and asked by another: by number and by name; that calls failed, and with
# what.
save_functions() {
	fay trace --save /tmp/saved.fay 'cluster.Function(kernel, "vfs_read")' -- kernel_calls \
		read 64 >/dev/null 2>/tmp/saving
	check_has "$1: saved without loss" " 0 events lost" "$(cat /tmp/saving)"
	q 'from r in file("/tmp/saved.fay").Function(kernel, "vfs_read")
		where r.comm == "kernel_calls" group r by r.function into g select new { f = g.Key,
		n = g.Count(), a = g.Sum(x => x.Arg(2)), b = g.Sum(x => x.count) }' >/tmp/rows
	check_has "$1: saved functions" '"f":"vfs_read","n":64,"a":2080,"b":2080' "$(cat /tmp/rows)"
	fay trace --save /tmp/saved.fay 'cluster.Return(kernel, "__x64_sys_close")' \
		-- kernel_calls badclose 37 >/dev/null 2>&1
	check "$1: saved ends of calls" 37 \
		"$(q 'file("/tmp/saved.fay").Count(c => c.Failed && c.ReturnValue == -9 &&
			c.comm == "kernel_calls" && c.Duration < 1min)' | value Count)"
}

ko=$(ls /lib/modules/*/extra/fay.ko)
mv "$ko" /fay.ko
check_has "explained" "BPF, fentry and fexit" \
	"$(fay explain 'cluster.Function(kernel, "vfs_read").Count()')"
check "functions, as they begin" 1000 \
	"$(q 'cluster.Function(kernel, "vfs_read").Count()' -- kernel_calls read 1000 |
	value Count)"
check "arguments by number" 2080 \
	"$(q 'from io in cluster.Function(kernel, "vfs_read") where io.comm == "kernel_calls"
		group io by io.pid into g select new { n = g.Sum(io => io.Arg(2)) }' \
	-- kernel_calls read 64 | value n)"
check "arguments by name" 2080 \
	"$(q 'cluster.Function(kernel, "vfs_read").Sum(io => io.count)' -- kernel_calls read 64 |
	value Sum)"
check "a name by four pointers" 64 \
	"$(q 'cluster.Function(kernel, "vfs_read").Count(io => io.file.f_path.dentry.d_name.name ==
		"zero")' -- kernel_calls read 64 | value Count)"
check "an argument that is a pointer, as a key" 1 \
	"$(q 'from io in cluster.Function(kernel, "vfs_read") group io by io.Arg(0) into g
		select new { g.Key, n = g.Count() }' -- kernel_calls read 64 | grep -c '"n":64')"
check "values as functions end" 37 \
	"$(q 'cluster.Return(kernel, "__x64_sys_close").Count(c => c.ReturnValue == -9)' \
	-- kernel_calls badclose 37 | value Count)"
q 'from f in cluster.Function(kernel, "vfs_*") group f by f.function into g select new { f = g.Key,
	n = g.Count() }' -- kernel_calls read 500 >/tmp/rows
check "several functions" 500 "$(grep '"f":"vfs_read"' /tmp/rows | value n)"
check "nothing lost" 0 "$(sed -n 's/.*"events_lost":\([0-9]*\).*/\1/p' /tmp/rows)"
check "system calls" 2080 \
	"$(q 'cluster.Syscall("read").Sum(r => r.ReturnValue)' -- kernel_calls read 64 | value Sum)"
check "a tracepoint" true \
	"$(q 'from e in cluster.Tracepoint("sched:sched_process_exit") let same = e.p.comm == e.comm
		group e by same into g select new { s = g.Key, n = g.Count() }' -- kernel_calls \
		getppid 1 | value s)"
check "calls that fail" 37 \
	"$(q 'cluster.Return(kernel, "__x64_sys_close").Count(c => c.Failed)' -- kernel_calls \
	badclose 37 | value Count)"
check "an int that is returned" 50 \
	"$(q 'cluster.Return(kernel, "user_path_at_empty").Count(c => c.ReturnValue == -2 &&
		c.comm == "kernel_calls")' -- kernel_calls access 50 | value Count)"
q 'from c in cluster.Return(kernel, "*nanosleep*") where c.comm == "kernel_calls"
	group c by c.function into g
	select new { f = g.Key, n = g.Count(), short = g.Sum(c => c.Duration < 1000000 ? 1 : 0),
	failed = g.Sum(c => c.Failed ? 1 : 0) }' -- kernel_calls sleep 20 >/tmp/rows
check_has "durations of calls that sleep" '"f":"hrtimer_nanosleep","n":20,"short":0,"failed":0' \
	"$(cat /tmp/rows)"
check_has "durations of calls around them" \
	'"f":"__x64_sys_clock_nanosleep","n":20,"short":0,"failed":0' "$(cat /tmp/rows)"
check "nothing lost" 0 "$(sed -n 's/.*"events_lost":\([0-9]*\).*/\1/p' /tmp/rows)"
# The two clocks may be milliseconds apart where the machine stood still while one was read.
program="kernel_calls sleep 200 read 64 sleep 200"
inside='from f in cluster.Return("kernel_calls!main") join r in cluster.Function(kernel, "vfs_read")
	on f.tid equals r.tid within 1min where r.time >= f.time - f.Duration && r.time <= f.time'
check "a program's function and the kernel's" 64 \
	"$(q "$inside group r by r.comm into g select new { g.Key, n = g.Count() }" \
	-- $program | value n)"
pairs='(from a in cluster.Function(kernel, "vfs_read") where a.comm == "kernel_calls"
	join b in cluster.Return(kernel, "__x64_sys_close") on a.tid equals b.tid within 1min
	where b.ReturnValue == -9 && b.time > a.time select a).Count()'
check "two functions of the kernel" 640 \
	"$(q "$pairs" -- kernel_calls read 64 badclose 10 | value Count)"
check "top values, all of which fit" 4 \
	"$(q 'cluster.Function(kernel, "vfs_read").TopK(8, io => io.count % 4)' -- kernel_calls \
	read 64 | grep '"final":true' | grep -o '"count":16' | wc -l)"
check_has "the one of many that is frequent" '{"key":7,"count":' \
	"$(q 'cluster.Function(kernel, "vfs_read").TopK(2, io => io.count <= 48 ? 7 : io.count)' \
	-- kernel_calls read 64)"
by_stack() {
	q "from r in cluster.Function(kernel, \"vfs_read\") group r by r.$1 into g
		select new { g.Key, n = g.Count() }" -- kernel_calls read 64 | grep '"final":true' |
		sed 's/+0x[0-9a-f]*//g'
}
callers='"kernel!vfs_read","kernel!ksys_read","kernel!do_syscall_64","kernel!entry_SYSCALL_64_after_hwframe"'
by_stack KernelStack >/tmp/rows
check "stacks of the kernel: one" 1 "$(grep -c '"n":64' /tmp/rows)"
check_has "its functions" "$callers" "$(cat /tmp/rows)"
check "stacks of the program" 64 \
	"$(by_stack UserStack | sed -n 's/.*"n":\([0-9]*\).*/\1/p' | awk '{n += $1} END {print n}')"
check_has "what runs, by stack" '"Key":[' \
	"$(q 'from t in cluster.Timer(1ms) group t by t.KernelStack into g
		select new { g.Key, n = g.Count() }' -- kernel_calls read 100000)"

# A processor that is switched on while its clock is asked for; and off and on again between two
# looks, as when the machine sleeps.
online=/sys/devices/system/cpu/cpu1/online
ticks() { grep -o '"n":[0-9]*' /tmp/clocks.rows | tail -1 | cut -d: -f2; }
switched() {
	while [ "$(grep -c '1 processor came online' /tmp/clocks.said)" -lt $1 ] &&
		[ -d /proc/$fay ] && [ $((tries += 1)) -lt 300 ]; do
		sleep 0.2
	done
}
echo 0 >$online
begin clocks --json --for 300s --every 200ms \
	'from t in cluster.Timer(10ms) where t.cpu == 1 group t by t.cpu into g
		select new { g.Key, n = g.Count() }'
check "no clock of a processor that is off" "" "$(ticks)"
echo 1 >$online
tries=0
switched 1
sleep 2
check "its clock once it is on" true "$([ "$(ticks)" -gt 20 ] && echo true)"
echo 0 >$online
echo 1 >$online
switched 2
before=$(ticks)
sleep 2
check "its clock once it is on again" true "$([ "$(ticks)" -gt $((before + 20)) ] && echo true)"
kill -INT $fay
wait $fay
check "both said" 2 "$(grep -c '1 processor came online' /tmp/clocks.said)"

q 'cluster.Function(kernel, "no_such_function").Count()'; check "no such function" 1 $?
check_has "said" "no function of the kernel that its types describe" "$(cat /tmp/said)"
check "children are followed beyond their parents" 96 \
	"$(q --follow 'cluster.Function(kernel, "vfs_read").Count()' -- sh \
	-c 'kernel_calls read 64; (sleep 1; kernel_calls read 32) & exit' | value Count)"
q --follow 'cluster.Function(kernel, "do_syscall_64").Count()' -- kernel_calls getppid 1
check "a function that is refused, where children are followed" 1 $?
check_has "said" "attaching to function do_syscall_64" "$(cat /tmp/said)"
save_functions BPF

mv /fay.ko "$ko"
save_functions native
check_has "they were native" "native code" "$(cat /tmp/saving)"
check_has "explained" "native code through fay.ko" \
	"$(fay explain 'cluster.Function(kernel, "vfs_read").Count()')"
check "native: arguments by name" 2080 \
	"$(q 'cluster.Function(kernel, "vfs_read").Sum(io => io.comm == "kernel_calls" ? io.count :
		0)' -- kernel_calls read 64 | value Sum)"
check_has "it was native" "native code" "$(cat /tmp/said)"
check "native: two functions of the kernel" 640 \
	"$(q "$pairs" -- kernel_calls read 64 badclose 10 | value Count)"
check_has "they were native" "native code" "$(cat /tmp/said)"
q "$inside group r by new { r.comm, r.function } into g select new { g.Key, n = g.Count() }" \
	-- $program >/tmp/rows
check_has "native beside it: a program's function and the kernel's" \
	'"comm":"kernel_calls","function":"vfs_read","n":64' "$(cat /tmp/rows)"
check_has "native beside it: events of the program only" '"join":{"left":1,"right":64' \
	"$(cat /tmp/rows)"
check_has "it was native" "native code through fay.ko" "$(cat /tmp/said)"
check_has "explained" "back end     native code through fay.ko" \
	"$(fay explain "$inside select r" -- kernel_calls)"
check "through BPF where children are followed" 64 \
	"$(q --follow "$inside group r by r.comm into g select new { g.Key, n = g.Count() }" \
	-- $program | value n)"
check_has "it was BPF" "through BPF" "$(cat /tmp/said)"
by_stack KernelStack >/tmp/rows
check_has "stacks go through BPF" "$callers" "$(cat /tmp/rows)"
check "native: a member" 64 \
	"$(q 'cluster.Function(kernel, "vfs_read").Count(io => io.comm == "kernel_calls" &&
		(io.file.f_flags & 3) == 2)' -- kernel_calls read 64 | value Count)"
check "native: a name by four pointers" 64 \
	"$(q 'cluster.Function(kernel, "vfs_read").Count(io => io.comm == "kernel_calls" &&
		io.file->f_path.dentry->d_name.name == "zero")' -- kernel_calls read 64 |
		value Count)"
q 'from io in cluster.Function(kernel, "vfs_read") where io.comm == "kernel_calls"
	group io by new { file = io.file.f_path.dentry.d_name.name,
	dir = io.file.f_path.dentry.d_parent.d_parent.d_name.name,
	fs = io.file.f_inode.i_sb.s_type.name } into g
	select new { g.Key, n = g.Count(), bytes = g.Sum(io => io.count),
	block = g.Max(io => io.file.f_inode.i_sb.s_blocksize) }' -- kernel_calls read 64 >/tmp/rows
check_has "native: chains as keys" \
	'"file":"zero","dir":"/","fs":"devtmpfs","n":64,"bytes":2080,"block":4096' \
	"$(cat /tmp/rows)"
check "nothing lost" 0 "$(sed -n 's/.*"events_lost":\([0-9]*\).*/\1/p' /tmp/rows)"
check "native: what a null pointer leads to" 64 \
	"$(q 'cluster.Function(kernel, "vfs_read").Count(io => io.comm == "kernel_calls" &&
		io.file.f_owner.pid.level == 0)' -- kernel_calls read 64 | value Count)"

# Others at the same function. BPF holds it by a direct call: entries are called back beside that,
# returns cannot be; and neither sees the other.
stacks='from r in cluster.Function(kernel, "vfs_read") where r.comm == "kernel_calls"
	group r by r.KernelStack into g select new { g.Key, n = g.Count() }'
begin other --json --for 600s "$stacks"
check "native beside BPF" 64 \
	"$(q 'cluster.Function(kernel, "vfs_read").Count()' -- kernel_calls read 64 | value Count)"
check_has "native beside BPF: called back" "ftrace calls back at each event" "$(cat /tmp/said)"
q 'cluster.Return(kernel, "vfs_read").Count()' -- kernel_calls read 64 >/tmp/rows
check "returns beside BPF" 1 $?
check_has "returns beside BPF, said" "another tracer" "$(cat /tmp/said)"
kill -INT $fay
wait $fay
# the refused trace has not let its command run
check "BPF beside native" 64 "$(value n </tmp/other.rows)"
finish
IN
inside "$work/script"
