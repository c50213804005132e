#!/usr/bin/env bash
# Distributed performance counters (examples/queries): allocations of redis on three machines, by
# second. The largest ones are known.
. "$(dirname "$0")/lib.sh"
command -v redis-server >/dev/null || skip "redis-server is not installed"
server 0
for n in 1 2 3; do
	agent $n
	within $n redis-server --port 7000 --bind 127.0.0.1 --save "" --appendonly no \
		--dir "$work" >"redis$n.log"
	wait_for "redis$n.log" "Ready to accept connections"
done
ask --await 3 --comm redis-server -f performance-counters
# On node N the largest allocation is that of a value of N hundred thousand bytes.
for n in 1 2 3; do
	within $n sh -c "head -c ${n}00000 /dev/zero | redis-cli -p 7000 -x set key >set$n.log"
	wait_for "set$n.log" OK
done
rest 25 # the windows are over
end_ask
equal "machines that finished, were lost" "3 0" "$(coverage finished) $(coverage lost)"
rows=$(grep -v '^$' trace.json | jq -sc 'map(select(.type == "row").values) | group_by(.window) |
	map(last)')
equal "one program" '["redis-server"]' "$(jq -c 'map(.Key) | unique' <<<"$rows")"
equal "the largest allocation of all machines" true \
	"$(jq 'map(.largest) | max | . >= 300000 and . < 1000000' <<<"$rows")"
equal "bytes: those of all machines' values at least" true \
	"$(jq 'map(.bytes) | add >= 600000' <<<"$rows")"
equal "allocations are counted" true \
	"$(jq 'all(.allocations > 0 and .bytes >= .largest)' <<<"$rows")"
