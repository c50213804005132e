#!/usr/bin/env bash
# The virtual machine itself: output and exit code come out; a complaint in the kernel's log is a
# failure whatever the script says.
set -euo pipefail
vm=$(dirname "$0")/../../scripts/vm
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
code=0
fail() { echo "vm_boot: $*" >&2; exit 1; }

cat >"$work/answer" <<'IN'
echo "argument $1, $(grep -c ' vfs_read$' /proc/kallsyms) vfs_read"
[ -r /sys/kernel/btf/vmlinux ] || echo "no BTF"
exit 7
IN
output=$("$vm" "$work/answer" 'a b') || code=$?
[ "$code" -ne 77 ] || exit 77
[ "$code" -eq 7 ] || fail "exit code $code instead of 7: $output"
[ "$output" = "argument a b, 1 vfs_read" ] || fail "output: $output"

code=0
echo 'echo "WARNING: made up" >/dev/kmsg' >"$work/warn"
"$vm" "$work/warn" 2>"$work/said" || code=$?
[ "$code" -eq 4 ] && grep -q 'the kernel complained' "$work/said" ||
	fail "a warning passed, exit code $code"

code=0
echo 'echo c >/proc/sysrq-trigger' >"$work/crash"
"$vm" "$work/crash" 2>"$work/said" || code=$?
[ "$code" -eq 4 ] && grep -q 'Kernel panic' "$work/said" || fail "a crash passed, exit code $code"
