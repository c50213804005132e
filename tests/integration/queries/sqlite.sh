#!/usr/bin/env bash
# Debian's sqlite3 shell from its first instruction on.
. "$(dirname "$0")/../lib.sh"
{
	echo "create table t(a, b);"
	for i in $(seq 500); do echo "insert into t values ($i, 'row $i');"; done
	echo "select a from t order by b;"
} >"$work/script.sql"
"$FAY" trace --json \
	'from s in cluster.Function("libsqlite3!sqlite3_step") group s by s.function into g
		select new { function = g.Key, calls = g.Count() }' \
	-- sqlite3 -batch "$work/db" ".read $work/script.sql" >"$work/all" 2>"$work/trace.err" ||
	{ cat "$work/trace.err" >&2; fail "fay trace -- sqlite3"; }
grep '^{' "$work/all" >"$work/trace.json"
equal "the shell's own output" 500 "$(grep -cv '^{' "$work/all")"
# The shell steps some statements of its own, so the oracle is another tracer's count of the same
# run: a breakpoint that gdb ignores.
oracle=$(gdb -batch -ex 'set breakpoint pending on' -ex 'break sqlite3_step' \
	-ex 'ignore 1 1000000' -ex run -ex 'info breakpoints' \
	--args sqlite3 -batch "$work/db2" ".read $work/script.sql" 2>/dev/null |
	sed -n 's/.*already hit \([0-9]*\) times.*/\1/p')
[ "${oracle:-0}" -ge $((501 + 501)) ] || fail "gdb counted '${oracle:-nothing}'"
equal "sqlite3_step against a debugger's count" "$oracle" "$(final_sum calls)"
equal "events lost" 0 "$(jq -s 'map(select(.type == "end"))[0].events_lost' "$work/trace.json")"
