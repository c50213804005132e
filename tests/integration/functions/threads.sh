#!/usr/bin/env bash
# 8 threads, 50 million calls: the total and each thread's share are exact; so are totals when the
# table overflows all the time.
. "$(dirname "$0")/../lib.sh"
start() { start_target ready "$TARGET" "$@"; } # THREADS CALLS [early]
go() { echo >&9; wait_for "$work/target.out" done; }

start 8 6250000
trace -p "$target" 'cluster.Function("threads_target!work").Count()'
go
resident=$(awk '/^[0-9a-f]+-/ { of = /libLLVM/ && $2 ~ /x/ } of && /^Rss:/ { kb += $2 }
	END { print kb + 0 }' "/proc/$tracer/smaps")
[ "$resident" -lt 10000 ] || fail "$resident kB of the code that compiled the query are resident"
echo "ok: what compiled the query is given back ($resident kB are resident)"
end_trace
equal "8 threads, 50 M calls" 50000000 "$(final_sum Count)"
end_target

start 8 1000000
trace -p "$target" 'from w in cluster.Function("threads_target!work") group w by w.tid into g
	select new { tid = g.Key, n = g.Count(), top = g.Max(w => w.Arg(1)),
	low = g.Min(w => w.Arg(1)) }'
go
end_trace
jq -r 'select(.type == "row" and .final) | .values | "thread \(.tid) \(.n) \(.top) \(.low)"' \
	"$work/trace.json" | sort >"$work/got"
sed -n 's/^thread \([0-9]*\) .*/thread \1 1000000 999999 0/p' "$work/target.out" |
	sort >"$work/want"
diff "$work/want" "$work/got" || fail "counts by thread"
echo "ok: counts, maxima and minima of 8 threads"
end_target

# 100,000 keys in each of 4 threads, far more than the table's rows: emit and clear.
# On a busy machine fay may be without a processor for longer than the program waits for room, so it
# goes first.
start 4 100000
FAY_TRACE_PRIORITY=-15 trace -p "$target" \
	'cluster.Function("threads_target!work").GroupBy(w => w.Arg(1)).Select(g => new { key =
		g.Key, n = g.Count(), s = g.Sum(w => w.Arg(0)) })'
go
end_trace
equal "keys under table overflow" 100000 \
	"$(jq -s '[.[] | select(.type == "row" and .final)] | length' "$work/trace.json")"
equal "each key counted in every thread" '[4]' \
	"$(jq -sc '[.[] | select(.type == "row" and .final) | .values.n] |
		unique' "$work/trace.json")"
equal "sum over threads of each key" '[6]' \
	"$(jq -sc '[.[] | select(.type == "row" and .final) | .values.s] |
		unique' "$work/trace.json")"
end_target

# Threads that come and go, and streamed rows.
start 2 5000
trace -p "$target" 'from w in cluster.Function("threads_target!work") where w.Arg(1) % 2 == 0
	select new { w.tid, number = w.Arg(1) }'
go
end_trace
equal "streamed rows" 5000 "$(jq -s '[.[] | select(.type == "row")] | length' "$work/trace.json")"
equal "sum of the streamed numbers" $((2 * 2500 * 4998 / 2)) \
	"$(jq -s '[.[] | select(.type == "row") | .values.number] | add' "$work/trace.json")"
end_target

# Some threads only: the others, and those that come later on the same stacks, pass by and are not
# counted; returns like entries.
start 4 50000 early
mapfile -t tids < <(ls "/proc/$target/task" | grep -vx "$target" | sort -n)
trace --tid "${tids[1]}" --tid "${tids[3]}" \
	'from w in cluster.Function("threads_target!work") group w by w.tid into g
		select new { tid = g.Key, n = g.Count() }'
go
end_trace
jq -r 'select(.type == "row" and .final) | .values | "\(.tid) \(.n)"' "$work/trace.json" |
	sort -n >"$work/got"
printf '%s 50000\n' "${tids[1]}" "${tids[3]}" | sort -n >"$work/want"
diff "$work/want" "$work/got" || fail "threads that were asked for"
equal "threads that took a slot" 2 \
	"$(jq -s 'map(select(.type == "end"))[0].threads' "$work/trace.json")"
end_target
start 4 50000 early
tid=$(ls "/proc/$target/task" | grep -vx "$target" | head -1)
trace --tid "$tid" 'cluster.Return("threads_target!work").Count()'
go
end_trace
equal "returns in one thread" 50000 "$(final_sum Count)"
end_target
exits "a thread that is not there" 1 "$FAY" trace --tid 4194303 \
	'cluster.Function("libc!read").Count()'

# By thread name: threads one after the other at the same place in memory, each with a name of its
# own; one that renames itself, and waits for as long as an old name may be taken for its own
# (docs/faylinq.md).
cat >"$work/names.c" <<'END'
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
int work(int n);
__attribute__((noinline, noclone)) int work(int n) { __asm__ volatile("" ::: "memory"); return n; }
static void *named(void *number)
{
	char name[16];
	snprintf(name, sizeof(name), "thread %ld", (long)number % 7);
	pthread_setname_np(pthread_self(), name);
	for (int i = 0; i < 10; i++)
		work(i);
	return NULL;
}
int main(void)
{
	for (long i = 0; i < 700; i++) {
		pthread_t thread;
		if (pthread_create(&thread, NULL, named, (void *)i))
			return 1;
		pthread_join(thread, NULL);
	}
	for (int round = 0; round < 20; round++) {
		pthread_setname_np(pthread_self(), round % 2 ? "odd" : "even");
		usleep(100000);
		for (int i = 0; i < 100000; i++)
			work(i);
	}
	return 0;
}
END
gcc -O2 -pthread -o "$work/names" "$work/names.c"
exits "by thread name" 0 "$FAY" trace --csv 'from w in cluster.Function("names!work")
	group w by w.comm into g orderby g.Key select new { g.Key, n = g.Count() }' -- "$work/names"
equal "by thread name" "even,1000000 odd,1000000 thread 0,1000 thread 1,1000 thread 2,1000 thread 3,1000 thread 4,1000 thread 5,1000 thread 6,1000" \
	"$(tail -n +2 "$work/out" | tr '\n' ' ' | sed 's/ $//')"
