#!/usr/bin/env bash
# Stacks: of chains of calls that are known, with and without frame pointers, symbols and
# optimisation; of Debian's CPython against what its own unwinder sees at each call.
. "$(dirname "$0")/../lib.sh"
here=$(cd "$(dirname "$0")" && pwd)
python=$(readlink -f /usr/bin/python3 || true)
query='from e in cluster.Function("*!reached") group e by e.Stack(32) into g
	select new { stack = g.Key, n = g.Count() }'
# When a call ends its stack is what it was; with records of calls, too.
at_ends=("${query/Function/Return}" "${query/Function/Return}" "${query/Function/Return}")
at_ends[1]=${at_ends[1]/g.Count()/g.Count(x => x.Duration >= 0)}
at_ends[2]=${at_ends[2]/g.Count()/g.Count(x => x.Arg(0) == x.ReturnValue)}
# And each call, joined with those of its thread.
joined='join r in cluster.Return("*!reached") on e.tid equals r.tid within 30s into others'
at_ends[3]=${query/group/"$joined group"}
at_ends[4]=${at_ends[0]/group/"${joined/Return/Function} group"}

# chains NAME FLAGS...: exact counts of the folded stacks, from main on
chains() {
	local name=$1 library=("$work/libstacks.so") called=" main;call_it;leaf;reached 7"
	shift
	[ "$name" = o2 ] || library=() called=
	gcc "$@" -pthread -o "$work/$name" "$here/stacks_target.c" 2>/dev/null
	exits "stacks, $name" 0 "$FAY" trace --folded "$query" -- "$work/$name" "${library[@]}"
	cp "$work/out" "$work/entries"
	for at_end in "${at_ends[@]}"; do
		exits "stacks at ends or joined, $name" 0 "$FAY" trace --folded "$at_end" \
			-- "$work/$name" "${library[@]}"
		equal "the same, $name" "$(sort "$work/entries" | sha256sum)" \
			"$(sort "$work/out" | sha256sum)"
	done
	cp "$work/entries" "$work/out"
	[ "$name" != stripped ] || return 0
	deep=$(printf 'deeper;%.0s' $(seq 29))
	# In order: a deep recursion's innermost 32 frames; what main calls; what a thread calls.
	equal "chains, $name" \
		"${deep}deeper;leaf;reached 20$called main;leaf;reached 100 main;other;leaf;reached 30 thread;leaf;reached 5" \
		"$(grep -v handler "$work/out" | sed -E 's/^.*;(main|thread);/\1;/' | sort |
		tr '\n' ' ' | sed 's/ $//')"
	equal "through a signal, $name" 10 \
		"$(sed -n -E 's/^.*;main;interrupted;(.*;)?handler;reached ([0-9]*)$/\2/p' \
		"$work/out")"
}
gcc -O1 -fPIC -shared -o "$work/libstacks.so" "$here/stacks_library.c"
chains o2 -O2 -fomit-frame-pointer
chains o0 -O0 -fno-omit-frame-pointer
chains aligned -O2 -mincoming-stack-boundary=3 -mstackrealign
chains static -O2 -static
chains stripped -O2 -s -rdynamic
# Where there are no symbols, functions have made-up names, and the chains are the same.
equal "counts, stripped" "5 10 20 30 100" \
	"$(sed 's/.* //' "$work/out" | sort -n | tr '\n' ' ' | sed 's/ $//')"
equal "frames, stripped" 32 "$(grep ' 20$' "$work/out" | tr -cd ';' | wc -c | awk '{print $1 + 1}')"

# A call that goes on in another function ends with that; of one that an exception ends the function
# is known.
cat >"$work/ends.cc" <<'END'
#define CALLED extern "C" __attribute__((noinline, noclone, visibility("default")))
CALLED int last(int x) { __asm__ volatile("" : "+r"(x)); return x + 1; }
CALLED int first(int x) { __asm__ volatile("" : "+r"(x)); return last(x); }
CALLED int thrower(int x) { __asm__ volatile("" : "+r"(x)); if (x % 3 == 0) throw x; return x; }
CALLED int around(int x)
{
	int result = first(x);
	try { result += thrower(x); } catch (int) { result = 0; }
	return result;
}
int main() { int sum = 0; for (int i = 0; i < 90; i++) sum += around(i); return sum == 0; }
END
g++ -O2 -rdynamic -o "$work/ends" "$work/ends.cc"
exits "ends" 0 "$FAY" trace --csv 'from r in cluster.Return("ends!*") where r.function == "first" ||
	r.function == "last" || r.function == "thrower" group r by new { r.Failed, s = r.Stack(3) }
	into g select new { g.Key, n = g.Count() }' -- "$work/ends"
equal "stacks at ends of all kinds" \
	"false,first;around;main,90 false,last;around;main,90 false,thrower;around;main,60 true,thrower,30" \
	"$(tail -n +2 "$work/out" | sed -E 's/ends!|\+0x[0-9a-f]+|"//g' | sort | paste -sd' ')"
# Of one that ends in a jump to what is not traced, and how long it took.
exits "a jump that leads out" 0 "$FAY" trace --csv 'from r in cluster.Return("ends!first") group r by
	r.Stack(3) into g select new { g.Key, n = g.Count(x => x.Duration >= 0) }' -- "$work/ends"
