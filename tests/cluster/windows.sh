#!/usr/bin/env bash
# Windows of time over three machines: each is shown once all have told what they counted in it;
# what a machine that was cut off tells later shows its windows again. Of each window the last
# version counts; together they have every call exactly once.
. "$(dirname "$0")/lib.sh"
server 0
TARGET=$CALLS
for n in 1 2 3; do agent $n; target $n; done
# the sum of one column over all windows' last versions
sum() {
	grep -v '^$' trace.json | jq -s --arg c "$1" \
		'[.[] | select(.type == "row") | .values] | group_by(.window, .k) | map(.[-1][$c]) |
			add // 0'
}
until_sum() {
	for _ in $(seq 1200); do
		[ "$(sum "$1")" = "$2" ] && {
			echo "ok: live: $1 over all windows = $2"
			return 0
		}
		sleep 0.1
	done
	cat trace.err >&2
	fail "$1 over all windows did not become $2, but $(sum "$1")"
}
revised() { jq -s '[.[] | select(.type == "row" and .revised)] | length' trace.json; }

ask --await 3 --lost-after 3s --comm cluster_target \
	--wait 'cluster.Function("cluster_target!counted").Tumbling(500ms).Count()'
for n in 1 2 3; do calls $n 10000; done
until_sum Count 30000
[ "$(revised)" = 0 ] || fail "windows were shown before they were complete: $(revised)"
unplug 2
for n in 1 2 3; do calls $n 1000; done
until_coverage lost 1
until_sum Count 32000
plug 2
until_sum Count 33000
[ "$(revised)" -gt 0 ] || fail "no window was shown again"
for n in 1 2 3; do calls $n 100; done
end_ask
equal "calls in all windows" 33300 "$(sum Count)"
equal "finished, rows that came too late" "3 0" "$(coverage finished) $(coverage rows_late)"
equal "windows that begin at no multiple of half a second" 0 \
	"$(jq -s '[.[] | select(.type == "row") | .values.window | select(. % 500000000 != 0)] |
		length' trace.json)"

# Sliding, in groups, with a root stage: each call is in four windows.
ask --await 3 --comm cluster_target \
	--wait 'from c in cluster.Function("cluster_target!counted").Sliding(1s, 250ms)
		group c by c.Arg(0) % 3 into g where g.Count() > 0 select new { k = g.Key,
		n = g.Count() }'
for i in 1 2 3; do for n in 1 2 3; do calls $n 300; done; rest 5; done
rest 10 # windows that are not over at the end are not shown, but the last
end_ask
equal "calls in all sliding windows" $((4 * 2700)) "$(sum n)"

# What replaces rows: the most frequent values, exact where there are no more than are asked for. A
# machine is cut off for longer than the others keep windows.
tops() {
	grep -v '^$' trace.json |
		jq -s '[.[] | select(.type == "row") | .values] | group_by(.window) | map(.[-1]) |
			[(map(.n) | add // 0), (map(.t[].count) | add // 0)] | join(" ")' -r
}
until_tops() {
	for _ in $(seq 1200); do
		[ "$(tops)" = "$1 $1" ] && {
			echo "ok: live: counts and most frequent over all windows = $1"
			return 0
		}
		sleep 0.1
	done
	cat trace.err >&2
	fail "counts and most frequent over all windows did not become $1, but $(tops)"
}
ask --await 3 --lost-after 3s --comm cluster_target \
	'from c in cluster.Function("cluster_target!counted").Tumbling(500ms) group c by 1 into g
		select new { n = g.Count(), t = g.TopK(2, c => c.Arg(0) % 2) }'
for i in 1 2 3 4; do for n in 1 2 3; do calls $n 1000; done; rest 8; done
until_tops 12000
unplug 2
for n in 1 2 3; do calls $n 100; done
until_coverage lost 1
until_tops 12200
plug 2
until_tops 12300
end_ask
equal "counts and most frequent in all windows" "12300 12300" "$(tops)"
equal "finished, rows that came too late" "3 0" "$(coverage finished) $(coverage rows_late)"
