#!/usr/bin/env bash
# Attaching to and detaching from 1, 100, 1,000 and 10,000 functions of one busy process: how long
# each takes, and the longest time for which the process is stopped. With one trampoline shared and
# with one for each function, interleaved; medians [quartiles] in milliseconds. Then the cost of a
# traced call under both strategies, in nanoseconds: the same loop untraced and traced, the least of
# many short runs each, so that other load does not count.
#   bench/attach.sh [ROUNDS]      default 9; JSON goes to $OUT if that is set
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-9}
bin=${BIN:-$PWD/build/bin}
work=$(mktemp -d)
. scripts/owned.sh
cleanup() { kill_owned TERM; wait 2>/dev/null || true; rm -rf "$work"; }
trap cleanup EXIT

"$bin/many_target" busy >"$work/many.out" &
many=$!
own "$many"
mkfifo "$work/in"
"$bin/fay_bench_target" 1 <"$work/in" >"$work/loop.out" &
loop=$!
own "$loop"
exec 9>"$work/in"

attach() { # FUNCTIONS PATTERN STRATEGY SHARE
	"$bin/fay" trace --json --timing --budget none --share "$4" --for 0.1s -p "$many" \
		"cluster.Function(\"many_target!$2\").Count()" >"$work/rows" 2>"$work/err"
	grep -q "tracing $1 function" "$work/err" || { cat "$work/err" >&2; exit 1; }
	awk -v n="$1" -v s="$3" \
		'/find and attach/ {a = $4} /  detach/ {d = $2} /longest pause/ {p = $5} END {print n, s, a, d, p}' \
		"$work/err" >>"$work/all"
}
least() { # of 40 runs of half a million calls, nanoseconds a call
	local lines
	lines=$(wc -l <"$work/loop.out")
	for _ in $(seq 40); do
		echo "run work 500000" >&9
		lines=$((lines + 1))
		while [ "$(wc -l <"$work/loop.out")" -lt $lines ]; do sleep 0.002; done
	done
	tail -40 "$work/loop.out" | awk '{print $2}' | sort -g | head -1
}
traced() { # SHARE QUERY
	rm -f "$work/err"
	"$bin/fay" trace --json --budget none --share "$1" -p "$loop" "$2" >"$work/rows" 2>"$work/err" &
	local tracer=$!
	own $tracer
	until grep -qs "fay: tracing" "$work/err"; do
		kill -0 $tracer || {
			cat "$work/err" >&2
			exit 1
		}
		sleep 0.01
	done
	least
	kill -INT $tracer
	wait $tracer
}
for round in $(seq "$rounds"); do
	for strategy in "own 1000000" "shared 1"; do
		attach 1 f10000 $strategy
		attach 100 'f100??' $strategy
		attach 1000 'f10???' $strategy
		attach 10000 'f1????' $strategy
	done
	echo "round $round of $rounds done" >&2
done
count='cluster.Function("fay_bench_target!work").Count()'
group='cluster.Function("fay_bench_target!work").GroupBy(w => w.function).Select(g => new { g.Key,
	n = g.Count() })'
for round in 1 2 3; do
	echo "untraced $(least)" >>"$work/cost"
	echo "count_own $(traced 1000000 "$count")" >>"$work/cost"
	echo "count_shared $(traced 1 "$count")" >>"$work/cost"
	echo "group_own $(traced 1000000 "$group")" >>"$work/cost"
	echo "group_shared $(traced 1 "$group")" >>"$work/cost"
done
exec 9>&-
quartiles() {
	sort -g | awk \
		'{v[NR] = $1} END {printf "%.2f %.2f %.2f\n", v[int((NR + 1) / 2)], v[int((NR + 3) / 4)], v[int((3 * NR + 1) / 4)]}'
}
: >"$work/json"
for functions in 1 100 1000 10000; do
	for strategy in own shared; do
		line="$functions functions, $strategy:"
		for column in "3 attach" "4 detach" "5 pause"; do
			read -r median low high \
				< <(awk -v n=$functions -v s=$strategy -v c="${column% *}" \
				'$1 == n && $2 == s {print $c}' "$work/all" | quartiles)
			line+=" ${column#* } $median [$low, $high] ms"
			jq -nc --argjson f "$functions" --arg s "$strategy" --arg w "${column#* }" \
				--argjson m "$median" --argjson l "$low" --argjson h "$high" \
				'{functions: $f, trampolines: $s, what: $w, median_ms: $m,
					quartiles_ms: [$l, $h]}' \
				>>"$work/json"
		done
		echo "$line"
	done
done
untraced=$(awk '$1 == "untraced" {print $2}' "$work/cost" | sort -g | head -1)
for label in count_own count_shared group_own group_shared; do
	added=$(awk -v l=$label '$1 == l {print $2}' "$work/cost" | sort -g | head -1 |
		awk -v u="$untraced" '{printf "%.2f\n", $1 - u}')
	echo "$label: $added ns a call"
	jq -nc --arg w "$label" --argjson n "$added" '{what: $w, added_ns: $n}' >>"$work/json"
done
[ -z "${OUT:-}" ] || jq -s --argjson r "$rounds" '{bench: "attach", rounds: $r, results: .}' \
	"$work/json" >"$OUT"
