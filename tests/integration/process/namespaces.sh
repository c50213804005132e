#!/usr/bin/env bash
# Fays in different PID and time namespaces trace one program: nobody takes the session of one that
# runs for a leftover, and everybody that of one that was killed.
host=1
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" = 0 ] || skip "namespaces need root"
box_of=(unshare --pid --fork --mount-proc --kill-child)
time_of=(unshare -T --boottime 1000000)
"${box_of[@]}" true 2>"$work/err" || skip "no PID namespaces here: $(cat "$work/err")"
if "${time_of[@]}" --fork true 2>"$work/err"; then later=(--time); else
	echo "no time namespaces here: $(cat "$work/err")"
	time_of=() later=()
fi
# A container: PID, mount and time namespaces of its own.
"${time_of[@]}" "${box_of[@]}" sleep infinity &
own $!
await "a container" eval 'box=$(pgrep -P $! -x sleep)'
own "$box"
in_box() { nsenter -t "$box" --pid --mount --root "${later[@]}" -- "$@"; }
# May not look at what other processes have mapped.
bounded=(setpriv --bounding-set -sys_admin,-checkpoint_restore --inh-caps
	-sys_admin,-checkpoint_restore)
without_rights() { "${bounded[@]}" "$@"; }
in_box_without_rights() { in_box "${bounded[@]}" "$@"; }
# run IN NAME COMMAND...: in the background, `in_box` or `command`; its number, as this shell sees
# it, in $ran
run() {
	local in=$1 name=$2 outer
	shift 2
	if [ "$in" = in_box ]; then
		nsenter -t "$box" --pid --mount --root "${later[@]}" -- "$@" >"$work/$name" \
			2>"$work/$name.err" <&0 &
		outer=$!
		own "$outer"
		await "a process in the container" eval \
			"ran=\$(pgrep -P $outer) || [ -z \"\$(born $outer)\" ]"
		own "$ran"
	else
		"$@" >"$work/$name" 2>"$work/$name.err" <&0 &
		ran=$!
		own "$ran"
	fi
}
# traced IN NAME PID: fay traces the program, by its number there
traced() {
	rm -f "$work/$2.err"
	run "$1" "$2" "$FAY" trace --json --every 100ms -p "$3" \
		'cluster.Function("cluster_target!counted").Count()'
	wait_for "$work/$2.err" "; Ctrl-C ends"
}
is_over() { [ -z "$(born "$1")" ]; }
# over NAME PID CALLS: the trace ends and has counted them all
over() {
	signal_owned INT "$2"
	await "$1 ends" is_over "$2"
	equal "calls counted by $1" "$3" \
		"$(jq -s '[.[] | select(.type == "row" and .final) | .values.Count] |
			add // 0' "$work/$1")"
	equal "events lost by $1" 0 \
		"$(jq -s 'map(select(.type == "end"))[0].events_lost' "$work/$1")"
}
killed() {
	signal_owned KILL "$1"
	await "fay is killed" is_over "$1"
	# who reads of its memory just now keeps it for as long
	for in in command in_box; do await "seen as dead" eval '[ "$(states $in)" = dead ]'; done
}
# states IN: what the doctor says of the fays whose sessions the program has
states() {
	{
		"$1" "$FAY" doctor --json || true
	} | jq -rs --argjson pid "$(number "$1")" \
		'[.[] | select(.type == "session" and .pid == $pid) | .state] | sort | join(" ")'
}
# clean IN [OPTIONS...]: what the doctor says of the program into clean.err; other tests may have
# left something, too
clean() {
	local in=$1
	shift
	{
		"$in" "$FAY" doctor "${@:---clean}" 2>&1 >"$work/doctor" || true
	} | {
		grep "process $(number "$in"):" || true
	} >"$work/clean.err"
}
untouched() { [ ! -s "$work/clean.err" ] || fail "$1: $(cat "$work/clean.err")"; }
mkfifo "$work/in"
exec 9<>"$work/in"
sum=0
calls() {
	sum=$((sum + $1))
	echo "$1" >&9
	wait_for "$work/target" "did $sum"
}
run in_box target "$CALLS" <"$work/in"
target=$ran
wait_for "$work/target" "did 0"
inner=$(awk '/^NSpid:/ {print $NF}' "/proc/$target/status")
before=$(text_hash "$target")
# From here the container's fay is seen, and from there the one here.
number() { [[ "$1" = in_box* ]] && echo "$inner" || echo "$target"; }

