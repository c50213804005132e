#!/usr/bin/env bash
# What the state of quantiles by function takes: the 99th percentile of the durations of 10,000
# functions, each called so many times, beside their count. Prints, for each, the calls, the memory
# that is resident of the trace's state in the program, and fay's own, and the events lost.
#   bench/state.sh [CALLS...]      of each function, two on average; default 2 200 2000
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${BIN:-$PWD/build/bin}
work=$(mktemp -d)
. scripts/owned.sh
cleanup() { kill_owned TERM; wait 2>/dev/null || true; rm -rf "$work"; }
trap cleanup EXIT

mib() { awk -v kb="$1" 'BEGIN {printf "%.1f", kb / 1024}'; }
state() { # kB of the state's mappings that are resident there
	awk '/^[0-9a-f]+-/ {of = /fay-state/} of && /^Rss:/ {kb += $2} END {print kb + 0}' \
		"/proc/$1/smaps"
}
measure() { # WHAT CALLS
	local tracer program rows lost calls
	rm -f "$work"/*
	mkfifo "$work/in"
	"$bin/many_target" <"$work/in" >"$work/said" &
	program=$!
	own "$program"
	exec 9>"$work/in"
	until grep -qs ready "$work/said"; do sleep 0.05; done
	"$bin/fay" trace --json --budget none -p "$program" 'from r in
		cluster.Return("many_target!f1????") group r by r.function into g
		select new { g.Key, n = g.Count(), v = '"$1"' }' >"$work/json" 2>"$work/err" &
	tracer=$!
	own "$tracer"
	until grep -qs "fay: tracing" "$work/err"; do
		kill -0 "$tracer" || { cat "$work/err" >&2; exit 1; }
		sleep 0.05
	done
	echo $(($2 / 2)) >&9
	until grep -qs sum "$work/said"; do sleep 0.05; done
	sleep 2 # it is sent by then
	calls=$(($2 / 2 * 19999))
	kb=$(state "$program")
	own_kb=$(awk '/^VmRSS/ {print $2}' "/proc/$tracer/status")
	kill -INT "$tracer"
	wait "$tracer" || true
	exec 9>&-
	wait "$program" || true
	read -r rows counted lost < <(jq -rs '[([.[] | select(.type == "row" and .final)] | length),
		([.[] | select(.type == "row" and .final).values.n] | add),
		(.[] | select(.type == "end").events_lost)] | map(tostring) | join(" ")' "$work/json")
	[ "$counted" = $((calls - lost)) ] || echo "counted $counted of $calls, $lost lost" >&2
	echo "| \`$1\` | $rows | $calls | $(mib "$kb") | $(mib "$own_kb") | $lost |"
}
echo "| by function | functions | calls | state in the program, MiB | fay, MiB | events lost |"
echo "| --- | --- | --- | --- | --- | --- |"
for calls in "${@:-2 200 2000}"; do
	for one in $calls; do
		measure 'g.Count()' "$one"
		measure 'g.Quantile(0.99, r => r.Duration)' "$one"
	done
done
echo
echo "load $(cut -d' ' -f1 /proc/loadavg) at the end"
