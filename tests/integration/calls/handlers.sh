#!/usr/bin/env bash
# Signal handlers that interrupt probes and call traced functions, jump away, or end the thread:
# what is lost is counted, and nothing is lost afterwards.
. "$(dirname "$0")/../lib.sh"
# Each event asks the kernel for the thread's name, so most signals come while a probe is under way.
query='from w in cluster.Function("handlers_target!work") group w by new { w.comm,
	number = w.Arg(0) } into g select new { g.Key.number, n = g.Count() }'
rows() {
	jq -s --argjson k "$1" \
		'[.[] | select(.type == "row" and .final and .values.number == $k) | .values.n] |
			add // 0' \
		"$work/trace.json"
}
for mode in nest nest-alternate nest-sandbox jump jump-alternate exit; do
	start_target ready "$HANDLERS_TARGET" "$mode"
	trace -p "$target" "$query"
	echo >&9
	wait_for "$work/target.out" "done"
	kill -INT "$tracer"
	ended "$tracer" || fail "$mode: fay trace failed"
	read -r _ first second third handled < <(grep "done" "$work/target.out")
	lost=$(jq -s 'map(select(.type == "end"))[0].lost_reentrant' "$work/trace.json")
	equal "$mode: other losses" "$lost" \
		"$(jq -s 'map(select(.type == "end"))[0].events_lost' "$work/trace.json")"
	equal "$mode: calls afterwards" "$second" "$(rows 2)"
	if [ "$third" -gt 0 ]; then
		equal "$mode: calls and calls in handlers, counted or lost" $((first + third)) \
			$(($(rows 1) + $(rows 3) + lost))
		[ "$lost" -gt 0 ] || fail "$mode: no handler of $handled interrupted a probe"
	else
		# each handler may have ended one call before it was counted
		seen=$(($(rows 1) + lost))
		[ "$seen" -le "$first" ] && [ "$seen" -ge $((first - handled)) ] ||
			fail "$mode: $seen of $first calls counted or lost, $handled handlers"
		echo "ok: $mode: $seen of $first calls counted ($lost of them as lost), $handled" \
			"handlers"
	fi
	end_target
done
