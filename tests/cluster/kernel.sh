#!/usr/bin/env bash
# Queries about the kernel over machines. All agents here have the same kernel, so each counts the
# same events: totals are multiples of what one program did. They run in this process namespace,
# which the kernel's events are numbered in; one that does not is refused.
host=1
. "$(dirname "$0")/lib.sh"
needs_bpf
server 0 -js -sd "$work/store"
# here NAME OPTIONS...: an agent of this machine's
here() {
	[ -e "$1.key" ] || "$FAY" cluster keygen "$1" >/dev/null 2>&1
	"$FAYD" --url "$URL" --key "$1.key" --signers signers --name "$1" --audit "audit-$1" \
		--insecure "${@:2}" 2>"fayd-$1.log" &
	nodes_here[$1]=$!
	own "$!"
	wait_for "fayd-$1.log" "has joined"
}
declare -A nodes_here
"$FAY" cluster keygen vendor >/dev/null 2>&1
printf 'tracepoints = libc!* kernel!sys_*\n' >vendor.policy
echo "signer vendor $(cat vendor.pub) $work/vendor.policy" >>signers
here one
here two
mkfifo in
exec 30<>in
"$CALLS" <in >out &
pid=$!
own "$pid"
wait_for out "did 0"
did=0
# writes N: the program writes N times, a line each
writes() { for _ in $(seq "$1"); do did=$((did + 1)); echo 1 >&30; done; wait_for out "did $did"; }

ask --await 2 -p "$pid" \
	'from w in cluster.Syscall("write") group w by w.comm into g select new { k = g.Key,
		n = g.Count(), bytes = g.Sum(w => w.ReturnValue) }'
before=$(wc -c <out)
writes 40
until_rows 'map(.n) | add' 80
end_ask
equal "writes seen by two agents" 80 "$(total n)"
equal "bytes" $((2 * ($(wc -c <out) - before))) "$(total bytes)"
equal "by whom" '["cluster_target"]' \
	"$(jq -sc '[.[] | select(.type == "row" and .final) | .values.k]' trace.json)"
equal "finished" 2 "$(coverage finished)"

# Names, durations, the root stage; the asking side knows what the system calls are called.
ask --await 2 -p "$pid" \
	'from w in cluster.Syscall("*") group w by w.function into g where g.Key == "write"
		select new { k = g.Key, n = g.Count(), t = g.Max(w => w.Duration) }'
writes 20
until_rows 'map([.k, .n, .t > 0])' '[["write",40,true]]'
end_ask

# Rows of events; windows of time.
ask --await 2 -p "$pid" 'from w in cluster.Syscall("write") select new { w.pid, w.ReturnValue }'
writes 10
wait_for trace.json '"type":"row"' 20
end_ask
equal "rows" 20 "$(jq -s --argjson p "$pid" '[.[] | select(.type == "row" and .values.pid == $p)] |
	length' trace.json)"
ask --await 2 -p "$pid" 'cluster.Syscall("write").Tumbling(250ms).Count()'
for _ in 1 2 3; do writes 10; sleep 0.3; done
end_ask
equal "writes in all windows" 60 \
	"$(jq -s '[.[] | select(.type == "row") | .values] | group_by(.window) | map(.[-1].Count) |
		add' trace.json)"

# Stacks of the kernel, by name: both agents' are one group. Stacks of programs need the agents to
# know the programs.
ask --await 2 -p "$pid" \
	'from w in cluster.Syscall("write") group w by w.Stack(3) into g select new { k = g.Key,
		n = g.Count() }'
writes 10
until_rows 'map(.n) | add' 20
end_ask
equal "stacks that each agent had" 0 \
	"$(jq -s '[.[] | select(.type == "row" and .final) | .values.n % 2] | add' trace.json)"
names=$(jq -sr '[.[] | select(.type == "row" and .final) | .values.k[]] | unique | join(" ")' \
	trace.json)
echo "in the kernel: $names"
[ "$(awk '$1 !~ /^0+$/ { shown = 1; exit } END { print shown + 0 }' /proc/kallsyms)" = 0 ] ||
	[[ $names == *kernel!* ]] || fail "functions of the kernel have no names"
exits "stacks of programs" 1 "$FAY" trace --cluster "$URL" --key asker.key "${ASK_OPTIONS[@]}" \
	--await 2 --for 1s -p "$pid" \
	'from w in cluster.Syscall("write") group w by w.UserStack into g
		select new { g.Key, n = g.Count() }'
contains "why" "$work/err" "stacks of programs at kernel events are not supported on a cluster yet"

# The whole machine: a tracepoint with members of structures, which needs the same kernel's types;
# they are compared.
cp "$(type -P true)" "leaves$$"
ask --await 2 \
	"from e in cluster.Tracepoint(\"sched:sched_process_exit\") where e.p.comm == \"leaves$$\"
		group e by e.p.comm into g select new { k = g.Key, n = g.Count() }"
for _ in 1 2 3 4 5; do "./leaves$$"; done
until_rows 'map(.n) | add' 10
end_ask
equal "an image's hash is in the audit log" 64 \
	"$(jq -r .image_sha256 audit-one | head -1 | tr -d '\n' | wc -c)"

# The asking side goes away and comes back.
id=$("$FAY" trace --cluster "$URL" --key asker.key "${ASK_OPTIONS[@]}" --await 2 --detach \
	--every 100ms -p "$pid" 'cluster.Syscall("write").Count()' 2>detach.err) || {
	cat detach.err >&2
	fail "detach"
}
writes 15
"$FAY" attach "$id" --cluster "$URL" --key asker.key "${ASK_OPTIONS[@]}" --json --stop >trace.json \
	2>trace.err || { cat trace.err >&2; fail "attach"; }
equal "total of a detached query" 30 "$(total Count)"

# A signer's policy names what of the kernel it may look at.
asks_as() {
	"$FAY" trace --cluster "$URL" "${ASK_OPTIONS[@]}" --key "$1.key" --await 2 --for 1s "${@:2}"
}
exits "what the signer may" 0 asks_as vendor -p "$pid" 'cluster.Syscall("write").Count()'
exits "what the signer may not" 1 asks_as vendor 'cluster.Tracepoint("sched_switch").Count()'
contains "why" "$work/err" "does not allow tracepoint sched_switch"
echo 'max_instructions = 100' >>vendor.policy
exits "a limit that cannot be told" 1 asks_as vendor -p "$pid" 'cluster.Syscall("write").Count()'
contains "why" "$work/err" "cannot be checked for BPF programs"
exits "no such process" 1 asks_as asker -p 4194303 'cluster.Syscall("write").Count()'
contains "why" "$work/err" "no such process"
exits "a field that system calls have not" 2 asks_as asker \
	'cluster.Syscall("read").Max(r => r.cycles)'
kill "${nodes_here[one]}" "${nodes_here[two]}"
wait "${nodes_here[one]}" "${nodes_here[two]}" || true
agent 1
exits "an agent in a container" 1 "$FAY" trace --cluster "$URL" "${ASK_OPTIONS[@]}" \
	--key asker.key --for 1s 'cluster.Syscall("write").Count()'
contains "why" "$work/err" "PID namespace"
