#!/usr/bin/env bash
# Requests followed over two machines, by number and time, where the machines' clocks are far apart:
# a client on one, its server on the other, one join.
. "$(dirname "$0")/lib.sh"
server 0
cp "$CALLS" client
cp "$CALLS" server
echo 0 >clock2
agent 1
CLOCK_FILE=$work/clock2 LD_PRELOAD=$CLOCK agent 2
agent 3
TARGET=$work/client CALLS=$work/client target 1
TARGET=$work/server CALLS=$work/server target 2
TARGET=$work/server CALLS=$work/server target 3
requests='from c in cluster.Function("client!counted")
	join s in cluster.Function("server!counted") on c.Arg(0) equals s.Arg(0) within 30s'

# follow WHAT NODE: 2,000 calls on the client, later as many on the server; each number twice on
# either side, so four pairs of each
follow() {
	ask --await 3 --comm client --comm server "$requests
		let took = s.time - c.time
		where s.time > c.time
		select new { number = c.Arg(0), took }"
	calls 1 2000
	sleep 0.3
	calls "$2" 2000
	wait_for trace.json '"type":"row"' 4000
	end_ask
	equal "pairs, $1" 4000 "$(jq -s '[.[] | select(.type == "row")] | length' trace.json)"
	equal "pairs of each number, $1" "[4]" \
		"$(jq -sc '[.[] | select(.type == "row") | .values.number] | group_by(.) |
			map(length) | unique' trace.json)"
	# The server began 0.3 s after the client had ended; within the 30 s, though its clock may
	# be minutes off.
	equal "requests that took less than 0.2 s or more than 30, $1" 0 \
		"$(jq -s '[.[] | select(.type == "row") | .values.took |
			select(. < 2e8 or . > 3e10)] | length' trace.json)"
	equal "events joined, dropped, late, $1" "2000 2000 0 0" \
		"$(jq -sr 'map(select(.type == "end"))[0].join |
			"\(.left) \(.right) \(.evicted) \(.late)"' trace.json)"
	equal "rows shed, $1" 0 "$(coverage rows_shed)"
	[ "$(coverage clock_bound_ns)" -lt 200000000 ] ||
		fail "the clocks' bound is $(coverage clock_bound_ns) ns"
	contains "the bound is said, $1" trace.err "times are by this machine's clock, each within"
}
follow "clocks equal" 2
echo 40 >clock2
follow "the server's clock 40 s ahead" 2
[ "$(coverage clock_offset_ns)" -gt 39000000000 ] ||
	fail "the clock's offset is not told: $(coverage clock_offset_ns)"
echo -100 >clock2
follow "the server's clock 100 s behind" 2

# Groups of pairs, a second server, and an agent in the middle of the tree: what the root makes of
# it is the same.
ask --await 3 --fanout 1 --comm client --comm server "$requests
	where s.time > c.time
	group new { c, s } by s.Arg(0) / 1000 into g
	select new { g.Key, n = g.Count(), least = g.Min(x => x.s.time - x.c.time) }"
calls 1 4000
calls 2 4000
calls 3 4000
until_rows 'map(.n) | add' 16000
end_ask
equal "groups of pairs with two servers" '[[0,8000],[1,8000]]' \
	"$(jq -sc '[.[] | select(.type == "row" and .final) | .values | [.Key, .n]] |
		sort' trace.json)"
equal "events joined" "4000 8000" \
	"$(jq -sr 'map(select(.type == "end"))[0].join | "\(.left) \(.right)"' trace.json)"
