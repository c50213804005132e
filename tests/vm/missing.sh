#!/usr/bin/env bash
# Where the virtual machine's kernel cannot be had, its tests are skipped, with the reason; and
# nothing half done is left.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# try NAME REASON: scripts/vm-kernel with the programs in $work/bin first
try() {
	local code=0
	FAY_VM_CACHE=$work/cache PATH=$work/bin:$PATH "$here/../../scripts/vm-kernel" \
		>"$work/output" 2>"$work/said" || code=$?
	if [ "$code" -ne 77 ] || ! grep -q "$2" "$work/said" || [ -s "$work/output" ] ||
		[ -e "$work/cache/kernel" ]; then
		echo "FAIL $1: exit code $code: $(cat "$work/output" "$work/said")"
		failures=$((failures + 1))
	fi
}
# fake PROGRAM BODY
fake() { printf '#!/bin/sh\n%s\n' "$2" >"$work/bin/$1"; chmod +x "$work/bin/$1"; }

mkdir "$work/bin"
fake apt-cache 'exit 100'
try "no package lists" "apt knows no linux-image-cloud-amd64"
fake apt-cache 'echo "  Depends: linux-image-6.1.0-1-cloud-amd64"'
fake apt-get 'echo "E: Failed to fetch made up" >&2; exit 100'
try "no mirror" "cannot download linux-image-6.1.0-1-cloud-amd64.*E: Failed to fetch made up"
# The tests that need it skip, too.
code=0
FAY_VM_CACHE=$work/cache PATH=$work/bin:$PATH BUILD=$work "$here/kernel.sh" >/dev/null \
	2>"$work/said" || code=$?
[ "$code" -eq 77 ] && grep -q "no kernel for the virtual machine" "$work/said" || {
	echo "FAIL a test: exit code $code: $(cat "$work/said")"
	failures=$((failures + 1))
}
exit $((failures != 0))
