#!/usr/bin/env bash
# Lines and functions of which gcc has made more than the source has: each counts as often as in the
# source. With MEGABYTES, also: debug information that goes in circles, or is so large, is answered
# or refused.
. "$(dirname "$0")/../lib.sh"
here=$(dirname "$(readlink -f "$0")")
source=copies_target.c
cd "$work"
cp "$here/$source" .
# The compiler itself, so that this is what its optimisation makes of it
gcc -O2 -g -o copies_target "$source"
nm copies_target >symbols
grep -q ' scaled\.constprop\.0$' symbols && ! grep -q ' take$' symbols ||
	skip "this gcc makes other copies"

count() { # QUERY: the sum of its column n
	"$FAY" trace --json -o rows.json "$1" -- ./copies_target >out 2>err || fail "$1: $(cat err)"
	jq -s 'map(select(.type == "row" and .final).values | .n // .Count) | add' rows.json
}
line() { grep -n -- "$1" "$source" | head -1 | cut -d: -f1; }
equal "a macro of several statements" 100 \
	"$(count "cluster.Line(\"copies_target!$source:$(line 'SWAP(pair);')\").Count()")"
equal "a copy that is a loop's condition" 250 \
	"$(count 'from f in cluster.Function("copies_target!take") group f by f.Inlined into g
	select new { g.Key, n = g.Count() }')"
equal "a clone alone" 100 "$(count 'cluster.Function("copies_target!scaled").Count()')"
exits "the clone's own name" 0 "$FAY" list copies_target 'copies_target!scaled.constprop.0'
exits "a part is no clone" 2 "$FAY" list copies_target 'copies_target!swap'
exits "fields of a function that is not there" 2 "$FAY" trace \
	'from f in cluster.Function("copies_target!nothing")
	group f by new { f.Inlined, f.x } into g
	select new { g.Key, n = g.Count() }' -- ./copies_target
contains "why" "$work/err" 'unknown field `x`'

[ $# -gt 0 ] || exit 0 # MEGABYTES: the long test
python3 "$here/cyclic.py" "$FAY" "$work" || fail "references in circles"
python3 "$here/large.py" "$FAY" "$work" "$1" || fail "large debug information"
