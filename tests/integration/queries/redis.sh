#!/usr/bin/env bash
# Counts on Debian's own redis-server equal what the server itself counted, and its text is
# untouched afterwards.
. "$(dirname "$0")/../lib.sh"
start_redis
before=$(text_hash "$redis")
before_libc=$(text_hash "$redis" libc.so)

trace -p "$redis" 'cluster.Function("redis-server!call").Count()'
redis-cli -p "$port" config resetstat >/dev/null
redis-benchmark -p "$port" -n 200000 -c 20 -P 4 -t get,set -q >/dev/null
end_trace
calls=$(redis-cli -p "$port" info commandstats | tr -d '\r' |
	sed -n 's/^cmdstat_.*:calls=\([0-9]*\),.*/\1/p' | paste -sd+ | bc)
equal "redis-server!call against commandstats" "$calls" "$(final_sum Count)"
[ "$calls" -ge 400000 ] || fail "the load ran: $calls calls"

# The paper's query: reads by kilobyte. The server's own count of reads is the oracle.
trace -p "$redis" 'from io in cluster.Function("libc!read")
    where io.time < Now.AddMinutes(5)
    let size = io.Arg(2) // request size in bytes
    group io by size/1024 into g
    select new { sizeInKilobytes = g.Key, countOfReadIOs = g.Count() };'
reads() { redis-cli -p "$port" info stats | tr -d '\r' | sed -n 's/^total_reads_processed://p'; }
first=$(reads)
redis-benchmark -p "$port" -n 50000 -c 10 -t set -q >/dev/null
last=$(reads)
end_trace
counted=$(final_sum countOfReadIOs)
echo "reads: the server counted $((last - first)), fay $counted"
[ "$counted" -ge $((last - first)) ] ||
	fail "fay counted fewer reads ($counted) than the server ($((last - first)))"

# Its malloc is not libc's, which is said where nothing calls that one.
"$FAY" trace -p "$redis" --for 200ms 'cluster.Function("libc!malloc").Count()' \
	>/dev/null 2>"$work/err"
grep -q "^fay: nothing called libc!malloc; libjemalloc!malloc is another function" "$work/err" ||
	fail "no word of the other malloc: $(cat "$work/err")"

equal "text of redis-server after detach" "$before" "$(text_hash "$redis")"
equal "text of libc after detach" "$before_libc" "$(text_hash "$redis" libc.so)"
equal "the server still serves" PONG "$(redis-cli -p "$port" ping)"
