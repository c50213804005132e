#!/usr/bin/env bash
# A NATS cluster of three servers, eight agents spread over them; the server that some of them are
# connected to is killed, and comes back.
. "$(dirname "$0")/lib.sh"
TARGET=$CALLS
routes=nats://$subnet.1:5000,nats://$subnet.1:5001,nats://$subnet.1:5002
cluster() { server "$1" --cluster_name fay --cluster "nats://$subnet.1:500$1" --routes "$routes"; }
for s in 0 1 2; do cluster $s; done
all=(1 2 3 4 5 6 7 8)
for n in "${all[@]}"; do
	URL=$(url $((n % 3))),$(url $(((n + 1) % 3)))
	agent $n
	target $n
done
URL=$(url 0),$(url 1),$(url 2)
ask --await 8 --fanout 3 --lost-after 20s --comm cluster_target \
	'cluster.Function("cluster_target!counted").Count()'
for n in "${all[@]}"; do calls $n 10000; done
until_rows '.[0].Count' 80000
kill_server 1
for n in "${all[@]}"; do calls $n 1000; done
until_rows '.[0].Count' 88000
cluster 1
for n in "${all[@]}"; do calls $n 100; done
until_rows '.[0].Count' 88800
end_ask
fault "one of three NATS servers is killed and started again" 88800 "$(total Count)"
equal "finished, lost" "8 0" "$(coverage finished) $(coverage lost)"
