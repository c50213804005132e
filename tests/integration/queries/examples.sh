#!/usr/bin/env bash
# The queries of examples/queries/cases on Debian's bash, sqlite, CPython, redis, nginx and PostgreSQL,
# beside what these did.
host=1
. "$(dirname "$0")/../lib.sh"
queries=$(dirname "$0")/../../../examples/queries/cases
query() { cat "$queries/$1.linq"; }
bpf=$(bpf_is ok)

# run NAME [OPTIONS...]: its final rows into $work/rows, one JSON object each; the program's input
# is this function's
run() {
	local name=$1
	shift
	"$FAY" trace --json -f "$queries/$name.linq" "$@" >"$work/out" 2>"$work/err" ||
		{ cat "$work/err" >&2; fail "$name"; }
	take_rows "$work/out"
	[ "$(grep '^{"type"' "$work/out" | jq -s 'map(select(.type == "end"))[0].events_lost')" = \
		0 ] || fail "$name lost events"
}
take_rows() {
	grep '^{"type"' "$1" | jq -c 'select(.type == "row" and .final != false).values' \
		>"$work/rows" || true
}
rows() { equal "$1" "$2" "$(jq -sc "$3" "$work/rows")"; }
# Ends what `trace` began and takes its rows.
end_rows() { end_trace; take_rows "$work/trace.json"; }

# --- a storm of system calls: bash reads a pipe byte by byte
# --------------------------------------------------------------
lines=500
bytes=$(seq $lines | wc -c)
storm() { run "$1" -- bash -c 'while read line; do :; done' < <(seq $lines); }
if [ "$bpf" = true ]; then
	storm storm-1-calls
	rows "the most frequent call" '"read"' '.[0].call'
	rows "that many at least" true ".[0].calls > $bytes"
	storm storm-2-arguments
	rows "reads of one byte, what they gave, from how many files" \
		"[1,$((bytes + 1)),$bytes,1]" '.[0] | [.asked, .calls, .got, .files]'
	run storm-2-arguments lseek argument=2 -- bash -c 'read line; read line' \
		<"$queries/storm-1-calls.linq"
	rows "of another call, from where" true 'length > 0 and (map(.asked) | all(. < 3))'
	# Reading and sleeping, by turns: two categories.
	cat >"$work/behaviour" <<-END
		for i in 1 2; do
			dd if=/dev/zero of=/dev/null bs=1 count=200000 status=none
			sleep 1
		done
	END
	query categories | sed 's|1s,|300ms,|; s|KMeans(5|KMeans(2|' >"$work/categories"
	"$FAY" trace --json --follow "$(cat "$work/categories")" -- sh "$work/behaviour" \
		>"$work/out" 2>"$work/err" || { cat "$work/err" >&2; fail categories; }
	take_rows "$work/out"
	rows "two categories" '[0,1]' 'map(.category) | unique'
	rows "one reads more than twice as much a second as the other" true \
		'[.[] | select(.call == "read") | .calls / .seconds] | max > 2 * (if length > 1 then min else 0 end)'
	rows "all reads are in some category" true \
		'[.[] | select(.call == "read").calls] | add >= 400000'
else
	echo "not run: categories, storm-1-calls, storm-2-arguments: no BPF here"
fi
# --- what is read into the page cache, in pages, whatever its folios' sizes are
if [ "$bpf" = true ] && [ "$(stat -f -c %T "$work")" != tmpfs ]; then
	dd if=/dev/zero of="$work/uncached" bs=1M count=16 conv=fsync status=none
	dd if="$work/uncached" of=/dev/null iflag=nocache count=0 status=none
	queries=$queries/../memory run cache-misses -- \
		sh -c "exec cat '$work/uncached' >/dev/null"
	rows "pages of a file of 16 MiB" true \
		'map(select(.program == "cat").pages)[0] | . >= 4096 and . < 8192'
fi
# --- locks: Python's are semaphores; and of files
queries=$queries/../locks run semaphore-waits -- /usr/bin/python3 -c '
import threading, time
lock = threading.Lock()
def work():
    for i in range(10):
        with lock: time.sleep(0.01)
