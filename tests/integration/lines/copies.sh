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

# --- C++ functions that are static and inlined everywhere have no symbol in the debug information
cat >static.cc <<-'END'
	#include <stdio.h>
	namespace shop {
	struct Cart { int sum; };
	template<class T> struct Box { T value; };
	static volatile int kept;
	static inline __attribute__((always_inline)) void add(Cart &cart, const char *text, unsigned long n)
	{ kept = kept + 1; cart.sum += (int)n + text[0]; }
	static inline __attribute__((always_inline)) void add(Box<int> box) { kept = kept + box.value; }
	namespace { inline __attribute__((always_inline)) void hidden() { kept = kept + 3; } }
	}
	int main(int argc, char **argv)
	{
		shop::Cart cart = { 0 };
		for (int i = 0; i < 70; i++)
			shop::add(cart, argv[0], i);
		for (int i = 0; i < 30; i++)
			shop::add(shop::Box<int>{ argc });
		for (int i = 0; i < 20; i++)
			shop::hidden();
		printf("%d\n", cart.sum);
	}
END
g++ -O2 -g -fno-unroll-loops -o static static.cc
copies() { # PATTERN: calls of the copies
	"$FAY" trace --json -o rows.json "from f in cluster.Function(\"static!$1\")
		group f by f.Inlined into g select new { g.Key, n = g.Count() }" -- ./static \
		>out 2>err || fail "$1: $(cat err)"
	jq -s 'map(select(.type == "row" and .final).values.n) | add' rows.json
}
equal "both functions of a name" 100 "$(copies shop::add)"
equal "with pointers and numbers" 70 "$(copies 'shop::add(shop::Cart&, char const?, unsigned long)')"
equal "with a template's instance" 30 "$(copies 'shop::add(shop::Box<int>)')"
equal "in a namespace without a name" 20 "$(copies 'shop::(anonymous namespace)::hidden()')"
equal "a part of the name" 20 "$(copies 'shop::*hidden')"

[ $# -gt 0 ] || exit 0 # MEGABYTES: the long test
python3 "$here/cyclic.py" "$FAY" "$work" || fail "references in circles"
python3 "$here/large.py" "$FAY" "$work" "$1" || fail "large debug information"
