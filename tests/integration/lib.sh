# Shared by the integration tests. Source it; it cleans up what it started.
#
# A test runs in namespaces of its own (tests/alone). One that sets `host` before it sources this
# runs among all processes: the kernel's events, which BPF reads, have the process numbers of the
# machine.
set -Eeuo pipefail
if [ -z "${FAY_ALONE:-}${host:-}" ]; then
	export FAY_ALONE=1
	exec "$(dirname "${BASH_SOURCE[0]}")/../alone" "$0" "$@"
fi
FAY=${FAY:?path of the fay command}
# Programs that do little but call what is traced are above any budget, and counts are to be exact;
# budget_default.sh has what holds without this.
export FAY_BUDGET=none
work=$(mktemp -d)
mkfifo "$work/.nothing"
. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/owned.sh" # what a test owns is killed at its end
cleanup() {
	local code=$?
	trap - ERR
	kill_owned
	wait 2>/dev/null || true
	rm -rf "$work"
	exit $code
}
trap cleanup EXIT
# Nothing ends a test silently.
trap 'code=$?; [ "$BASH_SUBSHELL" -gt 0 ] || echo "FAIL: ${BASH_SOURCE[0]}:$LINENO: exit code $code: $BASH_COMMAND" >&2' \
	ERR
for signal in HUP INT TERM; do trap "echo FAIL: SIG$signal >&2; exit 1" $signal; done

