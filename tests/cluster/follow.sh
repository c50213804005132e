#!/usr/bin/env bash
# --follow over machines: forked children and programs that followed ones execute are counted, from
# the first call; two followed queries on one agent end in any order.
. "$(dirname "$0")/lib.sh"
server 0
program=$FOLLOW_TARGET
for n in 1 2; do agent $n; done
# run N ARGUMENTS...: as node N's own program, which reads from in$N
run() {
	local n=$1
	rm -f "in$n" "out$n"
	mkfifo "in$n"
	eval "exec $((20 + n))<>in$n"
	within "$n" "${@:2}" <"in$n" >"out$n"
	wait_for "out$n" waiting
}
count='cluster.Function("follow_target!work").Count()'

for n in 1 2; do run $n "$program" wait calls 5 fork 3 100 spawn 300 vfork 20; done
ask --await 2 --comm follow_target --follow "$count"
for n in 1 2; do finish $n; done
code=0
wait "$tracer" || code=$?
equal "the last child's end ends it" 0 $code
equal "calls of children and executed programs on two machines" 1250 "$(total Count)"

# Without it they are not in the result.
for n in 1 2; do run $n "$program" wait calls 5 fork 3 100 spawn 300 vfork 20; done
ask --await 2 --comm follow_target "$count"
for n in 1 2; do finish $n; done
code=0
wait "$tracer" || code=$?
equal "calls without --follow" 10 "$(total Count)"

# A shell does not have the function; what it executes has, and so has what it becomes. Another
# query follows another program meanwhile, and outlives the first.
run 1 sh -c "echo waiting; read x; '$program' calls 1000; exec '$program' calls 500"
run 2 "$program" wait fork 2 50
ask --await 2 --comm sh --follow "$count"
shell=$tracer
cp trace.err shell.err
"$FAY" trace --cluster "$URL" --key asker.key "${ASK_OPTIONS[@]}" --json --await 2 \
	--comm follow_target --wait --follow "$count" >other.json 2>other.err &
other=$!
own "$other"
wait_for other.err "fay: tracing"
finish 1
code=0
wait "$shell" || code=$?
equal "the query about the shell ends first" 0 $code
equal "what the shell executed" 1500 "$(total Count)"
finish 2
tries eval '! pgrep -P "${holders[2]}" -r D,R,S,T,t -x follow_target >/dev/null' || true
kill -INT "$other"
wait "$other" || fail "the other query's exit code is $?"
equal "what the other query counted" 100 \
	"$(jq -s '[.[] | select(.type == "row" and .final) | .values.Count] | add' other.json)"

# An agent that is killed lets all go that it followed.
# Those that are not zombies: nobody waits for them where their parent is gone.
followers() {
	nsenter -t "${holders[1]}" --pid --mount --root -- pgrep -r D,R,S,T,t -x fay-follower |
		xargs
}
run 1 "$program" wait fork 2 50
followed=$inside
ask --await 2 --comm follow_target --follow --lost-after 6s "$count"
[ -n "$(followers)" ] || fail "nobody follows"
kill -9 "${nodes[1]}"
tries eval '[ -z "$(followers)" ]' || true
equal "followers of a killed agent" "" "$(followers)"
finish 1
tries eval '! kill -0 "$followed" 2>/dev/null' || fail "the program that was followed stands still"
end_ask
