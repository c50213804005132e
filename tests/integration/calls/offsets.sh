#!/usr/bin/env bash
# Probes at instructions inside functions: exact counts, registers as they are there, and nothing
# live changed.
. "$(dirname "$0")/../lib.sh"
bin=$(dirname "$TARGET")
target=$bin/offsets_target
right=$("$target") || fail "the target itself"
value() {
	grep '^{' "$work/out" | jq -s --arg c "$1" \
		'[.[] | select(.type == "row" and .final) | .values[$c] // empty | numbers] |
			add // 0'
}
probe() { # FUNCTION OFFSET
	cat >"$work/p.c" <<EOF
#include <fay/probe.h>
FAY_COUNT(n);
FAY_SUM(rdx);
FAY_SUM(zero_flag);
FAY_OFFSET("offsets_target!$1", $2)
{
	fay_count(&n);
	fay_sum(&rdx, event->reg[2]);
	fay_sum(&zero_flag, event->flags >> 6 & 1);
}
EOF
	"$FAY" cc "$work/p.c" -o "$work/p.fay" || fail "the probe does not compile"
}
at() { # FUNCTION OFFSET COUNT
	probe "$1" "$2"
	exits "$1+$2" 0 "$FAY" trace --json --probe "$work/p.fay" -- "$target"
	equal "$1+$2: the program's own result" "$right" "$(grep -v '^{' "$work/out")"
	equal "$1+$2: count" "$3" "$(value n)"
}
refused() { # FUNCTION OFFSET TEXT
	probe "$1" "$2"
	exits "$1+$2" 1 "$FAY" trace --probe "$work/p.fay" -- "$target"
	contains "$1+$2 is explained" "$work/err" "$3"
}

for offset in 0x0 0x3; do at traced_loop $offset 1000; done
for offset in 0x5 0x7; do at traced_loop $offset 999; done
for offset in 0xc 0xf 0x12 0x17 0x1b 0x1e 0x24 0x31 0x35; do
	at traced_loop $offset 499500
	[ $offset = 0x35 ] || equal "rdx, the loop's counter, at +$offset" 166167000 "$(value rdx)"
done
at traced_loop 0x26 0
place=$(($(nm "$target" | awk '$3 == "live_place" {print "0x" $1}') - $(nm "$target" | awk '$3 == "traced_live" {print "0x" $1}')))
at traced_live $place 1000
refused traced_loop 0x9 "has a jump (from +0x38)"
refused traced_loop 0x38 "has a jump (from +0x3)"
refused traced_loop 0x3c "too short for a jump"
refused traced_loop 0x1 "no instruction that begins at"
refused traced_loop 4096 "has no byte"

# Two places too close for two jumps: the second is named and not traced.
probe traced_loop 0xc
sed 's/0xc/0xf/' "$work/p.c" | grep -A6 FAY_OFFSET >>"$work/p.c"
"$FAY" cc "$work/p.c" -o "$work/p.fay"
exits "two places close to each other" 0 "$FAY" trace --json --probe "$work/p.fay" -- "$target"
contains "the second is named" "$work/err" "too close"
equal "the first counts" 499500 "$(value n)"