fail() { echo "FAIL: $*" >&2; exit 1; }
skip() { echo "SKIPPED: $*"; exit 77; }
# equal WHAT EXPECTED GOT
equal() { [ "$2" = "$3" ] || fail "$1: expected $2, got $3"; echo "ok: $1 = $3"; }
# contains WHAT FILE TEXT
contains() {
	grep -qF -- "$3" "$2" || {
		cat "$2" >&2
		fail "$1: no '$3' in the output"
	}
	echo "ok: $1"
}
# exits WHAT CODE COMMAND...: runs it, output into $work/out and $work/err
exits() {
	local what=$1 want=$2 got=0
	shift 2
	"$@" >"$work/out" 2>"$work/err" || got=$?
	[ "$got" = "$want" ] || {
		cat "$work/out" "$work/err" >&2
		fail "$what: exit code $got, expected $want"
	}
	echo "ok: $what exits with $got"
}
# All waiting here is in rounds, not until a time: a machine that stands still for seconds takes one
# of them, not all. And without a process for each round: on some machines those take half the time.
# nap SECONDS: what never comes is waited for so long
nap() { read -rt "$1" _ <>"$work/.nothing" || :; }
# tries CONDITION...: until the command says yes, two minutes long
tries() {
	local round
	for ((round = 0; round < 2400; round++)); do "$@" && return 0; nap 0.05; done
	return 1
}
# await WHAT CONDITION...: likewise; it must come
await() {
	local what=$1
	shift
	tries "$@" || fail "$what: not after two minutes"
}
has_lines() { # FILE TEXT COUNT
	local count
	if [ "$3" = 1 ]; then
		grep -qsF -- "$2" "$1"
		return
	fi
	count=$(grep -cF -- "$2" "$1" 2>/dev/null) || true
	[ "${count:-0}" -ge "$3" ]
}
# wait_for FILE TEXT [COUNT]: until so many lines have it, one unless said. A file that is made anew
# in the background is removed before, or an earlier one would do.
wait_for() {
	tries has_lines "$1" "$2" "${3:-1}" && return 0
	cat "$1" >&2 || true
	fail "${3:-1} times '$2' in $1: not after two minutes"
}
# rest TENTHS: so many tenths of a second, in which whoever is waited for gets to run, too
rest() { local round; for ((round = 0; round < $1; round++)); do nap 0.1; done; }
# ended PID [SECONDS]: waits for a child of this shell, four minutes unless said; returns its exit
# code
ended() {
	local pid=$1 rounds=$((20 * ${2:-240})) birth one
	read_birth "$pid"
	birth=$birth_read
	# its number may be another's by now
	for one in "${started[@]}"; do [ "${one% *}" != "$pid" ] || birth=${one#* }; done
	while read_birth "$pid" && [ -n "$birth" ] && [ "$birth_read" = "$birth" ]; do
		[ $((rounds--)) -gt 0 ] || {
			ps -o pid,ppid,stat,wchan:24,args -s "$(ps -o sid= -p $$ | tr -d ' ')" >&2
			fail "process $pid does not end"
		}
		nap 0.05
	done
	wait "$pid"
}
# start_target SAYS COMMAND...: in the background, its input from file descriptor 9, its output into
# $work/target.out; returns when it has said that; pid in $target, hash of its text in $before
start_target() {
	local says=$1
	shift
	rm -f "$work/in" "$work/target.out"
	mkfifo "$work/in"
	"$@" <"$work/in" >"$work/target.out" 2>&1 &
	target=$!
	own "$target"
	exec 9>"$work/in"
	wait_for "$work/target.out" "$says"
	before=$(text_hash "$target")
}
# The target's last input; it must end well.
end_target() {
	echo >&9
	exec 9>&-
	ended "$target" || fail "the program's exit code is $?"
}
# trace ARGS...: fay trace --json in the background, returns when it is attached; pid in $tracer
trace() {
	rm -f "$work/trace.err" # an earlier one would look like attached
	"$FAY" trace --json ${FAY_TRACE_OPTIONS:-} "$@" >"$work/trace.json" 2>"$work/trace.err" &
	tracer=$!
	own "$tracer"
	wait_for "$work/trace.err" "; Ctrl-C ends"
	[ -z "${FAY_TRACE_PRIORITY:-}" ] || renice -n "$FAY_TRACE_PRIORITY" -p "$tracer" \
		>/dev/null 2>&1 || true
}
end_trace() {
	local code=0
	kill -INT "$tracer"
	ended "$tracer" || code=$?
	[ "$code" = 0 ] || { cat "$work/trace.err" >&2; fail "fay trace exited with $code"; }
	equal "events lost" 0 \
		"$(jq -s 'map(select(.type == "end"))[0].events_lost' "$work/trace.json")"
}
# The final rows' sum of one column
final_sum() {
	jq -s --arg c "$1" '[.[] | select(.type == "row" and .final) | .values[$c]] | add // 0' \
		"$work/trace.json"
}
# PID [MODULE]: of the first executable mapping of a module, else of the program itself
text_hash() {
	local range module=${2:-$(readlink "/proc/$1/exe")}
	range=$(awk -v m="$module" '$2 ~ /x/ && index($6, m) {print $1; exit}' "/proc/$1/maps")
	[ -n "$range" ] || fail "process $1 has no executable mapping of $module"
	local start=$((16#${range%-*})) end=$((16#${range#*-}))
	dd if="/proc/$1/mem" bs=4096 skip=$((start / 4096)) count=$(((end - start) / 4096)) \
		status=none iflag=fullblock | sha256sum | cut -d' ' -f1
}
# What fay doctor says of BPF: `bpf_is ok`, `bpf_is why`
bpf_is() { { "$FAY" doctor --json || true; } | jq -sr "map(select(.name == \"bpf\"))[0].$1"; }
needs_bpf() { [ "$(bpf_is ok)" = true ] || skip "$(bpf_is why)"; }
# copy_fay: to where every user may run it; $work/bin/fay
copy_fay() {
	mkdir "$work/bin"
	cp "$FAY" "$work/bin/fay"
	chmod 755 "$work" "$work/bin" "$work/bin/fay"
}
is_called() { [ "$(cat "/proc/$1/comm" 2>/dev/null)" = "$2" ]; }
# runs PID NAME: until that process, which was just started, executes the program
runs() { await "process $1 executes $2" is_called "$1" "$2"; }
# random_port: below those that the kernel gives to clients; whoever listens there tries another if
# it is taken
random_port() { echo $((10000 + RANDOM % 20000)); }
# listening PID CONDITION...: until the command says yes; fails if the process ends before
listening() {
	local pid=$1
	shift
	for _ in $(seq 2400); do
		"$@" && return 0
		[ -n "$(born "$pid")" ] || return 1
		sleep 0.05
	done
	return 1
}
redis_is_ours() {
	timeout 10 redis-cli -p "$port" info server 2>/dev/null | tr -d '\r' |
		grep -x "process_id:$redis" >/dev/null
}
start_redis() { # on 127.0.0.1:$port; its pid in $redis
	for _ in $(seq 10); do
		port=$(random_port)
		redis-server --port "$port" --bind 127.0.0.1 --save "" --appendonly no \
			--dir "$work" >"$work/redis.log" 2>&1 &
		redis=$!
		own "$redis"
		listening "$redis" redis_is_ours && return 0
	done
	cat "$work/redis.log" >&2
	fail "redis-server did not start"
}
# start_nginx DIRECTIVES PATH: it gives what is in $work/www, PATH for one, on 127.0.0.1:$port; its
# pid in $nginx
start_nginx() {
	chmod 755 "$work" "$work/www"
	for _ in $(seq 10); do
		port=$(random_port)
		cat >"$work/nginx.conf" <<-EOF
			$1 daemon off; pid $work/nginx.pid; error_log $work/nginx.log;
			events { worker_connections 256; }
			http { access_log off; client_body_temp_path $work/t1; proxy_temp_path $work/t2; fastcgi_temp_path $work/t3; uwsgi_temp_path $work/t4; scgi_temp_path $work/t5;
			server { listen 127.0.0.1:$port; root $work/www; } }
		EOF
		nginx -c "$work/nginx.conf" 2>"$work/nginx.err" &
		nginx=$!
		own "$nginx"
		listening "$nginx" curl -sf -o "$work/got" "http://127.0.0.1:$port$2" && return 0
	done
	cat "$work/nginx.err" >&2
	fail "nginx did not start"
}
# start_postgres: of Debian's, in $bin; its pid in $server. psql reads file descriptor 9, answers
# into $work/psql.out; its pid in $client, that of its server process in $backend
start_postgres() {
	port=$(random_port) # names its socket
	chmod 755 "$work"
	mkdir "$work/pg"
	chown postgres "$work/pg"
	as_postgres() { setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }
	as_postgres "$bin/initdb" -D "$work/pg/data" -A trust -N >"$work/initdb.log" 2>&1 || {
		cat "$work/initdb.log" >&2
		fail initdb
	}
	as_postgres "$bin/postgres" -D "$work/pg/data" -p "$port" -k "$work/pg" \
		-c listen_addresses= >"$work/pg.log" 2>&1 &
	server=$!
	own "$server"
	listening "$server" as_postgres "$bin/pg_isready" -q -h "$work/pg" -p "$port" || {
		cat "$work/pg.log" >&2
		fail "postgres does not listen"
	}
	mkfifo "$work/sql"
	setpriv --reuid=postgres --regid=postgres --clear-groups "$bin/psql" -X -q -A -t \
		-h "$work/pg" -p "$port" postgres <"$work/sql" >"$work/psql.out" &
	client=$!
	own "$client"
	exec 9>"$work/sql"
	echo "select 'backend ' || pg_backend_pid();" >&9
	wait_for "$work/psql.out" backend
	backend=$(sed -n 's/^backend //p' "$work/psql.out")
}
