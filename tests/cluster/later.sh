#!/usr/bin/env bash
# What agents find after a query has begun: modules that traced processes load, processes that only
# then have what is asked for. And what else an agent's user meets: a configuration file, `fay
# cluster top`.
. "$(dirname "$0")/lib.sh"
server 0
program=$FOLLOW_TARGET plugin=$FOLLOW_PLUGIN
# An agent by its configuration file.
node 1
"$FAY" cluster keygen node1 >/dev/null 2>&1
cat >fayd.conf <<END
# as examples/cluster/fayd.conf
url = $URL
insecure
key = $work/node1.key       # who we are
signers = $work/signers

name = configured
labels = rack#7
audit = $work/audit1
memory = 64
END
within 1 "$FAYD" --config fayd.conf 2>fayd1.log
nodes[1]=$inside
wait_for fayd1.log "configured has joined"
agent 2
equal "name and labels of the file" '["configured","rack#7"]' \
	"$("$FAY" cluster status --cluster "$URL" --key asker.key "${ASK_OPTIONS[@]}" --json \
	--await 2 | jq -sc '.[] | select(.labels != "") | [.name, .labels]')"
echo 'colour = blue' >wrong.conf
exits "a name that is none" 2 "$FAYD" --config wrong.conf
contains "its line" "$work/err" "wrong.conf:1: not understood: colour = blue"
echo 'memory = lots' >wrong.conf
exits "a number that is none" 2 "$FAYD" --config wrong.conf
printf '%01100d\n' 0 >wrong.conf
exits "a long line" 2 "$FAYD" --config wrong.conf
contains "its number" "$work/err" "wrong.conf:1: a line of more than"
exits "no such file" 2 "$FAYD" --config nowhere.conf
exits "a URL without its beginning" 2 "$FAY" cluster status --cluster hub:4222 --key asker.key
contains "what is missing" "$work/err" "a URL has ://"

# Top shows pictures until it is interrupted; one that leaves is not in the next.
"$FAY" cluster top --cluster "$URL" --key asker.key "${ASK_OPTIONS[@]}" --every 100ms >top.out \
	2>top.err &
top=$!
own "$top"
wait_for top.out configured 2
[ "$(grep -c '^machine ' top.out)" -ge 2 ] || fail "top showed fewer than two pictures"
kill -INT "$top"
code=0
ended "$top" || code=$?
equal "top, interrupted" 0 $code

# run N ARGUMENTS...: follow_target on node N
run() {
	local n=$1
	rm -f "in$n" "out$n"
	mkfifo "in$n"
	eval "exec $((20 + n))<>in$n"
	within "$n" "$program" "${@:2}" <"in$n" >"out$n"
	wait_for "out$n" waiting
}
# traced N COUNT: until agent N has said so often that it traces functions of a process
traced() { wait_for "fayd$1.log" "functions traced in process" "$2"; }
for n in 1 2; do run $n wait calls 5 load "$plugin" plugin 100 wait; done
ask --await 2 --comm follow_target 'cluster.Function("follow_*!*work").Count()'
for n in 1 2; do traced $n 1; finish $n; wait_for "out$n" loaded; traced $n 2; finish $n; done
until_rows '.[0].Count' 210
end_ask
for n in 1 2; do finish $n; done

# None has the function when the query begins.
for n in 1 2; do run $n wait load "$plugin" plugin 100 wait; done
ask --await 2 --comm follow_target \
	--wait 'from c in cluster.Function("follow_plugin*!plugin_work")
		group c by c.function into g select new { k = g.Key, n = g.Count() }'
for n in 1 2; do finish $n; wait_for "out$n" loaded; traced $n 3; finish $n; done
until_rows 'map([.k, .n])' '[["plugin_work",200]]'
end_ask
for n in 1 2; do finish $n; done
