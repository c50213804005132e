#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# front.sh BUILD SOURCE: `fay verify` and `fay-verify` say the same of the same image, options and
# mistakes alike, by output and exit code; fay and fayd are not linked with what they load when they
# need it.
set -uo pipefail
bin=$1/bin source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
complain() { echo "front: $*" >&2; failed=1; }

as -o "$work/count.o" "$source/examples/images/count.S" && ld -shared -nostdlib -z now \
	-z noexecstack --build-id=none -o "$work/good.fay" "$work/count.o" || exit 4
head -c -100 "$work/good.fay" >"$work/cut.fay"
echo 'max_instructions = 1' >"$work/strict"
echo 'no such key' >"$work/wrong"

# The program's name is the only difference; the times in a report are no one's business.
run() { "$@" 2>&1; echo "exit $?"; }
plain() {
	sed -E "s|^(usage: )?fay-verify|\\1fay verify|"' ; s/[0-9.]+ ms/TIME/g; s/"nanoseconds":[0-9]+/TIME/'
}
same() {
	local one two
	one=$(run "$bin/fay" verify "$@" | plain) two=$(run "$bin/fay-verify" "$@" | plain)
	[ "$one" = "$two" ] || complain "differ for: $*"$'\n'"$(diff <(echo "$one") <(echo "$two"))"
	[[ $one == *"exit $expect" ]] || complain "expected exit code $expect for: $*"$'\n'"$one"
}
# An empty path is the folder that they are started in, which anybody may have written.
for program in "$bin"/{fay,fayd,fay-cc,fay-verify} "$1"/*/libfay_*.so; do
	! readelf -d "$program" | grep -E '(RPATH|RUNPATH).*(\[:|::|:\])' ||
		complain "$program looks for libraries where it is started"
done
expect=0 same "$work/good.fay"
expect=0 same --json --source "$source" "$work/good.fay"
expect=0 same --smt2 "$work/proof" "$work/good.fay"
expect=0 same --help
expect=1 same --policy "$work/strict" --no-replay "$work/good.fay"
expect=1 same --kernel --json "$work/cut.fay"
expect=2 same --policy "$work/wrong" "$work/good.fay"
expect=2 same "$work/none.fay"
expect=2 same --nonsense
expect=2 same

for program in fay fayd; do
	readelf -d "$bin/$program" | grep -E 'LLVM|libz3|capstone' &&
		complain "$program is linked with what takes longer to load than a verification"
done
exit $failed
