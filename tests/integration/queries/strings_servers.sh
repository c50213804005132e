#!/usr/bin/env bash
# Statements of PostgreSQL and keys of redis as group keys, whole: as many as were sent.
. "$(dirname "$0")/../lib.sh"

# texts COUNTS: the rows as `COUNT TEXT` lines
texts() { jq -r 'select(.type == "row" and .final) | .values | "\(.n) \(.text)"' \
	"$work/trace.json" | LC_ALL=C sort; }

bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -1 || true)
if [ -x "$bin/postgres" ]; then
	start_postgres
	trace -p "$backend" 'from q in cluster.Usdt("postgres!postgresql:query__start")
		group q by q.Arg(0).Text into g select new { text = g.Key, n = g.Count() }'
	for i in $(seq 200); do
		printf "select %d, '%s' from generate_series(1, 2) where 'a longer statement' <> '';\n" \
			$((i % 7)) "$(printf 'x%.0s' $(seq $((i % 7 * 90))))"
	done >"$work/statements"
	cat "$work/statements" >&9
	echo "\\echo finished" >&9
	wait_for "$work/psql.out" finished
	end_trace
	LC_ALL=C sort "$work/statements" | uniq -c | sed 's/^ *//' | LC_ALL=C sort >"$work/sent"
	texts | diff "$work/sent" - >"$work/diff" || { head -20 "$work/diff" | cut -c1-200 >&2
		fail "PostgreSQL: other statements than those that were sent"; }
	echo "ok: PostgreSQL: $(wc -l <"$work/sent") statements of up to $(wc -L <"$work/sent") bytes"
	exec 9>&-
fi

start_redis
for i in $(seq 300); do
	echo "get a:key:of:$(printf 'redis%.0s' $(seq $((i % 11 * 4)))):$((i % 11))"
done >"$work/commands"
sed 's/^get \(.*\)/set \1 value/' "$work/commands" | redis-cli -p "$port" >/dev/null
trace -p "$redis" 'from k in cluster.Function("redis-server!dictSdsHash")
	where k.Arg(0).Text.StartsWith("a:key:of:")
	group k by k.Arg(0).Text into g select new { text = g.Key, n = g.Count() }'
redis-cli -p "$port" <"$work/commands" >/dev/null
end_trace
sed 's/^get //' "$work/commands" | LC_ALL=C sort | uniq -c | sed 's/^ *//' | LC_ALL=C sort \
	>"$work/sent"
texts | diff "$work/sent" - >"$work/diff" || { head -20 "$work/diff" | cut -c1-200 >&2
	fail "redis: other keys than those that were asked for"; }
echo "ok: redis: $(wc -l <"$work/sent") keys of up to $(wc -L <"$work/sent") bytes"
