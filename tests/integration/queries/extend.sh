#!/usr/bin/env bash
# Queries that call functions of C, in real programs, over saved events, and what is said where they
# cannot.
. "$(dirname "$0")/../lib.sh"
cd "$work"
cat >functions.c <<'C'
#include <stdbool.h>

long blocks(long bytes, int size)
{
	return size ? (bytes + size - 1) / size : 0;
}

bool is_dd(const char *comm)
{
	return comm[0] == 'd' && comm[1] == 'd' && !comm[2];
}

long endless(long x)
{
	long rounds = 0;
	for (; x != 1; rounds++)
		x = x % 2 ? 3 * x + 1 : x / 2;
	return rounds;
}
C
head -c 123456 /dev/zero >file

# values QUERY COMMAND...: the final rows' values
values() {
	local query=$1
	shift
	"$FAY" trace --json "$query" ${1:+-- "$@"} 2>err |
		jq -c 'select(.type == "row" and .final) | .values' ||
		{ cat err >&2; fail "$query"; }
}
equal "blocks that were read" '{"Sum":247}' \
	"$(values 'extend "functions.c" cluster.Return("libc!read").Where(r => r.Arg(0) == 0 &&
		r.ReturnValue > 0 && is_dd(r.comm)).Sum(r => blocks(r.ReturnValue, 512))' dd \
		if=file of=/dev/null bs=1000 status=none)"
equal "as a key" '[[0,1],[1,1],[2,123]]' \
	"$(values 'extend "functions.c" from r in cluster.Return("libc!read") where is_dd(r.comm) &&
		r.Arg(0) == 0 group r by blocks(r.ReturnValue, 999) into g orderby g.Key
		select new { g.Key, n = g.Count() }' \
		dd if=file of=/dev/null bs=1000 status=none | jq -sc 'map([.Key, .n])')"
"$FAY" trace --save calls.fay 'cluster.Function("libc!read")' -- dd if=file of=/dev/null bs=1000 \
	status=none >/dev/null 2>err
plain=$(values 'file("calls.fay").Sum(x => (x.Arg(2) + 511) / 512)')
equal "over saved events" "$plain" \
	"$(values 'extend "functions.c" file("calls.fay").Sum(x => blocks(x.Arg(2), 512))')"
[ "$plain" != '{"Sum":0}' ] || fail "nothing was saved"

exits "explained" 0 "$FAY" explain \
	'extend "functions.c" cluster.Function("libc!read").Sum(x => blocks(x.Arg(2), 512))'
contains "names the file" out "extended by  functions.c"
contains "shows the call" out "blocks(x.Arg(2), 512)"

exits "a loop whose end is not seen" 1 "$FAY" trace \
	'extend "functions.c" cluster.Function("libc!read").Sum(x => endless(x.Arg(2)))' -- true
grep -Eq 'functions\.c:1[3-9]' err || { cat err >&2; fail "no line of the file"; }
contains "nothing is installed" err "nothing was installed"
exits "no such file" 2 "$FAY" trace 'extend "missing.c" cluster.Function("libc!read").Count()' \
	-- true
contains "says which" err "missing.c: No such file or directory"
echo 'long broken(long x) { return y; }' >broken.c
exits "not C" 1 "$FAY" trace 'extend "broken.c" cluster.Function("libc!read").Count()' -- true
contains "as the C compiler says it" err "broken.c:1:30: error: use of undeclared identifier 'y'"
exits "no C compiler" 1 env FAY_CLANG_PROGRAM=clang-of-no-one "$FAY" trace \
	'extend "functions.c" cluster.Function("libc!read").Count()' -- true
contains "what to install" err "apt-get install clang-19"
