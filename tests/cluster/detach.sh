#!/usr/bin/env bash
# The asking side goes away and comes back: agents' partials are kept in JetStream. The server is
# killed meanwhile, and so is an agent.
. "$(dirname "$0")/lib.sh"
TARGET=$CALLS
jetstream() { server 0 -js -sd "$work/store"; }
jetstream
for n in 1 2 3; do agent $n; target $n; done
detach() {
	"$FAY" trace --cluster "$URL" --key asker.key "${ASK_OPTIONS[@]}" --await 3 --detach \
		--comm cluster_target --every 100ms "$@" 2>detach.err || {
		cat detach.err >&2
		fail "detach"
	}
}
# attach ID ARGS...: to its end, or until it is interrupted
attach() {
	"$FAY" attach "$1" --cluster "$URL" --key asker.key "${ASK_OPTIONS[@]}" --json "${@:2}" \
		>trace.json 2>trace.err || {
		cat trace.err >&2
		fail "attach"
	}
}
query='from c in cluster.Function("cluster_target!counted") group c by c.Arg(0) % 10 into g
	where g.Count() > 1 select new { k = g.Key, n = g.Count() }'

id=$(detach --wait "$query")
[[ $id =~ ^[0-9a-f]{16}$ ]] || fail "'$id' is not an ID"
contains "how long it goes on" detach.err "for seven days at most"
exits "longer than the servers keep it" 2 "$FAY" trace --cluster "$URL" --key asker.key \
	"${ASK_OPTIONS[@]}" --await 3 --detach --for 169h --comm cluster_target "$query"
contains "how long it may be" "$work/err" "at most seven days"
for n in 1 2 3; do calls $n 10000; done
# Somebody looks at it, and leaves again.
"$FAY" attach "$id" --cluster "$URL" --key asker.key "${ASK_OPTIONS[@]}" --json --every 100ms \
	>trace.json 2>trace.err &
tracer=$!
own "$tracer"
until_rows 'map(.n) | add' 30000
end_ask
contains "what leaving means" trace.err "the query continues"
equal "machines that are said to be lost" 0 "$(grep -c 'was lost' trace.err || true)"
# The server dies with what it has on its disk, and comes back.
kill_server 0
for n in 1 2 3; do calls $n 10000; done
jetstream
for n in 1 2 3; do calls $n 500; done
attach "$id" --stop
fault "the client leaves and comes back, the NATS server is killed" 61500 "$(total n)"
equal "finished, lost" "3 0" "$(coverage finished) $(coverage lost)"
exits "a query that is over" 1 "$FAY" attach "$id" --cluster "$URL" --key asker.key \
	"${ASK_OPTIONS[@]}"
contains "why" "$work/err" "no such query"

