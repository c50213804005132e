#!/usr/bin/env bash
# Ten thousand sessions come and go without a leak or a warning: BUILD=$PWD/build tests/vm/cycles.sh
# [NUMBER [MACHINES]], 10,000 in two machines. Most of a cycle is waiting for grace periods, one
# session after the other, so machines side by side end sooner. Not part of the test run: it takes
# half an hour and more.
. "$(dirname "$0")/lib.sh"
number=${1:-10000} machines=${2:-2}
cat >"$work/script" <<'IN'
. /inside.sh
. /come_and_go.sh
insmod /lib/modules/*/extra/fay.ko || check "fay.ko" loaded no
come_and_go $1
rmmod fay || check "fay.ko unloads" 0 1
finish
IN
one() {
	inside "$work/script" --time 14400 --append rcupdate.rcu_expedited=1 \
		--with "$BUILD/bin/kernel_sessions" \
		--with "$BUILD/tests/vm/pair.fay:probes/pair.fay" \
		--with "$here/guest/come_and_go.sh:come_and_go.sh" -- $((number / machines))
}
running=()
trap 'kill "${running[@]}" 2>/dev/null; wait; rm -rf "$work"' EXIT
for ((i = 1; i <= machines; i++)); do
	one >"$work/output.$i" 2>&1 &
	running+=($!)
done
failed=0
for ((i = 1; i <= machines; i++)); do
	wait "${running[i - 1]}" || failed=1
	echo "-- machine $i"
	cat "$work/output.$i"
done
exit $failed
