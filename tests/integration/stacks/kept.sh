#!/usr/bin/env bash
# Arguments of calls that have ended: exact sums by argument over recursion, tail calls, calls left
# by longjmp, and threads; read() by file descriptor in a real program.
. "$(dirname "$0")/../lib.sh"
here=$(cd "$(dirname "$0")" && pwd)
gcc -O2 -pthread -o "$work/kept" "$here/kept_target.c"

exits "by argument" 0 "$FAY" trace \
	--csv 'from r in cluster.Return("kept!*") where r.function == "doubled"
		|| r.function == "summed" || r.function == "passed_on" || r.function == "left"
	group r by new { r.function, kind = r.Arg(0) } into g
	select new { g.Key, n = g.Count(), xs = g.Sum(x => x.Arg(1)),
	results = g.Sum(x => x.ReturnValue), wrong = g.Count(x => x.function == "doubled" &&
	x.ReturnValue != 2 * x.Arg(1)) }' -- "$work/kept"
# 4 threads; summed(100) is 101 calls with the arguments 0 to 100 and the results 0, 1, 3, ...,
# 5050. No call of left() returns.
equal "exact" \
	"doubled,1,4000,1998000,3996000,0 doubled,14,4000,2002000,4004000,0 passed_on,4,4000,1998000,4004000,0 summed,2,40400,2020000,68680000,0" \
	"$(tail -n +2 "$work/out" | sort | tr '\n' ' ' | sed 's/ $//')"
exits "as JSON" 0 "$FAY" trace \
	--json 'cluster.Return("kept!summed").Count(r => r.ReturnValue == r.Arg(1) * (r.Arg(1) + 1)
		/ 2 && r.Arg(0) == 2)' -- "$work/kept"
equal "each with its own argument" 40400 \
	"$(jq 'select(.type == "row") | .values.Count' "$work/out")"
equal "calls lost" 0 "$(jq 'select(.type == "end") | .lost_calls' "$work/out")"

# Of both sides of a join: passed_on(4, i) goes on in doubled(14, i + 1).
exits "in a join" 0 "$FAY" trace \
	--csv 'from a in cluster.Return("kept!passed_on") join b in cluster.Return("kept!doubled")
		on a.Arg(1) + 1 equals b.Arg(1) within 1min
		where a.tid == b.tid && b.Arg(0) == 14 group b by a.Arg(0) into g
		select new { g.Key, n = g.Count(), right = g.Count(x => x.ReturnValue ==
		2 * x.Arg(1)) }' -- "$work/kept"
equal "pairs by an argument of each" "4,4000,4000" "$(tail -n +2 "$work/out")"

# Deeper than what is kept and watched of one thread: what is not in the result is counted.
printf 'long summed(long, long); long summed(long k, long n) { long r = n ? summed(k, n - 1) : 0; __asm__ volatile("" ::: "memory"); return r + n; } int main(void) { return summed(7, 20000) == 0; }\n' \
	>"$work/deep.c"
gcc -O2 -fno-inline -fno-ipa-cp -o "$work/deep" "$work/deep.c"
exits "very deep" 0 "$FAY" trace \
	--json 'cluster.Return("deep!summed").Count(r => r.ReturnValue == r.Arg(1) * (r.Arg(1) + 1)
		/ 2)' -- "$work/deep"
equal "all are accounted for" 20001 \
	"$(jq -s '(map(select(.type == "row"))[0].values.Count) + (map(select(.type == "end"))[0] |
		.lost_calls)' "$work/out")"

# One call around many, each at another place of the stack: those that have ended make room.
cat >"$work/around.c" <<'END'
#include <alloca.h>
long inner(long n) { __asm__ volatile("" ::: "memory"); return 2 * n; }
static __attribute__((noinline)) long at(long depth) { volatile char *room = alloca(16 * depth + 16); room[0] = 1; return inner(depth) - 2 * depth + room[0]; }
long outer(long n) { long sum = 0; for (long i = 0; i < n; i++) sum += at(i); return sum; }
int main(void) { return outer(60000) != 60000; }
END
gcc -O2 -fno-inline -fno-ipa-cp -fno-ipa-icf -o "$work/around" "$work/around.c"
exits "around many" 0 "$FAY" trace \
	--json 'cluster.Return("around!*er").Count(r => (r.function == "outer" && r.Arg(0) == 60000
		&& r.ReturnValue == 60000) || (r.function == "inner" && r.ReturnValue == 2 *
		r.Arg(0)))' -- "$work/around"
