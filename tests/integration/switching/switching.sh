#!/usr/bin/env bash
# switching.sh [CYCLES]: stacks are asked for, again and again, in a program whose threads switch
# stacks in every way while memory beside them comes and goes. It goes on rightly and sees the right
# callers. FAY_STORM_CYCLES goes before CYCLES.
. "$(dirname "$0")/../lib.sh"
here=$(cd "$(dirname "$0")" && pwd)
cycles=${FAY_STORM_CYCLES:-${1:-6}}
gcc -O2 -D_GNU_SOURCE -pthread -o "$work/switching" "$here/switching_target.c"
query='from e in cluster.Function("switching!traced") group e by e.Stack(20) into g
	select new { stack = g.Key, n = g.Count() }'
# All that a probe can ask for from its stack pointer on, and from below it.
cat >"$work/reads.c" <<'END'
#include <fay/probe.h>
FAY_COUNT(asked);
FAY_ENTRY("switching!traced")
{
	char some[2048];
	for (uint64_t at = 0; at < 48; at++) {
		fay_try_read(some, sizeof(some), event->stack_pointer + 2000 * at - 8000);
		fay_try_read(some, 8 + 8 * at, (event->stack_pointer | 4095) - 7 - 8 * at);
	}
	fay_count(&asked);
}
END
"$FAY" cc "$work/reads.c" -o "$work/reads.img"

start_target ready "$work/switching"
events=0 reads=0
for _ in $(seq "$cycles"); do
	"$FAY" trace --json --for 0.3s -p "$target" "$query" >"$work/stacks.json" \
		2>"$work/err" || { cat "$work/err" >&2; fail "a trace of stacks"; }
	# Of calls with 1 to 15 callers of their own, up to check().
	jq -s '[.[] | select(.type == "row" and .final) | .values |
		select((.stack[1:] | map(sub("\\+.*"; "")) | index("switching!check")) as $at |
			$at == null or $at < 1 or $at > 16 or
			(.stack[1:1 + $at] | any(startswith("switching!deeper+") | not)))] | length' \
		"$work/stacks.json" >"$work/wrong"
	equal "stacks that are wrong" 0 "$(cat "$work/wrong")" >"$work/equal"
	n=$(jq -s '[.[] | select(.type == "row" and .final) | .values.n] | add // 0' \
		"$work/stacks.json")
	events=$((events + n))
	"$FAY" trace --json --for 0.2s -p "$target" --probe "$work/reads.img" \
		>"$work/reads.json" 2>"$work/err" || { cat "$work/err" >&2; fail "a trace of reads"; }
	n=$(jq -s '[.[] | select(.type == "row" and .final) | .values.asked] | add // 0' \
		"$work/reads.json")
	reads=$((reads + n))
done
exec 9>&-
ended "$target" || fail "the program's exit code is $?"
[ "$events" -gt 0 ] && [ "$reads" -gt 0 ] || fail "no events: $events stacks, $reads reads"
echo "ok: $cycles cycles, $events stacks, $reads events with reads"
awk '/ 0$/ { bad = 1 } END { exit bad || NR != 9 }' "$work/target.out" ||
	{ cat "$work/target.out" >&2; fail "a kind of thread made no round"; }
