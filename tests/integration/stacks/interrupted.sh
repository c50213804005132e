#!/usr/bin/env bash
# interrupted.sh [COUNT]: stacks of a program that signals interrupt anywhere, each against the one
# that the compiler's unwinder saw at that moment: in frames of all kinds, the procedure linkage
# table, tail calls, exceptions, the C library, the kernel's functions, on a stack of its own.
. "$(dirname "$0")/../lib.sh"
here=$(cd "$(dirname "$0")" && pwd)
count=${1:-4000}
cat >"$work/linked.c" <<'END'
int linked_one(int x) { return x + 1; }
int linked_two(int x) { return x ^ 2; }
int linked_call(int (*function)(int), int x) { return function(x) + 1; }
END
gcc -O2 -fPIC -shared -o "$work/liblinked.so" "$work/linked.c"
g++ -O2 -fomit-frame-pointer -rdynamic -pthread -o "$work/interrupted" \
	"$here/interrupted_target.cc" "$work/liblinked.so" -Wl,-z,lazy,-rpath,"$work"
start_target ready "$work/interrupted" "$work/notes" "$count"
trace -p "$target" 'from e in cluster.Function("interrupted!reached")
	select new { number = e.Arg(0), stack = e.Stack(16) }'
echo >&9
wait_for "$work/target.out" did
end_trace
end_target
python3 "$here/stacks_compare.py" "$FAY" "$work/trace.json" "$work/notes" 2 || fail "stacks differ"
