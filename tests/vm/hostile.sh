#!/usr/bin/env bash
# What must not harm: code that is not what was verified, ioctls at random, addresses that nothing
# may read, death and unloading in the midst; and how sessions come and go, without a leak.
# In a kernel whose code can be preempted anywhere, trampolines included. FAY_LONG=1: for hours,
# 10,000 cycles and 1,000,000 ioctls instead of 16 and 2,000; FAY_VM_CYCLES and FAY_VM_IOCTLS say
# other numbers.
. "$(dirname "$0")/lib.sh"
cycles=16 ioctls=2000 time=2000
[ -z "${FAY_LONG:-}" ] || cycles=10000 ioctls=1000000 time=28800
[ -z "${FAY_VM_CYCLES:-}${FAY_VM_IOCTLS:-}" ] || cycles=${FAY_VM_CYCLES:-$cycles} \
	ioctls=${FAY_VM_IOCTLS:-$ioctls} time=28800
cat >"$work/script" <<'IN'
. /inside.sh
. /come_and_go.sh
check_has "preemption" "Dynamic Preempt: full" "$(dmesg)"
last() {
	grep '"final":true' /tmp/rows | grep "\"result\":\"$1\"" |
		sed -n "s/.*\"$1\":\([-0-9]*\).*/\1/p" | tail -1
}

fay trace --json --probe /probes/reads.fay -- kernel_calls access 50 >/tmp/rows 2>/tmp/said ||
	cat /tmp/said
check "try_read: calls" 50 "$(last calls)"
check "try_read: kernel memory" 50 "$(last kernel_read)"
check "try_read: user memory" 50 "$(last path_right)"
check "try_read: seven addresses that cannot be read" 350 "$(last faults)"

# Addresses that a program names: RAM in the direct mapping, and the kernel's own variables, can be
# read; video memory and a device of persistent memory (both in the direct mapping, the device's
# with pages of its own) and a device's registers cannot.
for module in libnvdimm nd_btt nd_pmem nd_e820; do
	insmod /$module.ko || check "$module.ko" loaded no
done
for wait in $(seq 120); do [ -e /dev/pmem0 ] || sleep 1; done
check "persistent memory with pages of its own" /dev/pmem0 "$(ls /dev/pmem0)"
variable=0x$(sed -n 's/ . page_offset_base$//p' /proc/kallsyms)
fay trace --json --probe /probes/reads.fay -- kernel_calls at $variable >/tmp/rows 2>/tmp/said ||
	cat /tmp/said
check "try_read: a variable" 1 "$(last named_read)"
direct=$(last named_value)
echo 1 >/proc/sys/kernel/kptr_restrict
registers=$(sed -n 's/^\(0x[0-9a-f]*\)-.* phys=0x0*f[de][0-9a-f]* ioremap.*/\1/p' \
	/proc/vmallocinfo | head -1)
echo "   direct mapping $direct, a device's registers $registers"
fay trace --json --probe /probes/reads.fay -- kernel_calls at \
	$(printf 0x%x $((direct + 0x1000000))) at $(printf 0x%x $((direct + 0xa0000))) \
	at $(printf 0x%x $((direct + 0x10000000))) at $registers >/tmp/rows 2>/tmp/said ||
	cat /tmp/said
check "try_read: memory" 1 "$(last named_read)"
check "try_read: devices" 3 "$(last named_refused)"

# CHECK looks at the kernel's own text, and nowhere else.
text=$(sed -n 's/ T vfs_read$//p' /proc/kallsyms) data=$(sed -n 's/ D init_task$//p' /proc/kallsyms)
cd /sys/kernel/tracing
echo 'p:fay_reads copy_from_kernel_nofault address=%si:x64' >kprobe_events &&
	echo 1 >events/kprobes/fay_reads/enable || check "a probe at reads" made no
asked="$text $data ${registers#0x} $(printf %x $((direct + 0x1000000))) 1000"
kernel_ioctl check $asked >/tmp/checked
echo 0 >events/kprobes/fay_reads/enable
for address in $asked; do
	grep -o "kernel_ioctl.*address=0x$address\$" trace | grep -o 'address=.*' | sort -u
done >/tmp/looked
: >kprobe_events
: >trace
cd /
check "functions are at" "1 0 0 0 0" "$(cat /tmp/checked)"
check "CHECK has looked at" "address=0x$text" "$(cat /tmp/looked)"

