#!/usr/bin/env bash
# What fails while a query runs: a traced program, an agent that comes back, the NATS server, the
# network.
. "$(dirname "$0")/lib.sh"
server 0
TARGET=$CALLS
for n in 1 2 3; do agent $n; target $n; done
query='cluster.Function("cluster_target!counted").Count()'
# counts N: one query from here to end_ask; the sum must become N while it runs
begin() { ask --await 3 --lost-after 3s --comm cluster_target --wait "$query"; }
live() { until_rows '.[0].Count' "$1"; }

# A traced program is killed: its memory outlives it.
begin
for n in 1 2 3; do calls $n 100000; done
kill -9 "${targets[3]}"
end_ask
fault "a traced program is killed" 300000 "$(total Count)"
target 3

# An agent is killed and started again: the program goes on, and is traced again.
begin
for n in 1 2 3; do calls $n 10000; done
live 30000
kill -9 "${nodes[2]}"
until_coverage lost 1
calls 1 5
agent 2
until_coverage tracing 3
calls 2 500
live 30505
end_ask
fault "an agent is killed and started again" 30505 "$(total Count)"
equal "lost, finished" "1 3" "$(coverage lost) $(coverage finished)"

# The NATS server is killed and started again.
begin
for n in 1 2 3; do calls $n 10000; done
live 30000
kill_server 0
for n in 1 2 3; do calls $n 10000; done
rest 10
server 0
for n in 1 2 3; do calls $n 1000; done
live 63000
end_ask
fault "the NATS server is killed and started again" 63000 "$(total Count)"
equal "lost, finished" "0 3" "$(coverage lost) $(coverage finished)"

# One node is cut off and comes back.
begin
for n in 1 2 3; do calls $n 10000; done
live 30000
unplug 2
for n in 1 2 3; do calls $n 10000; done
until_coverage lost 1
live 50000
plug 2
live 60000
until_coverage lost 0
end_ask
fault "a machine is cut off and comes back" 60000 "$(total Count)"
equal "lost, finished" "0 3" "$(coverage lost) $(coverage finished)"

# An agent that is asked to end says good-bye; the others go on.
begin
for n in 1 2 3; do calls $n 1000; done
kill -TERM "${nodes[1]}"
until_coverage finished 1
calls 2 1000
live 4000
end_ask
fault "an agent is asked to end" 4000 "$(total Count)"
equal "incomplete, lost" "1 0" "$(coverage incomplete) $(coverage lost)"
agent 1

# The asking side vanishes: after the lease the agents let go of the programs.
before=$(text_hash "${targets[1]}")
ask --await 3 --lease 6s --comm cluster_target "$query"
[ "$(text_hash "${targets[1]}")" != "$before" ] || fail "the program is not patched"
kill -9 "$tracer"
tries eval '[ "$(text_hash "${targets[1]}")" = "$before" ]' || true
equal "the program's code after the lease" "$before" "$(text_hash "${targets[1]}")"
