#!/usr/bin/env bash
# Roles: whose processes, which programs, how many queries, whether the kernel: what a signer's role
# includes is traced, the rest is left alone, and said.
. "$(dirname "$0")/lib.sh"
TARGET=$CALLS
chmod 755 "$work"
for key in alice bob carol erin frank; do "$FAY" cluster keygen $key >/dev/null 2>&1; done
cat >>signers <<END
role own users=daemon queries=1
role tools programs=busy_*
role all kernel=yes programs=*
role small memory=1
role shells programs=sh,dash,bash
signer alice $(cat alice.pub) role=own
signer bob $(cat bob.pub) role=tools
signer carol $(cat carol.pub) role=all
signer erin $(cat erin.pub) role=small
signer frank $(cat frank.pub) role=shells
END
server 0
agent 1
# Three programs of one name for the agent: root's, daemon's, and daemon's under another name.
cp "$CALLS" busy_target
# run N USER PROGRAM: reads from in$N
run() {
	mkfifo "in$1"
	eval "exec $((20 + $1))<>in$1"
	within 1 setpriv --reuid="$2" --regid="$2" --clear-groups "$work/$3" <"in$1" >"out$1"
	targets[$1]=$inside
	wait_for "out$1" "did 0"
	sums[$1]=0
}
cp "$CALLS" cluster_target
run 1 root cluster_target
run 2 daemon cluster_target
run 3 daemon busy_target
clean=$(text_hash "${targets[1]}")
count='cluster.Function("*!counted").Count()'
as() { ASK_OPTIONS=(--insecure --key "$1.key"); }
each() { for n in 1 2 3; do calls $n "$1"; done; }

as alice
ask --comm cluster_target --comm busy_target "$count"
equal "root's program is not touched for one who has daemon's" "$clean" \
	"$(text_hash "${targets[1]}")"
each 1000
until_rows '.[0].Count' 2000
contains "the agent says why" fayd1.log "the role 'own' does not include processes of user 0"
exits "a second query of the role" 1 "$FAY" trace --cluster "$URL" "${ASK_OPTIONS[@]}" --await 1 \
	--for 1s --comm busy_target "$count"
contains "why" "$work/err" "the role 'own' may have 1 queries at once, and that many are running"
end_ask
equal "calls of daemon's programs" 2000 "$(total Count)"
exits "root's alone" 1 "$FAY" trace --cluster "$URL" "${ASK_OPTIONS[@]}" --await 1 --for 1s \
	-p "$(within 1 pgrep -u root cluster_target)" "$count"
contains "why, without a word of whose it is" "$work/err" \
	": no such process that the role 'own' includes"
exits "none" 1 "$FAY" trace --cluster "$URL" "${ASK_OPTIONS[@]}" --await 1 --for 1s -p 99999 \
	"$count"
contains "the same" "$work/err" ": no such process that the role 'own' includes"
equal "the audit log names roles" '["own"]' "$(jq -sc 'map(.role) | unique' audit1)"
equal "and what came of them" \
	'["accepted","the role","accepted","no such ","accepted","no such "]' \
	"$(jq -sc 'map(.outcome[:8])' audit1)"
if [ "$(bpf_is ok)" = true ]; then
	exits "the kernel" 1 "$FAY" trace --cluster "$URL" "${ASK_OPTIONS[@]}" --await 1 --for 1s \
		'cluster.Syscall("getppid").Count()'
	contains "why" "$work/err" "the role 'own' does not include queries about the kernel"
else
	echo "not asked about the kernel: $(bpf_is why)"
fi

as bob
ask --comm cluster_target --comm busy_target "$count"
each 100
until_rows '.[0].Count' 100
end_ask
contains "the agent says why" fayd1.log \
	"the role 'tools' does not include the program $work/cluster_target"

as carol
ask --comm cluster_target --comm busy_target "$count"
each 10
until_rows '.[0].Count' 30
end_ask
as asker
ask --comm cluster_target --comm busy_target "$count"
each 10
until_rows '.[0].Count' 30
end_ask

# What a program is called commands nobody's terminal.
as bob
cp "$CALLS" $'bad\e[31mname'
run 4 daemon $'bad\e[31mname'
exits "a program of a bad name" 1 "$FAY" trace --cluster "$URL" "${ASK_OPTIONS[@]}" --await 1 \
	--for 1s -p "$(within 1 pgrep -f '31mname$')" "$count"
contains "the agent says which" fayd1.log "bad?[31mname"
equal "escapes in its output" 0 "$(grep -c $'\e' fayd1.log || true)"

# A role's memory: at once, not at the window's end.
as erin
ask --await 1 --every 10m -p "$(within 1 pgrep -u root cluster_target)" \
	'from c in cluster.Function("*!counted") group c by c.Arg(0) into g select new { k = g.Key,
		n = g.Count() }'
calls 1 400000
ended "$tracer" || true
equal "machines that have not told all" 1 "$(coverage incomplete)"
contains "the agent says why" fayd1.log "memory limit of 1 MiB"

# A followed shell becomes a program that the role does not include: it is let go, and not touched.
as frank
mkfifo in5
exec 25<>in5
within 1 sh -c "echo did 0; read x; exec '$work/cluster_target'" <in5 >out5
targets[5]=$inside
sums[5]=0
wait_for out5 "did 0"
ask --await 1 --comm sh --follow "$count"
echo >&25
ended "$tracer" || fail "the query's exit code is $?"
calls 5 10
equal "who traces it" "TracerPid: 0" "$(grep TracerPid "/proc/${targets[5]}/status" | xargs)"
equal "its code" "$clean" "$(text_hash "${targets[5]}")"
contains "the agent says why" fayd1.log \
	"the role 'shells' does not include the program $work/cluster_target"

# A query that has ended, and whose results nobody takes, is one of the role's.
as alice
ask --await 1 --lease 1h --comm busy_target "$count"
kill -9 "$tracer"
exec 23>&-
kill -9 "${targets[3]}"
tries eval '! kill -0 "${targets[3]}" 2>/dev/null' || true
rest 10
exits "a second query of the role" 1 "$FAY" trace --cluster "$URL" "${ASK_OPTIONS[@]}" --await 1 \
	--for 1s --comm cluster_target "$count"
contains "why" "$work/err" \
	"the role 'own' may have 1 queries at once, and that many are running or waiting"

echo 'signer dave 00 role=none' >broken
exits "a role that is none" 2 "$FAYD" --url "$URL" --insecure --key node1.key --signers broken
contains "its line" "$work/err" "broken:1"
