#!/usr/bin/env bash
# storm.sh [CYCLES [PROGRAM...]]: probes are attached to and detached from busy programs, CYCLES
# times each, while their answers are checked: an 8-thread program, redis, nginx, PostgreSQL,
# MariaDB, CPython, SQLite. Two of five cycles ask for stacks. No crash, no wrong answer, text
# restored byte for byte. FAY_STORM_CYCLES goes before CYCLES.
. "$(dirname "$0")/../lib.sh"
cycles=${FAY_STORM_CYCLES:-${1:-40}}
shift || true
programs=${*:-own redis nginx postgres mariadb python sqlite}
STORM=${STORM:-$(dirname "$FAY")/storm}
TEST_TARGET=${TEST_TARGET:-$(dirname "$FAY")/../tests/loader/fay-test-target}
# asks MODULE ENTRIES RETURNS: three probe images, counts of entries, durations of calls, and what
# lies on the stack at entries and at ends, to where it cannot be read any more; two queries, by
# stack at entries and at ends
asks() {
	local select='select new { g.Key, n = g.Count() }'
	queries=(-q "from e in cluster.Function(\"$1!$2\") group e by e.Stack(8) into g $select"
		-q "from r in cluster.Return(\"$1!$3\") group r by r.Stack(8) into g $select")
	cat >"$work/entries.c" <<-EOF
		#include <fay/probe.h>
		FAY_COUNT(calls);
		FAY_ENTRY("$1!$2") { fay_count(&calls); }
	EOF
	cat >"$work/returns.c" <<-EOF
		#include <fay/probe.h>
		FAY_COUNT(calls);
		FAY_HISTOGRAM(took);
		FAY_ENTRY("$1!$3") { fay_count(&calls); }
		FAY_RETURN("$1!$3") { fay_hist(&took, (int64_t)event->duration); }
	EOF
	cat >"$work/reads.c" <<-EOF
		#include <fay/probe.h>
		FAY_COUNT(calls);
		static inline void read_up(uint64_t from)
		{
			char some[1024];
			for (uint64_t at = 0; at < 16; at++)
				if (fay_try_read(some, sizeof(some), from + at * sizeof(some)))
					break;
		}
		FAY_ENTRY("$1!$3") { fay_count(&calls); read_up(event->stack_pointer); }
		FAY_RETURN("$1!$3") { read_up(event->stack_pointer); }
	EOF
	"$FAY" cc "$work/reads.c" -o "$work/reads.img"
	"$FAY" cc "$work/entries.c" -o "$work/entries.img"
	"$FAY" cc "$work/returns.c" -o "$work/returns.img"
}
# checker COMMAND...: runs it again and again until stop_load; it fails once and for all when the
# command does
checker() {
	rm -f "$work/stop"
	(while [ ! -e "$work/stop" ]; do "$@" >"$work/checker.out" 2>&1 ||
		{ touch "$work/wrong"; break; }; echo >>"$work/rounds"; done) &
	load=$!
	own "$load"
	: >"$work/rounds"
}
storm() { # NAME PID
	"$STORM" "${queries[@]}" "$2" "$cycles" "$work/entries.img" "$work/returns.img" "$work/reads.img" \
		>"$work/storm.out" 2>&1 ||
		{ cat "$work/storm.out" >&2; fail "$1: the storm"; }
	echo "ok: $1: $(cat "$work/storm.out")"
	kill -0 "$2" 2>/dev/null || fail "$1: the program has ended"
}
stop_load() {
	tries eval '[ -s "$work/rounds" ] || [ -e "$work/wrong" ]' || true
	touch "$work/stop"
	ended "$load" || true
	[ ! -e "$work/wrong" ] || { cat "$work/checker.out" >&2; fail "$1: a wrong answer"; }
	[ -s "$work/rounds" ] || fail "$1: nothing was checked"
	echo "ok: $1: $(wc -l <"$work/rounds") rounds of answers were right"
}
missing() { echo "SKIPPED: $1 is not installed"; }

own_() {
	asks fay-test-target 'fn_*' fn_c
	mkfifo "$work/own.in"
	"$TEST_TARGET" <"$work/own.in" >"$work/own.out" &
	local pid=$!
	own "$pid"
	exec 8>"$work/own.in"
	echo "start fn_c 8" >&8
	wait_for "$work/own.out" ok
	storm own "$pid"
	echo stop >&8 # its threads abort at a wrong return value
	echo registers >&8
	wait_for "$work/own.out" "" 3
	equal "own: registers changed" 0 "$(sed -n 3p "$work/own.out")"
	exec 8>&-
	ended "$pid" || fail "own: exit code $?"
}

