# Shared by the cluster's tests. Each node is a network and a process namespace of its own,
# connected by a bridge: an agent sees its own node's programs only.
# Source it; everything it starts, and each namespace, is gone at its end.
. "$(dirname "$0")/../integration/lib.sh"
FAYD=${FAYD:?path of fayd}
command -v nats-server >/dev/null || skip "nats-server is not installed"
net=fay$$
bridge=fb$$
# Addresses that no network of this machine's has.
subnet=10.$((64 + $$ % 64)).$((($$ / 64) % 256))
for third in $(seq 0 255); do
	[ -n "$(ip -4 route show to match "$subnet.1" 2>/dev/null | grep -v ^default || true)" ] ||
		break
	subnet=${subnet%.*}.$(((third + $$) % 256))
done
nodes=()   # by node: pid of the agent
holders=() # by node: the first process of its namespaces
targets=() # by node: pid of the traced program
servers=() # by number: pid of the NATS server

cleanup_cluster() {
	local code=$?
	trap - ERR
	kill_owned
	for n in "${!holders[@]}"; do ip netns del "$net-$n" 2>/dev/null || true; done
	ip link del "$bridge" 2>/dev/null || true
	set +e
	(exit $code)
	cleanup
}
trap cleanup_cluster EXIT

ip link add "$bridge" type bridge 2>"$work/net.err" ||
	skip "no network namespaces here: $(cat "$work/net.err")"
# In a chroot that is no mount point `ip netns exec` cannot give the node mounts of its own.
ip netns add "$net-try" 2>"$work/net.err" ||
	skip "no network namespaces here: $(cat "$work/net.err")"
tried=0
ip netns exec "$net-try" unshare --pid --fork --mount-proc true 2>"$work/net.err" || tried=$?
ip netns del "$net-try"
[ "$tried" = 0 ] || skip "no namespaces for nodes here: $(cat "$work/net.err")"
ip addr add "$subnet.1/24" dev "$bridge"
ip link set "$bridge" up
cd "$work"
"$FAY" cluster keygen asker >/dev/null 2>&1
echo "signer ops $(cat asker.pub)" >signers

port_is_open() { (exec 3<>"/dev/tcp/$subnet.1/$1") 2>/dev/null; }
# server N [OPTIONS...]: starts NATS server N (port 4000 + N) and waits until it listens
server() {
	local n=$1
	shift
	nats-server -a "$subnet.1" -p $((4000 + n)) -l "$work/nats$n.log" "$@" &
	servers[n]=$!
	own "${servers[n]}"
	tries port_is_open $((4000 + n)) && return 0
	cat "$work/nats$n.log" >&2
	fail "nats-server $n does not listen"
}
# kill_server N: by force; its port is free afterwards
kill_server() {
	kill -9 "${servers[$1]}"
	wait "${servers[$1]}" 2>/dev/null || true
}
url() { echo "nats://$subnet.1:$((4000 + ${1:-0}))"; }
URL=$(url 0)
NODE_OPTIONS=(--insecure)
ASK_OPTIONS=(--insecure)

