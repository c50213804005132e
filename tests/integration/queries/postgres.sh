#!/usr/bin/env bash
# Debian's PostgreSQL: one backend counts its own statements.
. "$(dirname "$0")/../lib.sh"
bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -1 || true)
[ -x "$bin/postgres" ] || skip "postgresql is not installed"
start_postgres
before=$(text_hash "$backend")
trace -p "$backend" 'cluster.Function("postgres!PortalRun").Count()'
for i in $(seq 2000); do echo "select $i;"; done >&9
echo "\\echo finished" >&9
wait_for "$work/psql.out" finished
end_trace
equal "postgres!PortalRun for 2000 statements" 2000 "$(final_sum Count)"
trace -p "$backend" \
	'from m in cluster.Usdt("postgres!postgresql:query__*") group m by m.function into g
		select new { g.Key, n = g.Count() }'
for i in $(seq 1000); do echo "select $i + 1;"; done >&9
echo "\\echo again" >&9
wait_for "$work/psql.out" again
end_trace
for marker in query__start query__done query__parse__start query__parse__done \
	query__execute__start query__execute__done; do
	equal "postgresql:$marker for 1000 statements" 1000 \
		"$(jq -s --arg k "postgresql:$marker" '[.[] | select(.type == "row" and .final
			and .values.Key == $k) | .values.n] | add // 0' "$work/trace.json")"
done
# --- a process for each connection, which the server forks
if [ -x "$bin/pgbench" ]; then
	echo "select 4711;" >"$work/script"
	trace --comm postgres 'cluster.Usdt("postgres!postgresql:query__start").Count(e =>
		e.Arg(0).Text == "select 4711;")'
	as_postgres "$bin/pgbench" -n -C -c 4 -t 50 -f "$work/script" -h "$work/pg" \
		-p "$port" postgres >"$work/pgbench" 2>&1 ||
		{ cat "$work/pgbench" >&2; fail "pgbench"; }
	end_trace
	equal "statements of 200 connections" 200 "$(final_sum Count)"
fi
equal "text of postgres after detach" "$before" "$(text_hash "$backend")"
echo "select 'still ' || 'serving';" >&9
wait_for "$work/psql.out" "still serving"
exec 9>&-
kill -INT "$server"