# It ends by itself, and is complete although nobody was there; sample and top replace rows.
id=$(detach --for 25s 'from c in cluster.Function("cluster_target!counted") group c by 1 into g
	select new { n = g.Count(), top = g.TopK(2, c => c.Arg(1)) }')
for n in 1 2 3; do calls $n 1000; done
attach "$id" --lost-after 60s
fault "nobody listens until the query has ended" 3000 "$(total n)"
contains "why it ended" trace.err "the query is over"

# Who attaches while it runs has a clock that is ahead of its end: it ends when the machines say so.
id=$(detach --for 30s "$query")
for n in 1 2 3; do calls $n 1000; done
echo 7000 >clock
CLOCK_FILE=$work/clock LD_PRELOAD=$CLOCK "$FAY" attach "$id" --cluster "$URL" --key asker.key \
	"${ASK_OPTIONS[@]}" --json --every 100ms --lost-after 5s >trace.json 2>trace.err &
tracer=$!
own "$tracer"
until_rows 'map(.n) | add' 3000
for n in 1 2 3; do calls $n 500; done
code=0; ended "$tracer" || code=$?
equal "it ends" 0 $code
fault "who attaches has a clock that is ahead of the query's end" 4500 "$(total n)"
equal "finished, lost, by a clock that is ahead" "3 0" "$(coverage finished) $(coverage lost)"

# Arguments of calls that have ended.
id=$(detach 'cluster.Return("cluster_target!counted").Where(r => r.Arg(0) <
	200).Count(r => r.ReturnValue == r.Arg(0) + 1)')
for n in 1 2 3; do calls $n 1000; done
attach "$id" --stop
equal "calls by their arguments" 1200 "$(total Count)"

# Another key may not look at it; an agent that dies is lost, the rest is there.
id=$(detach --for 40s "$query")
for n in 1 2 3; do calls $n 1000; done
"$FAY" cluster keygen other >/dev/null 2>&1
exits "another key" 1 "$FAY" attach "$id" --cluster "$URL" --key other.key "${ASK_OPTIONS[@]}"
"$FAY" attach "$id" --cluster "$URL" --key asker.key "${ASK_OPTIONS[@]}" --json --every 100ms \
	--lost-after 25s >trace.json 2>trace.err &
tracer=$!
own "$tracer"
until_rows 'map(.n) | add' 3000
kill -9 "${nodes[2]}"
code=0; ended "$tracer" || code=$?
equal "it ends without that agent" 0 $code
fault "an agent is killed while the query is detached" 3000 "$(total n)"
equal "finished, lost" "2 1" "$(coverage finished) $(coverage lost)"

# Nothing but --stop ends a query without --for. An agent that is dead does not answer, and is
# waited for as long as a machine may be silent; so it is if all are dead.
id=$(detach --await 2 "$query")
for n in 1 3; do calls $n 1000; done
"$FAY" attach "$id" --cluster "$URL" --key asker.key "${ASK_OPTIONS[@]}" --json --every 100ms \
	>trace.json 2>trace.err &
tracer=$!
own "$tracer"
until_rows 'map(.n) | add' 2000
end_ask
kill -9 "${nodes[3]}"
calls 1 500
attach "$id" --stop --lost-after 8s
fault "an agent is dead when a detached query is stopped" 2500 "$(total n)"
equal "finished, lost" "1 1" "$(coverage finished) $(coverage lost)"
contains "that it is not whole" trace.err "not all machines answered"
contains "who did not answer" trace.err "fay: node3 ("
id=$(detach --await 1 "$query")
kill -9 "${nodes[1]}"
attach "$id" --stop --lost-after 2s
equal "finished, lost, if all are dead" "0 1" "$(coverage finished) $(coverage lost)"
for n in 1 3; do agent $n; done

# Windows of time are those of each machine's clock as it was when the query began: looked at while
# it runs, and at its end.
sum() {
	grep -v '^$' trace.json |
		jq -s '[.[] | select(.type == "row") | .values] | group_by(.window) |
			map(.[-1].Count) | add // 0'
}
echo -20 >clock2
CLOCK_FILE=$work/clock2 LD_PRELOAD=$CLOCK agent 2
id=$(detach 'cluster.Function("cluster_target!counted").Tumbling(1s).Count()')
"$FAY" attach "$id" --cluster "$URL" --key asker.key "${ASK_OPTIONS[@]}" --json >trace.json \
	2>trace.err &
tracer=$!
own "$tracer"
for n in 1 2 3; do calls $n 1000; done
until_sum() {
	for _ in $(seq 1200); do
		[ "$(sum)" = "$1" ] && {
			echo "ok: live: calls in all windows, $2 = $1"
			return 0
		}
		sleep 0.1
	done
	fail "calls in all windows, $2, did not become $1, but $(sum)"
}
until_sum 3000 "while a machine is 20 s behind"
unplug 3
for n in 1 2 3; do calls $n 1000; done
until_sum 5000 "while a machine is cut off"
plug 3
until_sum 6000 "when it is back"
end_ask
for n in 1 2 3; do calls $n 500; done
attach "$id" --stop
fault "windows of time of a detached query; a clock is 20 s behind" 7500 "$(sum)"
equal "rows that came too late" 0 "$(coverage rows_late)"

# What the query's text alone does not tell.
echo 'long doubled(long x) { return 2 * x; }' >"$work/doubled.c"
exits "functions of C" 1 "$FAY" trace --cluster "$URL" --key asker.key "${ASK_OPTIONS[@]}" \
	--await 2 --detach --comm cluster_target \
	"extend \"$work/doubled.c\" cluster.Function(\"cluster_target!counted\").Sum(c =>
		doubled(c.Arg(1)))"
contains "why" "$work/err" "does not support queries extended by C files"

# Without JetStream it is said at once.
kill_server 0
server 0
for n in 1 3; do wait_for "fayd$n.log" joined; done
exits "no JetStream" 1 "$FAY" trace --cluster "$URL" --key asker.key "${ASK_OPTIONS[@]}" --await 2 \
	--detach --comm cluster_target "$query"
contains "what is missing" "$work/err" "JetStream"
