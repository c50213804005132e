#!/usr/bin/env bash
# All functions of a database server and all of its libc traced at once, under load: MariaDB (select
# by key and update, 4 connections) and PostgreSQL (pgbench's own transactions, 4 connections). Each
# round measures the same load untraced, and with every function counted by its name. Prints
# transactions a second, medians [quartiles], how many functions were traced, and whether the
# database's sums are right in the end.
#   bench/servers.sh [ROUNDS]      default 5; JSON goes to $OUT if that is set. SECONDS_EACH: length
#                                  of one measurement, default 3
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-5}
each=${SECONDS_EACH:-3}
bin=${BIN:-$PWD/build/bin}
work=$(mktemp -d)
. scripts/owned.sh
cleanup() { kill_owned TERM; wait 2>/dev/null || true; rm -rf "$work"; }
trap cleanup EXIT
chmod 755 "$work"
: >"$work/all"
tracers=()
# attach SERVER-MODULE PID...: returns when both traces run
attach() {
	local module=$1 pids=() pid
	shift
	for pid in "$@"; do pids+=(-p "$pid"); done
	tracers=()
	for what in "$module" libc; do
		rm -f "$work/$what.err"
		"$bin/fay" trace --json --budget none "${pids[@]}" \
			"from f in cluster.Function(\"$what!*\") group f by f.function into g
				select new { f = g.Key, n = g.Count() }" \
			>"$work/$what.json" 2>"$work/$what.err" &
		tracers+=($!)
		own $!
		until grep -qs "fay: tracing" "$work/$what.err"; do
			kill -0 $! 2>/dev/null || {
				cat "$work/$what.err" >&2
				exit 1
			}
			sleep 0.05
		done
		sed -n 's/^fay: tracing \([0-9]*\) function.* in \([0-9]*\) process.*/\1 \2/p' \
			"$work/$what.err" | awk -v w="$what" '{print w, $1 / $2}' \
			>"$work/$what.points"
	done
}
detach() { kill -INT "${tracers[@]}"; wait "${tracers[@]}"; }
# measure SERVER MODE COMMAND: a command that prints how many transactions were done so far
measure() {
	local first last begin end
	begin=$(date +%s%N)
	first=$($3)
	sleep "$each"
	last=$($3)
	end=$(date +%s%N)
	awk -v s="$1" -v m="$2" -v n=$((last - first)) -v t=$((end - begin)) \
		'BEGIN {printf "%s %s %.1f\n", s, m, n * 1e9 / t}' >>"$work/all"
}

if command -v mariadbd >/dev/null; then
	mariadb-install-db --no-defaults --datadir="$work/my" --user=root \
		--auth-root-authentication-method=normal >/dev/null 2>&1
	mariadbd --no-defaults --datadir="$work/my" --socket="$work/my.sock" --skip-networking \
		--user=root --innodb-flush-log-at-trx-commit=0 >"$work/my.log" 2>&1 &
	server=$!
	own "$server"
	client=(mariadb --no-defaults --socket="$work/my.sock" -uroot -N -B)
	sql() { "${client[@]}" "$@"; }
	for _ in $(seq 300); do sql -e "select 1" >/dev/null 2>&1 && break; sleep 0.1; done
	sql -e "create database b; create table b.t (id int primary key, v bigint) engine=innodb; insert into b.t select seq, 0 from b.seq_1_to_1000" \
		2>/dev/null ||
		sql -e "insert into b.t with recursive s(n) as (select 1 union all select n + 1 from s where n < 1000) select n, 0 from s"
	for connection in 1 2 3 4; do
		while :; do
			for i in $(seq 500); do
				echo "update t set v = v + 1 where id =" \
					"$((connection * 200 + i % 100)); select v from t where" \
					"id = $i;"
			done
		done |
			"${client[@]}" b >/dev/null 2>>"$work/client.err" &
		own "$!"
	done
	done_so_far() { sql -e "show global status like 'Com_update'" | cut -f2; }
	for round in $(seq "$rounds"); do
		measure mariadb untraced done_so_far
		attach mariadbd "$server"
		measure mariadb traced done_so_far
		detach
	done
	for one in "${started[@]:1}"; do signal_owned TERM "${one% *}"; done
	sleep 1
	[ "$(sql -e 'select sum(v) from b.t')" = "$(done_so_far)" ] &&
		echo "mariadb: the sum of the table is the number of updates, $(done_so_far)" ||
		{ echo "mariadb: WRONG: $(sql \
		-e 'select sum(v) from b.t') in the table, $(done_so_far) updates" >&2; exit 1; }
	cat "$work/mariadbd.points" "$work/libc.points" | sed 's/^/mariadb: functions traced: /'
	signal_owned TERM "$server"