redis_check() {
	redis-benchmark -p "$port" -q -n 3000 -c 8 -t set,get,lpush,zadd || return 1
	for i in $(seq 20); do
		[ "$(redis-cli -p "$port" set "key$i" "value$i")" = OK ] &&
			[ "$(redis-cli -p "$port" get "key$i")" = "value$i" ] || return 1
	done
}
redis_() {
	command -v redis-server >/dev/null || { missing redis-server; return; }
	asks redis-server '*Command' call
	start_redis
	checker redis_check
	storm redis "$redis"
	stop_load redis
}

nginx_check() {
	ab -q -n 2000 -c 8 "http://127.0.0.1:$web/file" >"$work/ab" &&
		grep -q 'Failed requests: *0' "$work/ab" && ! grep -q Non-2xx "$work/ab" || return 1
	[ "$(curl -s "http://127.0.0.1:$web/file" | sha256sum)" = "$(sha256sum <"$work/www/file")" ]
}
nginx_() {
	command -v nginx >/dev/null && command -v ab >/dev/null || {
		missing "nginx or apache2-utils"
		return
	}
	asks nginx 'ngx_http_*' ngx_http_output_filter
	mkdir "$work/www"
	head -c 100000 /dev/urandom >"$work/www/file"
	start_nginx "worker_processes 1;" /file
	local worker web=$port
	worker=$(pgrep -P "$nginx" | head -1)
	own "$worker"
	checker nginx_check
	storm nginx "$worker"
	stop_load nginx
}

postgres_check() {
	as_postgres pgbench -h "$work/pg" -p "$pgport" -n -c 2 -t 100 postgres || return 1
	[ "$(as_postgres psql -X -A -t -h "$work/pg" -p "$pgport" postgres \
		-c "select (select sum(abalance) from pgbench_accounts) = (select sum(delta) from pgbench_history) and
		(select sum(bbalance) from pgbench_branches) = (select sum(tbalance) from pgbench_tellers)")" \
		= t ]
}
as_postgres() { setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }
postgres_() {
	local bin
	bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -1 || true)
	[ -x "$bin/postgres" ] || { missing postgresql; return; }
	asks postgres 'Exec*' PortalRun
	pgport=$(random_port)
	chmod 755 "$work"
	mkdir "$work/pg"
	chown postgres "$work/pg"
	as_postgres "$bin/initdb" -D "$work/pg/data" -A trust -N >"$work/initdb.log" 2>&1 || {
		cat "$work/initdb.log" >&2
		fail initdb
	}
	as_postgres "$bin/postgres" -D "$work/pg/data" -p "$pgport" -k "$work/pg" \
		-c listen_addresses= -c fsync=off >"$work/pg.log" 2>&1 &
	own "$!"
	listening "$!" as_postgres "$bin/pg_isready" -q -h "$work/pg" -p "$pgport" || {
		cat "$work/pg.log" >&2
		fail "postgres does not listen"
	}
	as_postgres pgbench -h "$work/pg" -p "$pgport" -i -q postgres >"$work/pgbench.log" 2>&1 || {
		cat "$work/pgbench.log" >&2
		fail pgbench
	}
	# One connection that lives throughout is traced: it runs statements whose answers are
	# numbered.
	mkfifo "$work/sql"
	as_postgres psql -X -q -A -t -h "$work/pg" -p "$pgport" postgres <"$work/sql" \
		>"$work/psql.out" &
	own "$!"
	exec 8>"$work/sql"
	echo "select 'backend ' || pg_backend_pid();" >&8
	wait_for "$work/psql.out" backend
	checker postgres_check
	(i=0; while [ ! -e "$work/stop" ]; do i=$((i + 1))
		echo "select 'answer', $i, count(*), sum(a * 2) from generate_series(1, 1000) a;"
			done >&8) &
	local feeder=$!
	own "$feeder"
	storm postgres "$(sed -n 's/^backend //p' "$work/psql.out")"
	stop_load postgres
	ended "$feeder" || true
	echo "\\echo finished" >&8
	wait_for "$work/psql.out" finished
	exec 8>&-
	awk -F'|' '/^answer/ { n++; if ($2 != n || $3 != 1000 || $4 != 1001000) exit 1 } END { if (!n) exit 1; print "ok: postgres: " n " answers of the traced connection were right" }' \
		"$work/psql.out" || fail "postgres: a wrong answer of the traced connection"
}

