#!/usr/bin/env bash
# Machines that are not gone, but not as they should be: an agent that stands still, a network that
# is away for long, a wall clock that jumps.
# FAY_LONG=1: the network is away for 30 s; else for 5.
. "$(dirname "$0")/lib.sh"
server 0
TARGET=$CALLS
away=${FAY_LONG:+30}
agent 1
echo 0 >clock2
CLOCK_FILE=$work/clock2 LD_PRELOAD=$CLOCK agent 2
agent 3
for n in 1 2 3; do target $n; done
query='cluster.Function("cluster_target!counted").Count()'

# An agent stands still: it is late, then lost; the program goes on and is counted in its own
# memory.
ask --await 3 --lost-after 4s --comm cluster_target "$query"
for n in 1 2 3; do calls $n 1000; done
until_rows '.[0].Count' 3000
kill -STOP "${nodes[1]}"
for n in 1 2 3; do calls $n 1000; done
wait_for trace.json '"late":1,' # for a while
until_rows '.[0].Count' 5000
until_coverage lost 1
kill -CONT "${nodes[1]}"
until_rows '.[0].Count' 6000
end_ask
fault "an agent stands still" 6000 "$(total Count)"
equal "late, lost, finished" "0 0 3" "$(coverage late) $(coverage lost) $(coverage finished)"

# The network is away for long, the windows of all that time are told when it is back.
ask --await 3 --lost-after 3s --lease 600s --comm cluster_target "$query"
unplug 3
for _ in $(seq $((${away:-5} * 2))); do calls 3 10; rest 5; done
until_coverage lost 1
plug 3
until_rows '.[0].Count' $((${away:-5} * 20))
end_ask
fault "a machine is cut off for ${away:-5} s" $((${away:-5} * 20)) "$(total Count)"

# A wall clock jumps, forth and back, while queries run and between them. Counts have nothing to do
# with it; a window of time is one of the machine's own clock as it was when its programs were
# attached to, and how far it is off is told.
sum() {
	grep -v '^$' trace.json |
		jq -s '[.[] | select(.type == "row") | .values] | group_by(.window) |
			map(.[-1].Count) | add // 0'
}
# windows WHAT CLOCK: calls before and after node 2's clock is set to be so many seconds off; each
# is in a window
windows() {
	ask --await 3 --comm cluster_target \
		'cluster.Function("cluster_target!counted").Tumbling(1s).Count()'
	for n in 1 2 3; do calls $n 100; done
	rest 10
	echo "$2" >clock2
	for n in 1 2 3; do calls $n 100; done
	rest 10
	end_ask
	fault "windows of time: $1" 600 "$(sum)"
	equal "rows that came too late, $1" 0 "$(coverage rows_late)"
}
windows "a clock goes 40 s ahead" 40
windows "a clock 40 s ahead goes 100 s behind" -100
windows "a clock 100 s behind" -100
ask --await 3 --comm cluster_target "$query"
for n in 1 2 3; do calls $n 100; done
until_rows '.[0].Count' 300
[ "$(coverage clock_offset_ns)" -lt -90000000000 ] ||
	fail "the clock's offset is not told: $(coverage clock_offset_ns)"
echo 40 >clock2
for n in 1 2 3; do calls $n 100; done
until_rows '.[0].Count' 600
end_ask
fault "a clock 100 s behind goes 40 s ahead" 600 "$(total Count)"

# A clock that says 1972 or so: windows neither wait for the machine nor begin there, and it is
# named. The agent is another one, which begins by that clock.
birth=$(born "${nodes[2]}")
kill -TERM "${nodes[2]}"
await "node 2's agent is gone" is_gone "${nodes[2]}" "$birth"
echo -1700000000 >clock2
CLOCK_FILE=$work/clock2 LD_PRELOAD=$CLOCK agent 2
ask --await 3 --comm cluster_target \
	'cluster.Function("cluster_target!counted").Tumbling(1s).Count()'
for i in 1 2; do for n in 1 2 3; do calls $n 100; done; rest 10; done
until_more rows_late 0
end_ask
fault "windows of time: a clock is 54 years behind" 400 "$(sum)"
[ "$(jq -s 'map(select(.type == "row")) | length' trace.json)" -lt 300 ] ||
	fail "windows of many years"
contains "whose clock it is" trace.err "fay: node2's clock is "
