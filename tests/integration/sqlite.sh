#!/usr/bin/env bash
# Debian's sqlite3 shell from its first instruction on: sqlite3_step is called once a row and once more a statement.
. "$(dirname "$0")/lib.sh"
{
	echo "create table t(a, b);"
	for i in $(seq 500); do echo "insert into t values ($i, 'row $i');"; done
	echo "select a from t order by b;"
} >"$work/script.sql"
"$FAY" trace --json 'from s in cluster.Function("libsqlite3!sqlite3_step") group s by s.function into g select new { function = g.Key, calls = g.Count() }' \
	-- sqlite3 -batch "$work/db" ".read $work/script.sql" >"$work/all" 2>"$work/trace.err" ||
	{ cat "$work/trace.err" >&2; fail "fay trace -- sqlite3"; }
grep '^{' "$work/all" >"$work/trace.json"
equal "the shell's own output" 500 "$(grep -cv '^{' "$work/all")"
# 501 statements that return no row: one step each. 500 rows and the end: 501 steps.
equal "sqlite3_step" $((501 + 501)) "$(final_sum calls)"
equal "events lost" 0 "$(jq -s 'map(select(.type == "end"))[0].events_lost' "$work/trace.json")"
