#!/usr/bin/env bash
# Stacks of servers as they are packaged, without frame pointers, each against the one that it noted
# itself by glibc's unwinder: redis, PostgreSQL, MariaDB (C++).
. "$(dirname "$0")/../lib.sh"
here=$(cd "$(dirname "$0")" && pwd)
gcc -O2 -fPIC -shared -D_GNU_SOURCE -pthread -o "$work/liboracle.so" "$here/servers_oracle.c"
export NOTES=$work/notes
# noted PID COMMAND...: what the process notes while the command runs is what is traced
noted() {
	local pid=$1
	shift
	trace -p "$pid" 'from e in cluster.Function("liboracle!noted") group e by e.Stack(17) into g
		select new { stack = g.Key, n = g.Count() }'
	touch "$NOTES.$pid.go"
	"$@" >"$work/load.out" 2>&1 || { cat "$work/load.out" >&2; fail "the load"; }
	rm "$NOTES.$pid.go"
	rest 5 # what was noted is traced by then
	end_trace
	python3 "$here/stacks_compare.py" "$FAY" "$work/trace.json" "$NOTES.$pid" 2 ||
		fail "stacks of process $pid differ"
}

if command -v redis-server >/dev/null; then
	mkdir "$work/bin" # Debian's is a link to a file of another name
	cp "$(readlink -f "$(command -v redis-server)")" "$work/bin/redis-server"
	PATH=$work/bin:$PATH LD_PRELOAD=$work/liboracle.so start_redis
	load_redis() {
		redis-benchmark -p "$port" -q -n 500 -c 4 -t set,get,lpush,lrange_100,mset
		redis-cli -p "$port" save
	}
	noted "$redis" load_redis
else
	echo "SKIPPED: redis-server is not installed"
fi

bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -1 || true)
if [ -x "$bin/postgres" ]; then
	export LD_PRELOAD=$work/liboracle.so
	start_postgres
	unset LD_PRELOAD
	chmod 777 "$work"
	load_postgres() {
		cat >&9 <<-'END'
			create table t (n int primary key, s text);
			insert into t select i, repeat(i::text, 50) from generate_series(1, 3000) i;
			create index on t (s);
			update t set s = s || 'x' where n % 7 = 0;
			select count(*), max(a.s) from t a join t b using (n) where a.n > 100 group by a.n % 10;
			delete from t where n % 11 = 0; vacuum full t; checkpoint;
			do $$ begin for i in 1..50 loop begin insert into t values (1, ''); exception when unique_violation then null; end; end loop; end $$;
			select 'finished';
		END
		wait_for "$work/psql.out" finished
		for i in $(seq 200); do echo "select * from t where n = $i; notify a, '$i';"; done >&9
		echo "select 'and this'" ';' >&9
		wait_for "$work/psql.out" "and this"
	}
	noted "$backend" load_postgres
else
	echo "SKIPPED: postgresql is not installed"
fi

if command -v mariadbd >/dev/null && command -v mariadb-install-db >/dev/null; then
	mkdir "$work/my"
	mariadb-install-db --no-defaults --user="$(id -un)" --datadir="$work/my" \
		--auth-root-authentication-method=normal >"$work/my.install" 2>&1 ||
		{ cat "$work/my.install" >&2; fail mariadb-install-db; }
	LD_PRELOAD=$work/liboracle.so mariadbd --no-defaults --user="$(id -un)" \
		--datadir="$work/my" --socket="$work/my.sock" --skip-networking \
		--pid-file="$work/my.pid" >"$work/my.log" 2>&1 &
	mariadb=$!
	own "$mariadb"
	mysql() { mariadb --socket="$work/my.sock" "$@"; }
	answers() { mysql -e "select 1" >"$work/got" 2>&1; }
	listening "$mariadb" answers || { cat "$work/my.log" >&2; fail "mariadbd does not answer"; }
	load_mariadb() {
		mysql <<-'END'
			create database d; use d; create table t (n int primary key, s varchar(200));
			insert into t select seq, repeat(seq, 20) from seq_1_to_3000;
			create index i on t (s); update t set s = concat(s, 'x') where n % 7 = 0;
			select count(*), max(a.s) from t a join t b using (n) where a.n > 100 group by a.n % 10;
			delete from t where n % 11 = 0; optimize table t; flush tables;
			create table u (n int) engine=aria; insert into u select n from t; drop table u;
		END
	}
	noted "$mariadb" load_mariadb
else
	echo "SKIPPED: mariadb-server is not installed"
fi
