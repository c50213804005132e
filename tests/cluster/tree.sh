#!/usr/bin/env bash
# Seven agents in a tree with fan-out 2: exact totals through inner agents, with messages doubled
# and re-ordered, and when an inner agent is killed in the middle of a window.
. "$(dirname "$0")/lib.sh"
server 0
TARGET=$CALLS
nodes_all=(1 2 3 4 5 6 7)
# By label, node 1 is first: children of 1 are 3 and 4, of 2 are 5 and 6, of 3 is 7.
for n in "${nodes_all[@]}"; do agent $n --labels "rack$n"; target $n; done
query='from c in cluster.Function("cluster_target!counted") group c by c.Arg(0) / 1000 into g
	select new { k = g.Key, n = g.Count(), least = g.Min(c => c.Arg(0)) }'

ask --await 7 --fanout 2 --comm cluster_target "$query"
for n in "${nodes_all[@]}"; do calls $n 10000; done
until_rows 'map(.n) | add' 70000
until_more combined 20
end_ask
fault "none, seven agents in a tree" 70000 "$(total n)"
equal "finished" 7 "$(coverage finished)"
equal "conflicts, unknown, malformed" "0 0 0" \
	"$(coverage conflicts) $(coverage unknown) $(coverage malformed)"

# Doubled and re-ordered.
"$NOISE" "$URL" >noise.out &
noise=$!
own "$noise"
wait_for noise.out listening
ask --await 7 --fanout 2 --comm cluster_target "$query"
for i in 1 2 3 4 5; do for n in "${nodes_all[@]}"; do calls $n 2000; done; done
until_rows 'map(.n) | add' 70000
until_more duplicates 50
until_more malformed 10
end_ask
fault "messages are doubled and re-ordered" 70000 "$(total n)"
echo "ok: $(coverage duplicates) duplicates, $(coverage conflicts) conflicts, $(coverage \
	malformed) malformed messages"
kill $noise

# An inner agent dies between two windows of its children. What it had counted itself was shown
# before.
ask --await 7 --fanout 2 --lost-after 6s --comm cluster_target "$query"
for n in "${nodes_all[@]}"; do calls $n 1000; done
until_rows 'map(.n) | add' 7000
for i in 1 2 3 4 5; do
	for n in 2 3 4 5 6 7; do calls $n 1000; done
	[ $i = 2 ] && kill -9 "${nodes[1]}"
done
until_rows 'map(.n) | add' 37000
until_coverage lost 1
end_ask
fault "an inner agent is killed in the middle of a window" 37000 "$(total n)"
equal "lost, finished" "1 6" "$(coverage lost) $(coverage finished)"
contains "who was lost is said" trace.err "node1"

# It comes back, finds the program still patched by its former self, and joins.
agent 1 --labels rack1
ask --await 7 --fanout 2 --comm cluster_target "$query"
for n in "${nodes_all[@]}"; do calls $n 1000; done
until_rows 'map(.n) | add' 7000
end_ask
fault "none, the inner agent is back" 7000 "$(total n)"
