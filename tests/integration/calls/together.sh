#!/usr/bin/env bash
# While traces of a program begin and end, others are planned: no jump of a trace is taken for the
# program's own code, and nothing is refused for it.
. "$(dirname "$0")/../lib.sh"
sleep 1000 &
target=$!
own $target
returns() { "$FAY" trace -v -p $target --for "$1" "cluster.Return(\"libc!$2\").Count()"; }
(while [ ! -e "$work/enough" ]; do returns 1s '*a*' >/dev/null 2>&1 || :; done) &
others=$!
own $others
for round in 1 2 3 4; do
	returns 10ms '*' >/dev/null 2>"$work/err" ||
		grep -q 'its code keeps changing' "$work/err" ||
		fail "round $round: $(tail -3 "$work/err")"
	! grep -E 'are not an instruction|middle of an instruction|since its exits were found' \
		"$work/err" || fail "round $round: read while it was changed"
	echo "ok: $(grep -E 'tracing [0-9]|keeps changing' "$work/err")"
done
touch "$work/enough"
wait $others