fi
pg=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -1)
if [ -n "$pg" ] && command -v pgbench >/dev/null; then
	mkdir "$work/pg"
	chown postgres "$work/pg"
	as_postgres() { setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }
	as_postgres "$pg/initdb" -D "$work/pg/data" -A trust -N >/dev/null 2>&1
	setpriv --reuid=postgres --regid=postgres --clear-groups "$pg/postgres" -D "$work/pg/data" \
		-k "$work/pg" -c listen_addresses= -c fsync=off -c stats_fetch_consistency=none \
		>"$work/pg.log" 2>&1 &
	server=$!
	own "$server"
	for _ in $(seq 200); do
		as_postgres "$pg/pg_isready" -q -h "$work/pg" && break
		sleep 0.1
	done
	as_postgres pgbench -h "$work/pg" -i -s 2 -q postgres >/dev/null 2>&1
	setpriv --reuid=postgres --regid=postgres --clear-groups pgbench -h "$work/pg" -c 4 \
		-T 100000 -n postgres >"$work/pgbench.out" 2>&1 &
	load=$!
	own "$load"
	sleep 1
	query() { as_postgres psql -X -q -A -t -h "$work/pg" -c "$1" postgres; }
	done_so_far() { query "select count(*) from pgbench_history"; }
	mapfile -t backends \
		< <(query "select pid from pg_stat_activity where application_name = 'pgbench'")
	for round in $(seq "$rounds"); do
		measure postgres untraced done_so_far
		attach postgres "${backends[@]}"
		measure postgres traced done_so_far
		detach
	done
	signal_owned TERM "$load"
	sleep 1
	sums=$(query "select (select sum(abalance) from pgbench_accounts) = (select sum(delta) from pgbench_history) and (select sum(tbalance) from pgbench_tellers) = (select sum(delta) from pgbench_history)")
	[ "$sums" = t ] && echo "postgres: the balances are the sums of the history" || {
		echo "postgres: WRONG balances" >&2
		exit 1
	}
	cat "$work/postgres.points" "$work/libc.points" |
		sed 's/^/postgres: functions traced in each backend: /'
	signal_owned INT "$server"
fi
quartiles() {
	sort -g | awk \
		'{v[NR] = $1} END {printf "%.0f %.0f %.0f\n", v[int((NR + 1) / 2)], v[int((NR + 3) / 4)], v[int((3 * NR + 1) / 4)]}'
}
: >"$work/json"
for server in mariadb postgres; do
	for mode in untraced traced; do
		grep -q "^$server $mode" "$work/all" || continue
		read -r median low high \
			< <(awk -v s=$server -v m=$mode '$1 == s && $2 == m {print $3}' \
			"$work/all" | quartiles)
		echo "$server $mode: $median [$low, $high] transactions a second"
		jq -nc --arg s $server --arg m $mode --argjson a "$median" --argjson l "$low" \
			--argjson h "$high" '{server: $s, mode: $m, tps: $a, quartiles: [$l, $h]}' \
			>>"$work/json"
	done
done
[ -z "${OUT:-}" ] || jq -s --argjson r "$rounds" '{bench: "servers", rounds: $r, results: .}' \
	"$work/json" >"$OUT"