threads = [threading.Thread(target=work) for i in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()'
rows "who waits for semaphores" true \
	'map(select(.Caller | test("PyThread_acquire_lock"))) | map(.total) | max > 1000000'
# Addresses by name: a mutex that is waited for; what is given to a function.
cat >"$work/locked.c" <<'END'
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char bytes[64];
__attribute__((noipa)) void give(void *what) { __asm__ volatile("" : : "r"(what) : "memory"); }
static void *work(void *unused)
{
	for (int i = 0; i < 5; i++) {
		pthread_mutex_lock(&lock);
		usleep(5000);
		pthread_mutex_unlock(&lock);
		usleep(100);
	}
	return unused;
}
int main(void)
{
	pthread_t threads[2];
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	give(&lock), give(bytes + 9), give((void *)give), give(malloc(8));
}
END
gcc -O1 -pthread -o "$work/locked" "$work/locked.c"
queries=$queries/../locks run mutex-addresses -- "$work/locked"
rows "the mutex that is waited for" '"locked!lock"' '.[0].mutex'
"$FAY" trace --json 'from g in cluster.Function("locked!give")
	group g by g.Arg(0).Symbol into k select new { what = k.Key, n = k.Count() }' -- "$work/locked" >"$work/out" 2>"$work/err" ||
	{ cat "$work/err" >&2; fail "a query with symbols"; }
take_rows "$work/out"
rows "data, a part of it, a function, and what has no name" \
	'["0x","locked!bytes+0x9","locked!give","locked!lock"]' \
	'map(.what | if startswith("0x") then "0x" else . end) | sort'
if [ "$bpf" = true ]; then
	queries=$queries/../locks run flock-waits --follow -- flock "$work/lock" \
		sh -c "flock '$work/lock.2' sleep 0.2 & sleep 0.05; exec flock '$work/lock.2' true"
	rows "who waits for a file's lock" true \
		'map(select(.comm == "flock")) | map(.longest) | max > 50000000'
fi
run storm-3-callers 'libc!fstat*' asked=-1 -- ls -l /etc >/dev/null
rows "callers of another call, of any argument" true 'map(.calls) | add > 1'
run storm-4-causes 'bash!read_builtin' 'libc!lseek*' -- bash -c 'read line; read line' \
	<"$queries/storm-1-calls.linq"
rows "another call that each causes" 2 '.[0].commands'
storm storm-3-callers
rows "who reads one byte" '[["bash!zread",'$((bytes + 1))']]' \
	'map([(.Key | split("+")[0]), .calls])'
storm storm-4-causes
most=$((${#lines} + 1))
rows "commands, and what they cause: each a line, the last the end" \
	"[$((lines + 1)),$((bytes + 1)),1,$most]" '.[0] | [.commands, .calls, .least, .most]'

# --- sqlite: sketches beside exact counts
# -----------------------------------------------------------------------------------
if command -v sqlite3 >/dev/null; then
	sql='with recursive c(n) as (select 1 union all select n + 1 from c where n < 2000) select count(distinct hex(n)) from c'
	run sketches -- sqlite3 :memory: "$sql"
	cp "$work/rows" "$work/sketches"
	"$FAY" trace --json 'from m in cluster.Function("libc!malloc") group m by m.Arg(0) into g
		orderby g.Count() descending select new { g.Key, n = g.Count() }' \
		-- sqlite3 :memory: "$sql" 2>/dev/null >"$work/out"
	take_rows "$work/out"
	equal "all calls" "$(jq -s 'map(.n) | add' "$work/rows")" "$(jq .calls "$work/sketches")"
	equal "the most frequent size" "$(jq -s '.[0].Key' "$work/rows")" \
		"$(jq '.sizes[0].key' "$work/sketches")"
	"$FAY" trace --json 'from m in cluster.Function("libc!malloc") group m by m.Caller into g
		select new { g.Key }' -- sqlite3 :memory: "$sql" 2>/dev/null >"$work/out"
	take_rows "$work/out"
	exact=$(wc -l <"$work/rows")
	equal "callers, within a tenth of $exact" true \
		"$(jq "(.callers - $exact | fabs) <= $exact / 10 + 1" "$work/sketches")"
fi

# --- CPython: a function's latency by caller
# ------------------------------------------------------------------------------
python=/usr/bin/python3
if [ -x $python ]; then
	code='import os
for i in range(300): os.read(os.open("/dev/zero", os.O_RDONLY), 1)'
	run latency-by-caller -- $python -c "$code"
	cp "$work/rows" "$work/latency"
	"$FAY" trace --json 'from f in cluster.Function("libc!read") group f by f.Caller into g
		select new { g.Key, n = g.Count() }' -- $python -c "$code" 2>/dev/null >"$work/out"
	take_rows "$work/out"
	shape='map({key: .Key, value: (.n // .calls)}) | from_entries'
	equal "calls by caller" "$(jq -scS "$shape" "$work/rows")" \
		"$(jq -scS "$shape" "$work/latency")"
	equal "each has its latency" true \
		"$(jq -s 'all(.calls == (.latency | map(.count) | add))' "$work/latency")"
fi

# --- redis: counters, alarm, flight recorder
# ---------------------------------------------------------------------------------
if command -v redis-server >/dev/null; then
	start_redis
	ask() { redis-cli -p "$port" "$@" >/dev/null; }
	trace -p "$redis" "$(query performance-counters)"
	"$FAY" trace --json -p "$redis" \
		'cluster.Function("libjemalloc!malloc").Sum(m => m.Arg(0))' >"$work/sum.json" \
		2>"$work/sum.err" &
	summer=$!
	own "$summer"
	wait_for "$work/sum.err" "fay: tracing"
	for i in $(seq 20); do ask set key$i "$(head -c 3000 /dev/zero | tr '\0' x)"; done
	kill -INT $summer
	ended $summer
	end_rows
	rows "bytes in all windows, beside a sum" true \
		"group_by(.window) | map(last.bytes) | add >= $(jq 'select(.type == "row"
			and .final).values.Sum' "$work/sum.json")"
	rows "of one program" '["redis-server"]' 'map(.Key) | unique'

	# The same events with and without the alarm's condition: saved, and asked twice.
	rm "$work/trace.err"
	"$FAY" trace --save "$work/reads.fay" -p "$redis" 'cluster.Return("libc!read")' \
		2>"$work/trace.err" &
	tracer=$!
	own "$tracer"
	wait_for "$work/trace.err" "fay: tracing"
	for _ in $(seq 300); do echo "set k v"; done | redis-cli -p "$port" >/dev/null
	ask set k "$(head -c 9000 /dev/zero | tr '\0' x)"
	kill -INT "$tracer"
	ended "$tracer"
	query moving-average | sed "s|cluster.Return(\"libc!read\")|file(\"$work/reads.fay\")|" \
		>"$work/alarm"
	"$FAY" trace --json "$(sed '/where g/d' "$work/alarm")" >"$work/out" 2>/dev/null
	take_rows "$work/out"
	jq -c 'select(.largest > 10 * .average)' "$work/rows" >"$work/expected"
	[ -s "$work/expected" ] || fail "no window has a large read"
	"$FAY" trace --json "$(cat "$work/alarm")" >"$work/out" 2>/dev/null
	take_rows "$work/out"
	equal "windows with an alarm" "$(cat "$work/expected")" "$(cat "$work/rows")"
	rows "the large request" true 'any(.largest > 9000)'

	trace -p "$redis" "$(query flight-recorder)"
	for _ in 1 2 3 4 5; do ask get k; done
	rest 12
	for _ in 1 2 3; do ask get k; done
	ask eval 'local n = 0; for i = 1, 50000000 do n = n + i end; return n' 0
	end_rows
	rows "one trigger at least" true \
		'[.[] | select(.before == 0)] | length > 0 and all(.took > 50000000)'
	rows "nothing from more than a second before" true 'all(.before <= 1000000000)'
fi

# --- nginx: requests through the event loop
# ------------------------------------------------------------------------------------
if command -v nginx >/dev/null && command -v curl >/dev/null; then
	mkdir "$work/www"
	echo hello >"$work/www/index.html"
	start_nginx "master_process off;" /
	trace -p "$nginx" "$(query requests-nginx)"
	# Four connections at once, whose requests nginx mixes in one thread.
	clients=()
	for _ in 1 2 3 4; do
		curl -s --max-time 120 "http://127.0.0.1:$port/[1-50]" >/dev/null & clients+=("$!")
	done
	for client in "${clients[@]}"; do ended "$client" 130; done
	end_rows
	rows "requests" "[[$nginx,200,true]]" 'map([.Key, .requests, .p50 > 0 and .p50 <= .p99])'
fi

# --- PostgreSQL: from client to server, and transactions sampled
# ---------------------------------------------------------------
bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -1 || true)
if [ -x "$bin/postgres" ]; then
	start_postgres
	# However busy the machine is, the server comes to read within a minute.
	trace -p "$client" -p "$backend" \
		"$(query requests-postgres | sed 's/within 100ms/within 1min/')"
	# Each of another length.
	for i in $(seq 100); do printf "select length('%0*d');\n" "$i" 0; done >&9
	echo "\\echo finished" >&9
	wait_for "$work/psql.out" finished
	end_rows
	rows "messages from the client to its server process" 100 \
		"map(select(.client == $client and .server == $backend))[0].messages"

	"$FAY" trace --json -p "$backend" \
		'cluster.Usdt("postgres!postgresql:transaction__start").Select(m => m.Arg(0))' \
		>"$work/all.json" 2>"$work/all.err" &
	everything=$!
	own "$everything"
	wait_for "$work/all.err" "fay: tracing"
	trace -p "$backend" "$(query sampling)"
	for i in $(seq 400); do echo "select $i;"; done >&9
	echo "\\echo sampled" >&9
	wait_for "$work/psql.out" sampled
	end_rows
	kill -INT "$everything"
	ended "$everything"
	jq 'select(.type == "row").values[]' "$work/all.json" | python3 -c '
import sys
print(sorted(n for n in map(int, sys.stdin) if (n * 0x9e3779b97f4a7c15 & (1 << 64) - 1) >> 61 == 0))' \
>"$work/expected"
	equal "the chosen transactions" "$(jq -c . "$work/expected")" \
		"$(jq -sc 'map(.transaction) | sort' "$work/rows")"
	rows "some, not all, and each took some time" true \
		'length > 20 and length < 200 and all(.took > 0)'
	exec 9>&-
	kill -INT "$server"
fi
