#!/usr/bin/env bash
# SystemTap's modules for the virtual machine's kernel, built here: tests/vm/peers/stap.sh KERNEL
# OUTPUT writes OUTPUT/stap_entry.ko and OUTPUT/stap_return.ko. KERNEL: of scripts/vm-kernel. Two
# things that SystemTap 4.8 lacks are handed to it; its package stays as it is:
#
#   System.map                Debian's is in another package; it is read from the kernel's own list,
#                             in the machine.
#   task_work_cancel(task)    6.1.0-56 has another function of this name than 4.8 was written for,
#                             and so its run time does not compile. It is called when user
#                             programs are probed, which these modules do not do; a header in front
#                             of each file says that nothing is to be cancelled.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
kernel=$(readlink -f "$1")
output=$(mkdir -p "$2" && readlink -f "$2")
[ ! -e "$output/stap_return.ko" ] || exit 0
command -v stap >/dev/null || {
	echo "tests/vm/peers/stap.sh: stap is not installed (scripts/deps --bench)" >&2
	exit 77
}

tree=$output/tree
mkdir -p "$tree"
ln -sfn "$(readlink -f "$kernel/headers")"/* "$(readlink -f "$kernel/headers")"/.[a-z]* "$tree/"
echo 'cat /proc/kallsyms' >"$output/kallsyms"
"$here/../../scripts/vm" "$output/kallsyms" | grep -E '^[0-9a-f]{16} [tT] [^[]*$' \
	>"$tree/System.map"
cat >"$output/before.h" <<'IN'
#ifdef MODULE
#include <linux/task_work.h>
#define STAPCONF_TASK_WORK_CANCEL_EXPORTED 1
#define task_work_cancel(task, function) NULL
#endif
IN
cat >"$output/entry.stp" <<'IN'
global n
probe begin { printf("ready\n") }
probe kprobe.function("__x64_sys_getppid") { n <<< 1 }
probe end { printf("counted %d\n", @count(n)) }
IN
cat >"$output/return.stp" <<'IN'
global n
probe begin { printf("ready\n") }
probe kprobe.function("__x64_sys_getppid").return { n <<< gettimeofday_ns() - @entry(gettimeofday_ns()) }
probe end { printf("counted %d\n", @count(n)) }
IN
cd "$output"
for name in entry return; do
	stap -p4 -r "$tree" -B CFLAGS_MODULE="-DMODULE -include $output/before.h" -m stap_$name \
		$name.stp >$name.log 2>&1 || {
		cat $name.log >&2
		exit 1
	}
done