equal "its stacks" "first;around;main,90" \
	"$(tail -n +2 "$work/out" | sed -E 's/ends!|\+0x[0-9a-f]+|"//g')"

# What a probe of ends has of the registers: rsp and rbp.
for also in 0 event-\>duration; do
	cat >"$work/registers.c" <<-END
		#include <fay/probe.h>
		FAY_COUNT(right);
		FAY_RETURN("ends!around")
		{
			uint64_t any = event->cycles & 15;
			if (event->reg[4] == event->stack_pointer && ($also) + 1 &&
			    (any == 4 || any == 5 || !event->reg[any]))
				fay_count(&right);
		}
	END
	"$FAY" cc "$work/registers.c" -o "$work/registers.img"
	exits "registers at ends" 0 "$FAY" trace --json --probe "$work/registers.img" -- "$work/ends"
	equal "of 90 calls" 90 "$(jq 'select(.type == "row") | .values.right' "$work/out")"
done

# In other forms.
exits "as JSON" 0 "$FAY" trace \
	--json 'cluster.Function("*!reached").Where(e => e.Arg(0) == 99).Select(e => new { e.tid,
		e.UserStack })' -- "$work/o2"
equal "innermost first" "o2!reached o2!leaf o2!main" \
	"$(jq -r 'select(.type == "row") | .values.UserStack[0:3] | map(sub("\\+.*"; "")) |
		join(" ")' "$work/out")"
# an estimate, which depends on the addresses: they are always the same here
exits "distinct" 0 setarch -R "$FAY" trace \
	--csv 'cluster.Function("*!reached").DistinctCount(e => e.Stack(3))' -- "$work/o2"
equal "distinct innermost three" 5 "$(tail -1 "$work/out")"
exits "as a table" 0 "$FAY" trace \
	'from e in cluster.Function("*!reached") where e.Arg(0) == 98 group e by e.Stack(3) into g
		select new { g.Key, n = g.Count() }' -- "$work/o2"
contains "a line for each frame" "$work/out" "  o2!main+0x"
exits "--folded without a stack" 2 "$FAY" trace --folded 'cluster.Function("*!reached").Count()' \
	-- "$work/o2"
contains "said" "$work/err" "this result has none"
exits "--folded and --json" 2 "$FAY" trace --folded --json "$query" -- "$work/o2"
exits "saving stacks" 0 "$FAY" trace --save "$work/saved" \
	'from e in cluster.Function("*!reached") where e.Arg(0) == 98
		select new { e.time, e.UserStack }' -- "$work/o2"
exits "asking for them" 0 "$FAY" trace \
	--folded "file(\"$work/saved\").GroupBy(e => e.UserStack).Select(g => new { g.Key,
		n = g.Count() })"
contains "saved stacks by name" "$work/out" "main;"

# A real program: each stack against the one that it noted itself.
[ -x "$python" ] || skip "/usr/bin/python3 is not installed"
gcc -O2 -fPIC -shared -D_GNU_SOURCE -o "$work/liboracle.so" "$here/stacks_oracle.c"
cat >"$work/program.py" <<'END'
import ctypes, functools, os, random, sys
oracle = ctypes.CDLL(sys.argv[1])
path = "/etc/passwd"
def direct():
    fd = os.open(path, os.O_RDONLY)
    os.read(fd, 100)
    os.close(fd)
def text():
    open(path).read()
def binary():
    with open(path, "rb") as f:
        f.readlines()
def unbuffered():
    with open(path, "rb", buffering=0) as f:
        f.read(10)
        f.readinto(bytearray(5))
class Odd:
    def __init__(self, f): self.f = f
    def __add__(self, n): return self.f()
    def __getattr__(self, name): return self.f()
    def __iter__(self): yield self.f()
    def __len__(self): self.f(); return 1
# Each goes through other functions of the interpreter's.
kinds = [
    lambda f: f(),
    lambda f: list(map(lambda x: f(), [1])),
    lambda f: sorted([1], key=lambda x: (f(), 0)[1]),
    lambda f: Odd(f) + 1,
    lambda f: Odd(f).anything,
    lambda f: [x for x in Odd(f)],
    lambda f: len(Odd(f)),
    lambda f: functools.partial(f)(),
    lambda f: functools.reduce(lambda x, y: f(), [1, 2]),
]
def descend(depth):
    if not depth:
        random.choice([direct, text, binary, unbuffered])()
    else:
        random.choice(kinds)(lambda: descend(depth - 1))
print("ready", flush=True)
sys.stdin.readline()
oracle.note_to(sys.argv[2].encode())
random.seed(7)
for i in range(600):
    descend(random.randrange(7))
oracle.note_to(None)
print("did", flush=True)
sys.stdin.readline()
END
LD_PRELOAD="$work/liboracle.so" start_target ready "$python" -S "$work/program.py" \
	"$work/liboracle.so" "$work/notes"
trace -p "$target" \
	'from e in cluster.Function("liboracle!read") where e.Arg(0) != 0 group e by e.Stack(32)
		into g select new { stack = g.Key, n = g.Count() }'
echo >&9
wait_for "$work/target.out" did
end_trace
end_target
"$python" "$here/stacks_compare.py" "$FAY" "$work/trace.json" "$work/notes" || fail "stacks differ"