mariadb_() {
	command -v mariadbd >/dev/null && command -v mariadb-install-db >/dev/null || {
		missing mariadb-server
		return
	}
	local mysql
	mysql=$(command -v mariadb || command -v mysql)
	mariadb=$mysql
	asks mariadbd '_ZN4JOIN*' '_Z16dispatch_command*'
	chmod 755 "$work"
	mkdir "$work/my"
	mariadb-install-db --no-defaults --user="$(id -un)" --datadir="$work/my" \
		--auth-root-authentication-method=normal >"$work/my.install" 2>&1 ||
		{ cat "$work/my.install" >&2; fail mariadb-install-db; }
	mariadbd --no-defaults --user="$(id -un)" --datadir="$work/my" --socket="$work/my.sock" \
		--skip-networking --pid-file="$work/my.pid" >"$work/my.log" 2>&1 &
	local pid=$!
	own "$pid"
	mariadb_answers() { "$mysql" --socket="$work/my.sock" -e "select 1" >"$work/got" 2>&1; }
	listening "$pid" mariadb_answers || {
		cat "$work/my.log" >&2
		fail "mariadbd does not answer"
	}
	"$mysql" --socket="$work/my.sock" \
		-e "create database if not exists test; use test; create table t (n int primary key); create table u (n int) engine=memory; insert into u values (0);
		insert into t select seq from (with recursive s(seq) as (select 1 union all select seq + 1 from s where seq < 1000) select seq from s) x" \
		|| fail "mariadb: set-up"
	checker mariadb_check
	storm mariadb "$pid"
	stop_load mariadb
}
# The sums of one residue class of 1..1000 each, a hundred times; by arithmetic, not by another
# server.
mariadb_check() {
	for i in $(seq 20); do
		echo "select $i, count(*), sum(n) from t where n % 7 = $i % 7; update u set n = n" \
			"+ 1;"
	done | "$mariadb" --socket="$work/my.sock" -N test |
		awk '{ c = 0; s = 0; for (k = 1; k <= 1000; k++) if (k % 7 == $1 % 7) { c++;
			s += k }
		if ($2 != c || $3 != s) exit 1; n++ } END { exit n != 20 }'
}

python_() {
	[ -x /usr/bin/python3 ] || { missing python3; return; }
	asks 'python3*' '_PyEval_*' 'PyObject_Call*'
	cat >"$work/busy.py" <<-'EOF'
		import hashlib, json, os, re, sys, threading
		stop, rounds = sys.argv[1], [0] * 4
		want = None
		def once():
		    words = re.findall(r"[a-z]+", " ".join("ab" * (i % 7) + "c" for i in range(300)))
		    data = json.loads(json.dumps({"n": [i * i for i in range(300)], "words": sorted(words)}))
		    try:
		        raise ValueError(sum(data["n"]))
		    except ValueError as e:
		        return hashlib.sha256(repr((data, e.args)).encode()).hexdigest()
		want = once()
		def work(k):
		    while not os.path.exists(stop):
		        if once() != want:
		            print("wrong", flush=True); os._exit(3)
		        rounds[k] += 1
		threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
		print("ready", flush=True)
		[t.start() for t in threads]; [t.join() for t in threads]
		print("rounds", sum(rounds), flush=True)
	EOF
	rm -f "$work/stop"
	/usr/bin/python3 "$work/busy.py" "$work/stop" >"$work/python.out" &
	local pid=$!
	own "$pid"
	wait_for "$work/python.out" ready
	storm python "$pid"
	touch "$work/stop"
	ended "$pid" || fail "python: exit code $?"
	grep -q 'rounds [1-9]' "$work/python.out" || fail "python: nothing was checked"
	echo "ok: python: $(grep rounds "$work/python.out") were right"
}

# One shell that runs statements whose answers are numbered, for as long as the storm lasts.
sqlite_() {
	command -v sqlite3 >/dev/null || { missing sqlite3; return; }
	asks libsqlite3 'sqlite3_*' sqlite3_step
	mkfifo "$work/statements"
	rm -f "$work/db"
	sqlite3 -batch "$work/db" <"$work/statements" >"$work/sqlite.out" 2>&1 &
	local pid=$!
	own "$pid"
	exec 8>"$work/statements"
	echo "create table t (n integer primary key, word text);
		insert into t select value, 'w' || value from generate_series(1, 1000);
		select 'ready';" >&8
	wait_for "$work/sqlite.out" ready
	(i=0; while [ ! -e "$work/stop" ]; do
			i=$((i + 1))
			echo "begin; update t set word = word || 'x' where n % 10 = $((i % 10)); rollback;
				select 'answer', $i, count(*), sum(n), sum(length(word)) from t
				where n % 7 < 9 order by word;"
		done >&8) &
	local feeder=$!
	own "$feeder"
	storm sqlite "$pid"
	touch "$work/stop"
	ended "$feeder" || true
	exec 8>&-
	ended "$pid" || fail "sqlite: exit code $?"
	awk -F'|' '/^answer/ { n++; if ($2 != n || $3 != 1000 || $4 != 500500 || $5 != 3893) exit 1 }
		!/^(answer|ready)/ { exit 1 }
		END { if (!n) exit 1; print "ok: sqlite: " n " answers were right" }' \
		"$work/sqlite.out" || fail "sqlite: a wrong answer"
}

for program in $programs; do
	rm -f "$work/stop" "$work/wrong"
	"${program}_"
done
