#!/usr/bin/env bash
# Agents in containers: as the first process of a PID namespace, in a time namespace, with the few
# rights of a container; an agent outside that traces the same programs. The doctor cleans up beside
# all of it, and takes nothing from those that run.
. "$(dirname "$0")/lib.sh"
server 0
# By a name of its own: an agent outside sees the programs of other tests, too.
name=box$$
cp "$CALLS" "$name"
CALLS=$work/$name
TARGET=$CALLS
query="cluster.Function(\"$name!counted\").Count()"
# What container engines leave to root unless told otherwise, and CAP_SYS_PTRACE.
few=(setpriv --bounding-set
	-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,+net_bind_service,+net_raw,+sys_chroot,+mknod,+audit_write,+setfcap,+sys_ptrace --inh-caps -all)
late=()
unshare -T --boottime 1000000 --fork true 2>"$work/err" &&
	late=(unshare -T --boottime 1000000 --fork --) ||
	echo "no time namespaces here: $(cat "$work/err")"
daemon() {
	echo "$FAYD" --url "$URL" --key "node$1.key" --signers signers --name "node$1" \
		--audit "audit$1" --insecure
}
# first N: the agent is the first process of node N's PID namespace
first() {
	local n=$1 outer
	network "$n"
	"$FAY" cluster keygen "node$n" >/dev/null 2>&1
	ip netns exec "$net-$n" unshare --pid --fork --mount-proc --kill-child $(daemon "$n") \
		2>"fayd$n.log" &
	outer=$!
	own "$outer"
	await "an agent on node $n" child_of "$outer"
	holders[n]=$child nodes[n]=$child
	own "$child"
	wait_for "fayd$n.log" "has joined"
}
# beside N COMMAND...: the agent of node N, started by that command
beside() {
	local n=$1
	shift
	node "$n"
	[ -e "node$n.key" ] || "$FAY" cluster keygen "node$n" >/dev/null 2>&1
	: >"fayd$n.log"
	within "$n" "$@" $(daemon "$n") 2>"fayd$n.log"
	nodes[n]=$inside
	own "$inside"
	wait_for "fayd$n.log" "has joined"
}
doctor() { "$FAY" doctor "$@" 2>&1 || true; }
# states N: what the doctor outside says of the sessions in node N's program
states() {
	doctor --json | jq -rs --argjson pid "${targets[$1]}" \
		'[.[] | select(.type == "session" and .pid == $pid) | .state] | sort | join(" ")'
}
untouched() {
	for n in 1 2 3; do
		! doctor --clean | grep "process ${targets[n]}: removed" ||
			fail "the doctor took a session of an agent that runs"
	done
}
first 1
beside 2 "${few[@]}"
beside 3 "${late[@]}"
for n in 1 2 3; do target $n; done
for n in 1 2 3; do before[n]=$(text_hash "${targets[n]}"); done

ask --await 3 --comm "$name" "$query"
for n in 1 2 3; do calls $n 100; done
until_rows '.[0].Count' 300
for n in 1 2 3; do equal "node $n, seen from outside" lives "$(states $n)"; done
untouched
# Somebody outside traces one of the programs, too.
"$FAY" trace --json -p "${targets[2]}" "$query" >outside.json 2>outside.err &
outside=$!
own "$outside"
wait_for outside.err "fay: tracing"
! grep removed outside.err || fail "the trace outside took the agent's session"
for n in 1 2 3; do calls $n 100; done
signal_owned INT "$outside"
ended "$outside"
equal "calls counted outside" 100 \
	"$(jq -s '[.[] | select(.type == "row" and .final) | .values.Count] |
		add // 0' outside.json)"
for n in 1 2 3; do calls $n 100; done
until_rows '.[0].Count' 900
end_ask
fault "agents in containers, beside a doctor and a trace outside" 900 "$(total Count)"
for n in 1 2 3; do equal "text of node $n" "${before[n]}" "$(text_hash "${targets[n]}")"; done

# One is killed, in the middle; the next one on the same node takes away what it left.
ask --await 3 --lost-after 3s --comm "$name" "$query"
for n in 1 2 3; do calls $n 100; done
until_rows '.[0].Count' 300
signal_owned KILL "${nodes[2]}"
is_dead() { [ "$(states 2)" = dead ]; }
await "seen as dead from outside" is_dead
equal "one that runs" lives "$(states 3)"
until_coverage lost 1
end_ask
beside 2 "${few[@]}"
ask --await 3 --comm "$name" "$query"
wait_for fayd2.log "removed 1 session of a killed fay"
for n in 1 2 3; do calls $n 100; done
until_rows '.[0].Count' 300
end_ask
fault "an agent in a container was killed, the next one cleans up" 300 "$(total Count)"
for n in 1 2 3; do equal "text of node $n" "${before[n]}" "$(text_hash "${targets[n]}")"; done

# An agent outside sees the programs of all containers, by their numbers there, and traces them
# beside the agents within: each call is counted by both.
"$FAY" cluster keygen node4 >/dev/null 2>&1
$(daemon 4) 2>fayd4.log &
nodes[4]=$!
own "${nodes[4]}"
wait_for fayd4.log "has joined"
ask --await 4 --comm "$name" "$query"
for n in 1 2 3; do equal "node $n, traced by both" "lives lives" "$(states $n)"; done
untouched
for n in 1 2 3; do calls $n 100; done
until_rows '.[0].Count' 600
end_ask
fault "an agent in each container and one outside, each sees all calls" 600 "$(total Count)"
for n in 1 2 3; do equal "text of node $n" "${before[n]}" "$(text_hash "${targets[n]}")"; done

# The first process of a PID namespace has no default actions of signals.
signal_owned TERM "${nodes[1]}"
is_over() { [ -z "$(born "$1")" ]; }
await "an agent that is a first process ends" is_over "${nodes[1]}"
