#!/usr/bin/env bash
# Programs that attack who traces them: with another process that shares their descriptors, and by
# overwriting the shared state. Whatever they do, fay ends by itself, by no signal, and touches no
# file of theirs.
. "$(dirname "$0")/../lib.sh"
program=$(dirname "$FAY")/hostile_target
ends() { # WHAT ARGUMENT...: with a result or an error, as the program left it
	local what=$1 code=0
	shift
	timeout -k 5 60 "$FAY" trace --json -p "$target" "$@" >"$work/out" 2>"$work/err" || code=$?
	[ "$code" -le 4 ] && [ "$code" != 2 ] || {
		tail -5 "$work/err" >&2
		fail "$what: exit code $code"
	}
	echo "ok: $what: exit code $code"
}
begin() { # HOW...
	[ -z "${target:-}" ] || kill -9 "$target" 2>/dev/null || true
	start_target ready "$program" "$@"
	echo >&9
}
count='cluster.Function("hostile_target!work").Count()'

for _ in $(seq 8); do
	begin truncate
	ends "descriptors cut off" --for 50ms "$count"
done

echo "not to be touched" >"$work/victim"
begin replace "$work/victim"
for _ in $(seq 8); do
	ends "descriptors replaced" --for 50ms "$count"
	equal "the program's other file" "not to be touched" "$(head -c 100 "$work/victim")"
done

e='from e in cluster.Function("hostile_target!work")'
for query in "$count" "cluster.Return(\"hostile_target!work\").Average(x => x.Duration)" \
	"$e select new { e.number, s = e.text }" \
	"$e group e by e.text into g select new { g.Key, n = g.Count(),
		a = g.Average(x => x.number), h = g.Histogram(x => x.number) }" \
	"$e group e by e.number % 3 into g select new { g.Key, q = g.Quantile(0.9, x => x.number),
		f = g.First(x => x.number) }" \
	"$e group e by e.tid into g select new { g.Key, d = g.DistinctCount(x => x.number),
		t = g.TopK(9, x => x.number) }"; do
	begin scribble
	ends "overwritten state: $query" --for 1s "$query"
done
