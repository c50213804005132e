#!/usr/bin/env bash
# Kernels that are not as they should be, each in words: no types, no modules, another kernel's
# fay.ko, ftrace switched off, a processor that goes away, lockdown, enforced signatures. A query
# runs through BPF instead where that is granted; an image of native code is refused.
. "$(dirname "$0")/lib.sh"
cat >"$work/script" <<'IN'
. /inside.sh
Q='cluster.Function(kernel, "__x64_sys_getpgid").Count(c => c.comm == "kernel_calls")'
ko=$(ls /lib/modules/*/extra/fay.ko)
count() { "$@" trace --json "$Q" -- kernel_calls getpgid 10 2>/tmp/said | value Count; }
# refused NAME REASON COMMAND...: what a vendor's image is told, and what a query does instead
refused() {
	local name=$1 reason=$2
	shift 2
	"$@" trace --probe /probes/pair.fay >/tmp/rows 2>/tmp/said
	check "$name: an image" 1 $?
	check_has "$name: an image, said" "$reason" "$(cat /tmp/said)"
	check "$name: a query, through BPF" 10 "$(count "$@")"
	check_has "$name: a query, said" "$reason" "$(cat /tmp/said)"
	[ ! -e /dev/fay ] || check "$name" "fay.ko not loaded" loaded
}

refused "no modules" "built without loadable modules" kernel_without fay

# The same release, other bytes behind it in the version magic; and another release.
sed 's/ SMP preempt/ SMP PREEMPT/' "$ko" >/tmp/magic.ko
cmp -s "$ko" /tmp/magic.ko && check "a version magic to change" changed same
mount --bind /tmp/magic.ko "$ko"
refused "version magic" "built for another kernel" fay
umount "$ko"
sed 's/vermagic=6/vermagic=9/' "$ko" >/tmp/other.ko
mount --bind /tmp/other.ko "$ko"
fay trace --probe /probes/pair.fay >/tmp/rows 2>/tmp/said
check "another kernel's fay.ko" 1 $?
check_has "another kernel's fay.ko, said" "was built for 9.1." "$(cat /tmp/said)"
check_has "another kernel's fay.ko, explained" "there is no fay.ko for this kernel" \
	"$(fay explain "$Q")"
check_has "another kernel's fay.ko, doctor" "there is no fay.ko for this kernel" "$(fay doctor)"
umount "$ko"

mount -t tmpfs none /sys/kernel/btf
fay trace --json "$Q" >/dev/null 2>/tmp/said
check "no types" 1 $?
check_has "no types, said" "/sys/kernel/btf/vmlinux" "$(cat /tmp/said)"
umount /sys/kernel/btf

# Attaching would succeed, and nothing would be counted.
echo 0 >/proc/sys/kernel/ftrace_enabled
off="kernel.ftrace_enabled is 0"
fay trace --probe /probes/pair.fay >/tmp/rows 2>/tmp/said
check "ftrace is off: an image" 1 $?
check_has "ftrace is off: an image, said" "$off" "$(cat /tmp/said)"
fay trace --json "$Q" >/tmp/rows 2>/tmp/said
check "ftrace is off: a query" 1 $?
check_has "ftrace is off: a query, said" "$off" "$(cat /tmp/said)"
fay trace --comm kernel_calls "$Q" >/tmp/rows 2>/tmp/said
check "ftrace is off: a query for BPF" 1 $?
check_has "ftrace is off: a query for BPF, said" "$off" "$(cat /tmp/said)"
check_has "ftrace is off, doctor" "BPF at kernel function entries: sysctl $off" "$(fay doctor)"
check_has "ftrace is off, explained" "none: sysctl $off" "$(fay explain "$Q")"
check "ftrace is off: system calls" 10 \
	"$(fay trace --json 'cluster.Syscall("getpgid").Count()' -- kernel_calls getpgid 10 \
	2>/tmp/said | value Count)"
echo 1 >/proc/sys/kernel/ftrace_enabled

# So does switching it off while functions are traced; stacks are BPF's.
for key in pid KernelStack; do
	begin off --json --for 600s \
		"from c in cluster.Function(kernel, \"__x64_sys_getpgid\")
			where c.comm == \"kernel_calls\" group c by c.$key into g
			select new { g.Key, n = g.Count() }"
	kernel_calls getpgid 10
	echo 0 >/proc/sys/kernel/ftrace_enabled
	while ! grep -q "$off" /tmp/off.said; do [ -d /proc/$fay ] || break; sleep 0.2; done
	kernel_calls getpgid 10
	echo 1 >/proc/sys/kernel/ftrace_enabled
	kill -INT $fay
	wait $fay
	check_has "by $key: switched off meanwhile, said" \
		"$off, so this kernel's functions call no probes; it was changed during this trace" \
		"$(cat /tmp/off.said)"
	check "by $key: switched off meanwhile" 10 "$(value n </tmp/off.rows)"
done

# A processor goes and comes back while its calls are counted.
for back_end in native BPF; do
	[ $back_end = native ] || { rmmod fay && mv "$ko" /tmp/fay.ko; }
	begin cpu --json --for 120s \
		'from c in cluster.Function(kernel, "__x64_sys_getpgid")
			where c.comm == "kernel_calls" group c by c.cpu into g
			select new { g.Key, n = g.Count() }'
	taskset 2 kernel_calls getpgid 100
	echo 0 >/sys/devices/system/cpu/cpu1/online
	kernel_calls getpgid 100
	echo 1 >/sys/devices/system/cpu/cpu1/online
	taskset 2 kernel_calls getpgid 100
	kill -INT $fay
	wait $fay
	check "$back_end: a processor goes and comes" 0 $?
	check "$back_end: its calls" '"Key":0,"n":100 "Key":1,"n":200' \
		"$(grep '"final":true' /tmp/cpu.rows | grep -o '"Key":[0-9]*,"n":[0-9]*' | sort |
		tr '\n' ' ' | sed 's/ $//')"
done
mv /tmp/fay.ko "$ko"

# For good, until the machine ends: the last here.
mount -t securityfs none /sys/kernel/security
echo integrity >/sys/kernel/security/lockdown
refused "lockdown" "this kernel is locked down" fay
check_has "lockdown, doctor" "this kernel is locked down" "$(fay doctor)"
check_has "lockdown, explained" "BPF, fentry and fexit" "$(fay explain "$Q")"
echo 1 >/sys/module/module/parameters/sig_enforce
refused "signatures" "accepts signed modules only" fay
check_has "signatures, doctor" "accepts signed modules only" "$(fay doctor)"
finish
IN
inside "$work/script" --with "$BUILD/bin/kernel_without" \
	--with "$BUILD/tests/vm/pair.fay:probes/pair.fay"

# A processor without an instruction of the image, which it would take for another one: refused by
# the loader, and by fay.ko itself.
{
	sed 's/libc!read/kernel!__x64_sys_getpgid/' "$here/../verifier/corpus/prologue.s"
	printf '\t%s\n' 'mov (%rdi), %rax' 'lzcnt %rax, %rcx' 'and $7, %ecx' 'incq (%rsi,%rcx,8)' \
		ret TABLES
} >"$work/lzcnt.s"
as --defsym LOCAL=64 --defsym GLOBAL=0 -o "$work/lzcnt.o" "$work/lzcnt.s"
ld -shared -nostdlib -z now -z noexecstack --build-id=none -o "$work/lzcnt.fay" "$work/lzcnt.o"
"$BUILD/bin/fay" verify --kernel --certify "$work/certified.fay" "$work/lzcnt.fay" >/dev/null
cat >"$work/script" <<'IN'
. /inside.sh
fay trace --probe /probes/lzcnt.fay >/tmp/rows 2>/tmp/said
check "an instruction that the processor lacks" 1 $?
check_has "an instruction that the processor lacks, said" \
	"uses lzcnt instructions, which this machine does not have" "$(cat /tmp/said)"
insmod /lib/modules/*/extra/fay.ko
check "fay.ko" "Invalid argument" "$(kernel_ioctl accept /probes/lzcnt.fay)"
check "fay.ko, without such instructions" accepted "$(kernel_ioctl accept /probes/idle.fay)"
finish
IN
inside "$work/script" --cpu Nehalem --with "$work/certified.fay:probes/lzcnt.fay" \
	--with "$BUILD/tests/vm/certified/idle.fay:probes/idle.fay"