equal "all with their own arguments" "60001 0" \
	"$(jq -s -r '"\(map(select(.type == "row"))[-1].values.Count) \(map(select(.type == "end"))[0].lost_calls)"' \
	"$work/out")"

# By a probe in C, of calls that return, throw, or are left by longjmp: the arguments, all six, and
# where the call would have returned to, which is behind the one call in main().
cat >"$work/left.cc" <<'END'
#include <csetjmp>
extern "C" {
long left(long, long, long, long, long, long);
__attribute__((noinline, noclone)) long left(long n, long b, long c, long d, long e, long f)
{
	extern jmp_buf place;
	if (n % 3 == 1)
		throw n;
	if (n % 3 == 2)
		longjmp(place, 1);
	__asm__ volatile("" ::: "memory");
	return n + b + c + d + e + f;
}
jmp_buf place;
}
int main()
{
	for (volatile long i = 0; i < 3001; i++)
		if (!setjmp(place))
			try {
				left(i, 1, 2, 3, 4, 5);
			} catch (long) {
			}
}
END
cat >"$work/left.c" <<'END'
#include <fay/probe.h>
FAY_CELL(seen, FAY_VALUES(FAY_VALUE_COUNT(returned), FAY_VALUE_COUNT(left), FAY_VALUE_SUM(first),
	FAY_VALUE_SUM(others), FAY_VALUE_MIN(lowest), FAY_VALUE_MAX(highest)));
static inline void see(const struct fay_event *event)
{
	fay_sum(&seen.first, event->arg[0]);
	fay_sum(&seen.others, event->arg[1] + 10 * event->arg[2] + 100 * event->arg[3] +
		1000 * event->arg[4] + 10000 * event->arg[5]);
	fay_min(&seen.lowest, event->caller);
	fay_max(&seen.highest, event->caller);
}
FAY_RETURN("left!left") { fay_count(&seen.returned); see(event); }
FAY_EXCEPTION("left!left") { fay_count(&seen.left); see(event); }
END
g++ -O2 -fno-inline -o "$work/left" "$work/left.cc"
"$FAY" cc "$work/left.c" -o "$work/left.fay"
exits "by a probe in C" 0 "$FAY" trace --json --probe "$work/left.fay" -- "$work/left"
# 0 to 3000: 1,001 return, 1,000 throw, and 1,000 are left by longjmp, all noticed at the next call.
equal "what calls began with" "1001 2000 $((3000 * 3001 / 2)) $((54321 * 3001)) true" \
	"$(jq -r 'select(.type == "row" and .final) | .values |
		"\(.returned) \(.left) \(.first) \(.others) \(.lowest == .highest)"' "$work/out")"
sed -i '$a FAY_OFFSET("left!left", 0) { if (event->flags & 1) fay_count(&seen.left); }
	$a FAY_ENTRY("left!left") { fay_max(&seen.highest, event->caller); }' "$work/left.c"
"$FAY" cc "$work/left.c" -o "$work/both.fay"
exits "flags at one place, the caller at another" 1 "$FAY" trace --probe "$work/both.fay" \
	-- "$work/left"
contains "and why" "$work/err" "reads event.flags in one probe and event.caller"

# A real program.
python=$(readlink -f /usr/bin/python3 || true)
[ -x "$python" ] || skip "/usr/bin/python3 is not installed"
head -c 100000 /dev/zero >"$work/large"
head -c 3000 /dev/zero >"$work/small"
cat >"$work/program.py" <<'END'
import os, sys
a, b = os.open(sys.argv[1], 0), os.open(sys.argv[2], 0)
os.dup2(a, 50), os.dup2(b, 51)
while os.read(50, 700):
    os.read(51, 100)
END
exits "read by descriptor" 0 "$FAY" trace \
	--csv 'from r in cluster.Return("libc!read") where r.Arg(0) >= 50 group r by r.Arg(0) into g
		select new { fd = g.Key, bytes = g.Sum(x => x.ReturnValue),
		short = g.Count(x => x.ReturnValue < x.Arg(2)) }' \
	-- "$python" -S "$work/program.py" "$work/large" "$work/small"
equal "bytes by descriptor" "50,100000,2 51,3000,113" \
	"$(tail -n +2 "$work/out" | sort | tr '\n' ' ' | sed 's/ $//')"