# one IN OTHER: fay there traces the program; OTHER cleans up, and traces it, too
one() {
	echo "== fay: $1, beside it: $2"
	traced "$1" first "$(number "$1")"
	first=$ran
	calls 100
	equal "seen from the other" lives "$(states "$2")"
	equal "seen from its own" lives "$(states "$1")"
	clean "$2"
	untouched "something was removed"
	traced "$2" second "$(number "$2")"
	second=$ran
	contains "nothing removed by the second fay" "$work/second.err" "fay: tracing"
	! grep "removed" "$work/second.err" || fail "the second fay removed the first one's session"
	calls 100
	clean "$1"
	clean "$2"
	equal "both are seen" "lives lives" "$(states "$1")"
	calls 100
	over first "$first" 300
	calls 50
	over second "$second" 250
	equal "text after" "$before" "$(text_hash "$target")"
}
one in_box command
one command in_box

# left IN OTHER: fay there is killed; OTHER sees it, and removes its session
left() {
	echo "== fay: $1, killed; beside it: $2"
	traced "$1" first "$(number "$1")"
	killed "$ran"
	equal "the killed one" dead "$(states "$2")"
	clean "$2"
	contains "what was removed" "$work/clean.err" \
		"process $(number "$2"): removed 1 session of a killed fay"
	equal "text after" "$before" "$(text_hash "$target")"
	traced "$1" first "$(number "$1")"
	killed "$ran"
	traced "$2" second "$(number "$2")"
	contains "the next fay removes it, too" "$work/second.err" \
		"process $(number "$2"): removed 1 session of a killed fay"
	calls 100
	over second "$ran" 100
}
left in_box command
left in_box in_box
left command in_box
left command command

echo "== who may not look"
traced in_box first "$inner"
equal "one that runs" lives "$(states without_rights)"
clean without_rights --clean-unknown "$target"
untouched "one that runs was removed"
calls 10
killed "$ran"
equal "one that is gone" unknown "$(states without_rights)"
equal "in its own PID namespace" dead "$(states in_box_without_rights)"
clean without_rights
untouched "one that may run was removed"
exits "--clean-unknown of no process" 2 "$FAY" doctor --clean-unknown 0
clean without_rights --clean-unknown "$target"
contains "what was removed" "$work/clean.err" "process $target: removed 1 session"
equal "text after" "$before" "$(text_hash "$target")"

if [ ${#time_of[@]} -gt 0 ]; then
	echo "== one PID namespace, two time namespaces"
	late() { "${time_of[@]}" --fork -- "$@"; }
	traced command first "$target"
	equal "seen from the other" lives "$(states late)"
	clean late
	untouched "something was removed"
	calls 10
	over first "$ran" 10
	traced command first "$target"
	killed "$ran"
	equal "the killed one" dead "$(states late)"
	clean late
	equal "text after" "$before" "$(text_hash "$target")"
fi

# The kernel's events have other numbers for it than its own: it is not joined by them, only by what
# is the same in both.
if [ "$(bpf_is ok)" = true ]; then
	echo "== the kernel's events beside the program's"
	pairs() {
		echo "(from f in cluster.Function(\"cluster_target!counted\")
			join s in cluster.Syscall(\"write\") on f.$1 equals s.$1 within 1h
			select ${2:-f}).Count()"
	}
	for number in pid tid; do
		exits "joined by $number" 1 "$FAY" trace --for 1s -p "$target" "$(pairs $number)"
		contains "the reason" "$work/err" "process $target is in another PID namespace"
	done
	exits "its number saved" 1 "$FAY" trace --for 1s --save "$work/pairs.fay" -p "$target" \
		"$(pairs comm 'new { f, s }' | sed 's/^(//; s/).Count()$//')"
	contains "the reason" "$work/err" "process $target is in another PID namespace"
	equal "text after" "$before" "$(text_hash "$target")"
	trace -p "$target" "$(pairs comm)"
	calls 10
	end_trace
	equal "joined by name" 10 "$(final_sum Count)"
	exits "one that begins later" 2 "$FAY" trace --follow "$(pairs tid)" -- "${box_of[@]}" \
		"$CALLS" < <(echo 10)
	contains "the reason" "$work/err" "is in another PID namespace"
else
	echo "SKIPPED: the kernel's events beside the program's: $(bpf_is why)"
fi
exec 9>&-