fay trace --json --probe /probes/pair.fay -- kernel_calls getpgid 100 sleep 300 >/tmp/rows \
	2>/tmp/said || cat /tmp/said
check "entries" 100 "$(last entries)"
check "returns" 100 "$(last returns)"
check "their values" -300 "$(last values)"
check "rows of a helper" 100 "$(grep -c '"result":"rows"' /tmp/rows)"
check "begin" 1 "$(last begins)"
check "end" 1 "$(last ends)"
[ "$(last ticks)" -ge 1 ] || check "ticks" "at least 1" "$(last ticks)"

fay trace --probe /probes/hostile.fay -- kernel_calls read 1 >/tmp/rows 2>/tmp/said
check "an image with floating point" 1 $?
check_has "refused by the verifier" "POL-VECTOR" "$(cat /tmp/said)"

echo "-- tampered"
kernel_sessions tampered /probes/pair.fay || check "tampered" 0 1
insmod /dummy.ko
kernel_sessions in_module /probes/pair.fay || check "a function of a loadable module" 0 1
rmmod dummy || check "dummy.ko unloads" 0 1
echo "-- races"
kernel_sessions races /probes/pair.fay 20 || check "races" 0 1
kernel_ioctl stalled || check "stalled" 0 1
kernel_ioctl together || check "together" 0 1
echo "-- cycles"
come_and_go $1
echo "-- ioctl"
kernel_ioctl 1000 >/dev/null
memory_mark
begun=$(date +%s)
kernel_ioctl "$2" || check "ioctl" 0 1
echo "   $2 ioctls in $(($(date +%s) - begun)) s"
memory_check "ioctls"

# Killed, it detaches; in use, nothing unloads.
begin killed --for 600s 'cluster.Function(kernel, "__x64_sys_getppid").Count()'
check_has "patched" "sys_getppid (1)" "$(cat /sys/kernel/tracing/enabled_functions)"
for module in fay_s0 fay; do
	rmmod $module 2>/tmp/said && check "$module is held" held unloaded
	check_has "$module is held, said" \
		"can't unload module '$module': Resource temporarily unavailable" "$(cat /tmp/said)"
done
kill -9 $fay
wait $fay 2>/dev/null
check "a killed fay's functions are as they were" 0 \
	"$(grep -c . /sys/kernel/tracing/enabled_functions)"
check "the next trace" 10 \
	"$(fay trace --json 'cluster.Function(kernel, "__x64_sys_getppid").Count()' \
	-- kernel_calls getppid 10 2>/dev/null | value Count)"
check "no session's module is left" 0 "$(grep -c '^fay_s' /proc/modules)"
rmmod fay || check "fay.ko unloads" 0 1
# Modules forbidden until reboot: the last thing here.
echo 1 >/proc/sys/kernel/modules_disabled
fay trace --for 60s --probe /probes/pair.fay >/dev/null 2>/tmp/said
check "no modules" 1 $?
check_has "no modules, said" "modules_disabled" "$(cat /tmp/said)"
check "no modules: a query, through BPF" 64 \
	"$(fay trace --json 'cluster.Function(kernel, "vfs_read").Count(c => c.comm ==
		"kernel_calls")' -- kernel_calls read 64 2>/tmp/said | value Count)"
check_has "no modules: a query, said" "modules_disabled" "$(cat /tmp/said)"
finish
IN
probes=$BUILD/tests/vm
drivers=$kernel/lib/modules/$version/kernel/drivers
inside "$work/script" --time $time \
	--append "preempt=full rcupdate.rcu_expedited=1 memmap=16M!256M" \
	--with "$drivers/nvdimm/libnvdimm.ko:libnvdimm.ko" \
	--with "$drivers/nvdimm/nd_btt.ko:nd_btt.ko" \
	--with "$drivers/nvdimm/nd_pmem.ko:nd_pmem.ko" \
	--with "$drivers/nvdimm/nd_e820.ko:nd_e820.ko" --with "$BUILD/bin/kernel_sessions" \
	--with "$probes/pair.fay:probes/pair.fay" --with "$probes/reads.fay:probes/reads.fay" \
	--with "$probes/hostile.fay:probes/hostile.fay" \
	--with "$probes/certified/idle.fay:probes/idle.fay" \
	--with "$here/guest/come_and_go.sh:come_and_go.sh" --with "$drivers/net/dummy.ko:dummy.ko" \
	-- "$cycles" "$ioctls"
