#!/usr/bin/env bash
# Who is not root, within a policy: traces exactly; beyond it is refused, in words by fay and
# without it by fay.ko; and is not believed: ioctls at random, 1,000, or 1,000,000 with FAY_LONG=1
# or FAY_VM_IOCTLS of them.
. "$(dirname "$0")/lib.sh"
ioctls=1000 time=780
[ -z "${FAY_LONG:-}" ] || ioctls=1000000 time=28800
[ -z "${FAY_VM_IOCTLS:-}" ] || ioctls=$FAY_VM_IOCTLS time=28800
cat >"$work/script" <<'IN'
. /inside.sh
mkdir -p /etc/fay
echo 'root:x:0:0::/root:/bin/sh' >/etc/passwd
echo 'user:x:1000:1000::/tmp:/bin/sh' >>/etc/passwd
echo 'other:x:1001:1001::/tmp:/bin/sh' >>/etc/passwd
printf 'root:x:0:\ntracers:x:2000:user\n' >/etc/group
as() { local who=$1; shift; su "$who" -c "$*" 2>/tmp/said; }
trace() { as user "fay trace --json '$1' -- kernel_calls $2"; }
# refused NAME REASON QUERY
refused() {
	trace "$3" "read 1" >/tmp/rows
	check "$1" 1 $?
	check_has "$1, said" "$2" "$(cat /tmp/said)"
}
insmod /lib/modules/*/extra/fay.ko
kernel_user without || check "the device without room for code" 0 1

cat >/etc/fay/kernel.policy <<'POLICY'
group = tracers
tracepoints = kernel!vfs_read kernel!__x64_sys_getp*id
probe_kinds = entry return
max_points = 1
POLICY
chmod 600 /etc/fay/kernel.policy
check_has "allowed" "4 kernel functions" "$(fay kernel allow)"
check "the device" "root tracers 660" "$(stat -c '%U %G %a' /dev/fay)"
check_has "a user asks" "max_points = 1" "$(as user fay kernel show)"
check_has "a user asks the doctor" "its policy lets you trace" "$(as user fay doctor)"

check "a user's count" 100 \
	"$(trace 'cluster.Function(kernel, "vfs_read").Count()' 'read 100' | value Count)"
check_has "natively" "native code through fay.ko" "$(cat /tmp/said)"
check "no module of its own" "fay_areas" "$(sed -n 's/^\(fay_[^ ]*\).*/\1/p' /proc/modules)"
check "a user's groups, of returns" 50 \
	"$(trace 'from c in cluster.Return(kernel, "__x64_sys_getpgid") group c by c.comm into g
		select new { comm = g.Key, n = g.Count() }' 'getpgid 50' | value n)"
refused "a function that is not allowed" POL-TRACEPOINT \
	'cluster.Function(kernel, "vfs_write").Count()'
refused "an argument" "reads event.arg[2]; the policy does not allow it" \
	'cluster.Function(kernel, "vfs_read").Sum(io => io.Arg(2))'
trace 'cluster.Function(kernel, "__x64_sys_getp*id").Count()' 'read 1' >/tmp/rows
check "too many functions" 3 $?
check_has "too many functions, said" "the policy for users allows 1 in one trace" "$(cat /tmp/said)"
as other "fay trace 'cluster.Function(kernel, \"vfs_read\").Count()'" >/tmp/rows
check "not in the group" 1 $?
check_has "not in the group, said" "fay kernel allow" "$(cat /tmp/said)"

echo "-- ioctl"
as user "kernel_ioctl 200" >/dev/null
memory_mark
begun=$(date +%s)
su user -c "kernel_ioctl $1" || check "ioctl" 0 1
echo "   $1 ioctls in $(($(date +%s) - begun)) s"
memory_check "ioctls"
check "nothing is traced" 0 "$(grep -c . /sys/kernel/tracing/enabled_functions)"
check "a user's count, then" 64 \
	"$(trace 'cluster.Function(kernel, "vfs_read").Count()' 'read 64' | value Count)"
kernel_user with || check "the device" 0 1

fay kernel deny
check "the device, then" "root root 600" "$(stat -c '%U %G %a' /dev/fay)"
check "no module is left" "" "$(sed -n 's/^\(fay_[^ ]*\).*/\1/p' /proc/modules)"
rmmod fay || check "fay.ko unloads" 0 1
finish
IN
inside "$work/script" --time $time --append "preempt=full rcupdate.rcu_expedited=1" \
	--with "$BUILD/bin/kernel_user" \
	--with "$BUILD/tests/vm/certified/idle.fay:probes/idle.fay" \
	--with "$BUILD/tests/vm/certified/twice.fay:probes/twice.fay" \
	--with "$BUILD/tests/vm/certified/values.fay:probes/values.fay" -- "$ioctls"
