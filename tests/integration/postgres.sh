#!/usr/bin/env bash
# Debian's PostgreSQL: one backend counts its own statements.
. "$(dirname "$0")/lib.sh"
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
[ -x "$bin/postgres" ] || skip "postgresql is not installed"
port=$((20000 + RANDOM % 20000))
chmod 755 "$work"
mkdir "$work/pg"
chown postgres "$work/pg"
as_postgres() { setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }
as_postgres "$bin/initdb" -D "$work/pg/data" -A trust -N >"$work/initdb.log" 2>&1 || { cat "$work/initdb.log" >&2; fail initdb; }
as_postgres "$bin/postgres" -D "$work/pg/data" -p "$port" -k "$work/pg" -c listen_addresses= >"$work/pg.log" 2>&1 &
started+=("$!")
server=$!
for _ in $(seq 200); do as_postgres "$bin/pg_isready" -q -h "$work/pg" -p "$port" && break; sleep 0.05; done
mkfifo "$work/sql"
as_postgres psql -X -q -A -t -h "$work/pg" -p "$port" postgres <"$work/sql" >"$work/psql.out" &
started+=("$!")
exec 9>"$work/sql"
echo "select 'backend ' || pg_backend_pid();" >&9
wait_for "$work/psql.out" backend
backend=$(sed -n 's/^backend //p' "$work/psql.out")
before=$(text_hash "$backend")
trace -p "$backend" 'cluster.Function("postgres!PortalRun").Count()'
for i in $(seq 2000); do echo "select $i;"; done >&9
echo "\\echo finished" >&9
wait_for "$work/psql.out" finished
end_trace
equal "postgres!PortalRun for 2000 statements" 2000 "$(final_sum Count)"
trace -p "$backend" 'from m in cluster.Usdt("postgres!postgresql:query__*") group m by m.function into g select new { g.Key, n = g.Count() }'
for i in $(seq 1000); do echo "select $i + 1;"; done >&9
echo "\\echo again" >&9
wait_for "$work/psql.out" again
end_trace
for marker in query__start query__done query__parse__start query__parse__done query__execute__start query__execute__done; do
	equal "postgresql:$marker for 1000 statements" 1000 "$(jq -s --arg k "postgresql:$marker" '[.[] | select(.type == "row" and .final and .values.Key == $k) | .values.n] | add // 0' "$work/trace.json")"
done
equal "text of postgres after detach" "$before" "$(text_hash "$backend")"
echo "select 'still ' || 'serving';" >&9
wait_for "$work/psql.out" "still serving"
exec 9>&-
kill -INT "$server"