# network N: a node's network namespace and nothing else
network() {
	ip netns add "$net-$1"
	ip link add "v$$-$1" type veth peer name eth0 netns "$net-$1"
	ip link set "v$$-$1" master "$bridge" up
	ip -n "$net-$1" addr add "$subnet.$((10 + $1))/24" dev eth0
	ip -n "$net-$1" link set eth0 up
	ip -n "$net-$1" link set lo up
}
# node N: its namespaces
node() {
	local n=$1
	[ -z "${holders[n]:-}" ] || return 0
	network "$n"
	ip netns exec "$net-$n" unshare --pid --fork --mount-proc --kill-child sleep infinity &
	local outer=$!
	own "$outer"
	await "namespaces for node $n" child_of "$outer"
	holders[n]=$child
	own "$child"
	runs "$child" sleep # once its /proc is mounted
}
# child_of PID: its only child's number in $child
child_of() { child=$(pgrep -P "$1") && [ -n "$child" ]; }
child_or_end() { child_of "$1" || [ -z "$(born "$1")" ]; }
# within N COMMAND...: runs it there, in the background; its pid in $inside
within() {
	local n=$1
	shift
	# else it would read from /dev/null
	nsenter -t "${holders[n]}" --pid --mount --root --net --wd="$work" -- "$@" <&0 &
	local outer=$!
	own "$outer"
	await "a process in node $n" child_or_end "$outer"
	inside=${child:-$outer} # over already
}
# agent N [OPTIONS...]: starts fayd as node N
agent() {
	local n=$1
	shift
	node "$n"
	[ -e "node$n.key" ] || "$FAY" cluster keygen "node$n" >/dev/null 2>&1
	: >"fayd$n.log"
	within "$n" "$FAYD" --url "$URL" --key "node$n.key" --signers signers --name "node$n" \
		--audit "audit$n" "${NODE_OPTIONS[@]}" "$@" 2>"fayd$n.log"
	nodes[n]=$inside
	wait_for "fayd$n.log" "has joined"
}
# target N THREADS CALLS: a program on node N that waits for go N
target() {
	local n=$1
	node "$n"
	rm -f "in$n" "out$n"
	mkfifo "in$n"
	eval "exec $((20 + n))<>in$n"
	within "$n" "$TARGET" "${@:2}" <"in$n" >"out$n"
	targets[n]=$inside
	wait_for "out$n" "$([ "$TARGET" = "${CALLS:-}" ] && echo "did 0" || echo ready)"
	sums[n]=0
}
# kill_target N: the program of node N, and returns when it is gone: nobody finds it in /proc any
# more
kill_target() {
	local birth
	birth=$(born "${targets[$1]}")
	kill -9 "${targets[$1]}"
	await "the program of node $1 is gone" is_gone "${targets[$1]}" "$birth"
}
is_gone() { [ "$(born "$1")" != "$2" ]; }
sums=() # by node: calls made so far
# calls N COUNT: the program of node N (cluster_target) makes that many, and has made them when this
# returns
calls() {
	sums[$1]=$((sums[$1] + $2))
	echo "$2" >&$((20 + $1))
	wait_for "out$1" "did ${sums[$1]}"
}
# patched N HASH: until the code of node N's program is another than HASH
patched() { await "the program of node $1 is traced" has_other_text "${targets[$1]}" "$2"; }
has_other_text() { [ "$(text_hash "$1")" != "$2" ]; }
unplug() { ip link set "v$$-$1" down; }
plug() { ip link set "v$$-$1" up; }
go() { echo >&$((20 + $1)); wait_for "out$1" done; }
finish() { echo >&$((20 + $1)); }
# ask ARGS...: fay trace on the cluster in the background, returns when it traces; its pid in
# $tracer
ask() {
	rm -f trace.err
	"$FAY" trace --cluster "$URL" --key asker.key "${ASK_OPTIONS[@]}" --json --every 100ms \
		"$@" >trace.json 2>trace.err &
	tracer=$!
	own "$tracer"
	wait_for trace.err "fay: tracing"
}
# The rows of the last whole picture: what stands between the last two coverage lines.
picture='([to_entries[] | select(.value.type == "coverage") | .key]) as $c | .[(if ($c | length) > 1 then $c[-2] + 1 else 0 end):($c[-1] // 0)] | [.[] | select(.type == "row") | .values]'
# until_rows JQ-EXPRESSION VALUE: until the last picture's rows give it
until_rows() {
	local got=
	for _ in $(seq 1200); do
		got=$(grep -v '^$' trace.json | tail -400 | jq -sc "$picture | $1" 2>/dev/null ||
			true)
		[ "$got" = "$2" ] && { echo "ok: live: $1 = $2"; return 0; }
		sleep 0.1
	done
	tail -3 trace.json >&2
	cat trace.err >&2
	fail "$1 did not become $2, but $got"
}
# until_more MEMBER VALUE: until it is over that
until_more() {
	for _ in $(seq 1200); do
		[ "$(coverage "$1")" -gt "$2" ] 2>/dev/null && {
			echo "ok: live: $1 over $2"
			return 0
		}
		sleep 0.1
	done
	fail "$1 did not become more than $2, but $(coverage "$1")"
}
# until_coverage MEMBER VALUE
until_coverage() {
	for _ in $(seq 1200); do
		[ "$(coverage "$1")" = "$2" ] && { echo "ok: live: $1 = $2"; return 0; }
		sleep 0.1
	done
	fail "$1 did not become $2, but $(coverage "$1")"
}
coverage() { grep '"type":"coverage"' trace.json | tail -1 | jq ".$1" 2>/dev/null || true; }
end_ask() {
	local code=0
	signal_owned INT "$tracer"
	ended "$tracer" || code=$?
	[ "$code" = "${1:-0}" ] || { cat trace.err >&2; fail "fay trace exited with $code"; }
}
# fault NAME CALLS COUNTED: all calls were counted; a line of the table of docs/cluster.md,
# "Failures": how many machines were late and lost at once at worst, and are at the end
fault() {
	local worst end
	worst=$(grep -v '^$' trace.json | jq -sr 'map(select(.type == "coverage")) |
		"\(map(.late) | max) \(map(.lost) | max)"')
	end=$(grep -v '^$' trace.json | jq -sr 'map(select(.type == "end"))[-1].events_lost')
	printf 'fault: %-64s calls %6d counted %6d machines %d late %d lost %d at the end late %d lost %d events lost %d duplicates %d\n' \
		"$1" "$2" "$3" "$(coverage asked)" $worst "$(coverage late)" "$(coverage lost)" \
		"$end" "$(coverage duplicates)"
	equal "calls counted, $1" "$2" "$3"
}
total() {
	jq -s --arg c "$1" '[.[] | select(.type == "row" and .final) | .values[$c]] | add // 0' \
		trace.json
}
