#!/usr/bin/env bash
# broken.sh [SEEDS]: stacks of a program whose frames lead in circles or into nowhere, and of one
# whose unwind tables are broken, SEEDS times in other ways: each call is counted once, no stack is
# longer than what was asked for, and the program computes what it does untraced.
. "$(dirname "$0")/../lib.sh"
here=$(cd "$(dirname "$0")" && pwd)
seeds=${1:-20}
rounds=300
gcc -O2 -fomit-frame-pointer -o "$work/whole" "$here/broken_target.c"
# asks PROGRAM KIND DEPTH ARGUMENT...: by stack, at entries and at ends
asks() {
	local program=$1 kind=$2 depth=$3
	shift 3
	exits "$program, $kind" 0 "$FAY" trace --json -o "$work/json" \
		"from e in cluster.$kind(\"$program!reached\") group e by e.Stack($depth) into g
		select new { stack = g.Key, n = g.Count() }" -- "$work/$program" "$@"
}
# right PROGRAM KIND CALLS DEPTH EXPECTED: what the last one came to
right() {
	local rows='select(.type == "row" and .final).values'
	equal "$1, $2: the program's own result" "$5" "$(cat "$work/out")"
	equal "$1, $2: calls" "$3" "$(jq -s "map($rows.n) | add" "$work/json")"
	equal "$1, $2: stacks longer than $4" 0 \
		"$(jq -c "$rows.stack | select(length > $4)" "$work/json" | wc -l)"
}
whole=$("$work/whole" $rounds broken)
for depth in 8 32; do
	for kind in Function Return; do
		asks whole $kind $depth $rounds broken
		right whole $kind $((rounds * 20)) $depth "$whole"
	done
done
# A frame whose caller lies not above it is the last; those that go up go on as far as was asked.
deepest() { jq --arg f "whole!$1" 'select(.type == "row" and .final).values.stack |
	select(any(.[]; startswith($f))) | length' "$work/json" | sort -n | tail -1; }
equal "the circle" 3 "$(deepest cyclic)"
equal "frames that go up" 32 "$(deepest astray)"

plain=$("$work/whole" $rounds)
for ((seed = 0; seed < seeds; seed++)); do
	python3 "$here/broken.py" "$work/whole" "$work/broken" $seed
	chmod +x "$work/broken"
	equal "untraced, $seed" "$plain" "$("$work/broken" $rounds)"
	kind=Function
	((seed % 3)) || kind=Return
	asks broken $kind 16 $rounds
	right broken $kind $rounds 16 "$plain"
done
