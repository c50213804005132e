#!/usr/bin/env bash
# What becomes of events whose ring is full, as the query says: fay stands still while a thread
# makes far more of them than its ring holds.
. "$(dirname "$0")/../lib.sh"
calls=100000
ring=$((256 * 1024 / 16)) # rows: a record has 8 bytes and the row's

# run QUERY: the numbers of the rows that came as [how many, first, last, without gaps], and how
# many were lost
run() {
	start_target ready "$TARGET" 1 $calls
	trace -p "$target" "$1"
	kill -STOP "$tracer"
	await "fay stands still" eval '[ "$(awk "{print \$3}" "/proc/$tracer/stat")" = T ]'
	echo >&9
	wait_for "$work/target.out" done
	kill -CONT "$tracer"
	end_target
	ended "$tracer" || { cat "$work/trace.err" >&2; fail "fay trace exited with $?"; }
	numbers=$(jq -sc 'map(select(.type == "row") | .values.n) |
		[length, .[0], .[-1], . == [range(.[0]; .[-1] + 1)]]' "$work/trace.json")
	lost=$(jq -sc 'map(select(.type == "end"))[0] | [.events_lost, .lost_full]' \
		"$work/trace.json")
}
run 'from w in cluster.Function("threads_target!work").WhenFull(Drop) select new { n = w.Arg(1) }'
equal "Drop: the first rows" "[$ring,0,$((ring - 1)),true]" "$numbers"
equal "Drop: the others are lost, and counted" "[$((calls - ring)),$((calls - ring))]" "$lost"
run 'from w in cluster.Function("threads_target!work").WhenFull(Overwrite)
	select new { n = w.Arg(1) }'
equal "Overwrite: the last rows" "[$ring,$((calls - ring)),$((calls - 1)),true]" "$numbers"
equal "Overwrite: the others are lost, and counted" "[$((calls - ring)),$((calls - ring))]" "$lost"
run 'from w in cluster.Function("threads_target!work").WhenFull(Block) select new { n = w.Arg(1) }'
equal "Block: nobody waits for who does not come" "[$ring,0,$((ring - 1)),true]" "$numbers"
equal "Block: what is lost is counted" "[$((calls - ring)),$((calls - ring))]" "$lost"

# While fay reads: each row once, in order, and with those that were overwritten all of them.
start_target ready "$TARGET" 3 300000
trace -p "$target" 'from w in cluster.Function("threads_target!work").WhenFull(Overwrite)
	select new { t = w.Arg(0), n = w.Arg(1) }'
echo >&9
wait_for "$work/target.out" done
end_target
ended "$tracer" || { cat "$work/trace.err" >&2; fail "fay trace exited with $?"; }
equal "rows and losses make all" 900000 \
	"$(jq -s '(map(select(.type == "row")) |
		length) + (map(select(.type == "end"))[0].events_lost)' "$work/trace.json")"
equal "in order, none twice, up to the last" '[true,true,true]' \
	"$(jq -sc 'map(select(.type == "row") | .values) | group_by(.t) | map(map(.n) |
		. == unique and .[-1] == 299999)' "$work/trace.json")"

# Sums are not overwritten.
exits "groups" 1 "$FAY" trace \
	'cluster.Function("libc!read").WhenFull(Overwrite).GroupBy(r => r.tid).Select(g =>
		g.Count())' -- cat /dev/null
contains "says what to use" "$work/err" 'use `Drop` or `Block`'

# A query that has its rows misses nothing of what is lost while fay lets go of a thread that waits
# for room.
for _ in $(seq 8); do
	exits "a query that has its rows" 0 "$FAY" trace \
		--json 'cluster.Function("libc!*").Take(3)' -- dd if=/dev/zero of=/dev/null bs=1 \
		count=300000 status=none
	equal "why it ended, and events lost" '["the query has all its rows",0,0]' \
		"$(jq -sc 'map(select(.type == "end"))[0] | [.reason, .events_lost, .lost_full]' \
		"$work/out")"
done
