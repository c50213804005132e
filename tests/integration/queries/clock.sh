#!/usr/bin/env bash
# The system's clock is set by an hour, forwards or back, while a trace with windows of time runs:
# fay is told so by a library in front of clock_gettime(), since a machine's clock is not a test's
# to set. Each event stays in its window, and none is missing or twice; calls and system calls at
# all times, in windows of 100 ms.
host=1
. "$(dirname "$0")/../lib.sh"
cat >"$work/set.c" <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *now)
{
	static int (*next)(clockid_t, struct timespec *);
	const char *set = getenv("CLOCK_SET"), *by = getenv("CLOCK_BY");
	if (!next)
		next = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	int result = next(clock, now);
	if ((clock == CLOCK_REALTIME || (clock == CLOCK_BOOTTIME && getenv("CLOCK_LATE"))) && set && by && !access(set, F_OK))
		now->tv_sec += atoi(by);
	return result;
}
C
gcc -shared -fPIC -O1 -o "$work/set.so" "$work/set.c"
export CLOCK_SET="$work/is_set"
cat >"$work/reads.pl" <<'PERL'
open F, '<', '/dev/zero'; my $b;
for my $i (1 .. 30) { for (1 .. 1000) { sysread F, $b, 7 } select undef, undef, undef, .05; if ($i == 15) { open my $set, '>', $ENV{CLOCK_SET} } }
PERL
# counted QUERY: the events in all windows, and that there is none between them without a row
counted() {
	rm -f "$CLOCK_SET"
	LD_PRELOAD="$work/set.so" "$FAY" trace --json "$1" -- perl "$work/reads.pl" >"$work/out" \
		2>"$work/err" || {
		cat "$work/err" >&2
		fail "$1"
	}
	[ -e "$CLOCK_SET" ] || fail "the clock was not set"
	jq -c -s 'map(select(.type == "row" and .final).values) | group_by(.window)[] | last' \
		"$work/out" >"$work/rows"
	equal "events in all windows, the clock set by $CLOCK_BY s" 30000 \
		"$(jq -s 'map(.Count) | add' "$work/rows")"
	equal "windows that follow one another" true \
		"$(jq -s '[.[].window] | [.[1:], .[:-1]] | transpose |
			all(.[0] - .[1] == 100000000)' "$work/rows")"
	[ "$(wc -l <"$work/rows")" -lt 20000 ] || fail "an hour of windows"
}
for by in 3600 -3600; do
	export CLOCK_BY=$by
	counted 'cluster.Function("libc!read").Where(r => r.Arg(2) == 7).Tumbling(100ms).Count()'
	if [ "$(bpf_is ok)" = true ]; then
		counted 'cluster.Syscall("read").Where(r => r.Arg(2) == 7).Tumbling(100ms).Count()'
	fi
done

# Events that come late: fay believes that ten seconds more have passed than have, so that windows
# are over for good before their events come. Shown or late, each is counted, once.
export CLOCK_BY=10 CLOCK_LATE=1
late() { # QUERY
	rm -f "$CLOCK_SET"
	LD_PRELOAD="$work/set.so" "$FAY" trace --json "$1" -- perl "$work/reads.pl" >"$work/out" \
		2>"$work/err" || {
		cat "$work/err" >&2
		fail "$1"
	}
	jq -c -s 'map(select(.type == "row" and .final).values) | group_by([.window, .Key])[] |
		last' "$work/out" >"$work/rows"
	late=$(jq -s 'map(select(.type == "end"))[0].events_late' "$work/out")
	[ "$late" -gt 0 ] || fail "no event came late"
	equal "events in windows and late ones" 30000 \
		"$(jq -s "map(.Count // .n) | add + $late" "$work/rows")"
	contains "late ones are said" "$work/err" "fay: $late events came late"
}
late 'cluster.Function("libc!read").Where(r => r.Arg(2) == 7).Tumbling(100ms).Count()'
late 'from r in cluster.Function("libc!read").Where(r => r.Arg(2) == 7).Tumbling(100ms)
	group r by r.comm into g select new { g.Key, n = g.Count() }'

# A program that writes into its own table: a window that begins where numbers end is none, and the
# trace ends with the program.
cat >"$work/forge.pl" <<'PERL'
open F, '<', '/dev/zero'; my $b;
for (1 .. 100) { sysread F, $b, 7 }
open M, '<', '/proc/self/maps'; my ($at) = map { /^(\w+)-.*fay-state/ ? hex $1 : () } <M>;
open P, '+<', '/proc/self/mem'; my $forged = 0;
for my $from (map { $at + ($_ << 16) } 0 .. 63) {
	sysseek P, $from, 0; sysread P, my $page, 65536 or last; my @words = unpack 'Q*', $page;
	for (grep { abs($words[$_] / 1e9 - time) < 1e5 && $words[$_] % 100000000 == 0 } 0 .. $#words) { sysseek P, $from + 8 * $_, 0; syswrite P, pack 'Q', ~0 - 255; $forged++ }
}
print STDERR "forged $forged\n";
PERL
unset CLOCK_BY CLOCK_LATE
exits "a trace whose table is forged" 0 timeout -k 5 60 "$FAY" trace \
	--json 'cluster.Function("libc!read").Where(r => r.Arg(2) == 7).Tumbling(100ms).Count()' \
	-- perl "$work/forge.pl"
contains "a row was forged" "$work/err" "forged 1"
[ "$(wc -l <"$work/out")" -lt 1000 ] || fail "windows without end"
