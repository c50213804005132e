#!/usr/bin/env bash
# User and kernel on one timeline: a function of a program joined with the system calls that the
# same thread makes meanwhile, and events of the kernel with each other.
host=1
. "$(dirname "$0")/../lib.sh"
target=$(dirname "$TARGET")/timeline_target
needs_bpf

# ask QUERY OPTIONS...: the rows' values, one JSON object a line, into $work/rows
ask() {
	local query=$1
	shift
	"$FAY" trace --json "$query" "$@" >"$work/out" 2>"$work/err" </dev/null ||
		{ cat "$work/err" >&2; fail "$query"; }
	jq -c 'select(.type == "row" and .final) | .values' "$work/out" >"$work/rows"
	equal "events lost, dropped, late" '[0,0,0]' \
		"$(jq -c 'select(.type == "end") | [.events_lost, .join.evicted, .join.late]' \
		"$work/out")"
}
inside='from f in cluster.Return("timeline_target!work") join r in cluster.Syscall("read") on f.tid
	equals r.tid within 1min
	where r.time >= f.time - f.Duration && r.time <= f.time'

ask "$inside group r by f.ReturnValue into g orderby g.Key select new { call = g.Key,
	reads = g.Count() }" \
	-- "$target" 12
equal "reads in each call" "$(jq -nc '[range(1; 13) | [., .]]')" \
	"$(jq -sc 'map([.call, .reads])' "$work/rows")"
ask "$inside && r.Duration >= 0 group new { f, r } by r.ReturnValue into g
	select new { bytes = g.Key, reads = g.Count(), inside = g.Count(x => x.r.time - x.r.Duration
	>= x.f.time - x.f.Duration) }" \
	-- "$target" 12
equal "their ends" '[{"bytes":1,"reads":78,"inside":78}]' "$(jq -sc . "$work/rows")"
# The kernel's side on the left; rows of pairs.
ask 'from r in cluster.Syscall("read") where r.Arg(2) == 1
	join f in cluster.Function("timeline_target!work") on new { r.pid, r.tid }
	equals new { f.pid, f.tid } within 1min
	where r.time > f.time group f by f.Arg(1) into g orderby g.Key select new { call = g.Key,
	later = g.Count() }' -- "$target" 8
equal "reads after each call began" \
	"$(jq -nc '[range(1; 9) as $k | [$k, ([range($k; 9) | . + 1] | add)]]')" \
	"$(jq -sc 'map([.call, .later])' "$work/rows")"
# All in the kernel: 90 reads, 48 sleeps, in one thread.
ask 'from r in cluster.Syscall("read") where r.Arg(2) == 1
	join s in cluster.Syscall("clock_nanosleep") on r.tid equals s.tid within 1min
	group new { r, s } by r.function into g select new { g.Key, pairs = g.Count(),
	before = g.Count(x => x.r.time < x.s.time) }' -- "$target" 12
# Of call k the k reads lie before its second sleep and what follows; those outside before the last
# one of their round.
before=$(jq -n '[range(1; 13) | . * (3 + 4 * (12 - .)) + 1 + 4 * (12 - .)] | add')
equal "pairs in the kernel" "[{\"Key\":\"read\",\"pairs\":$((90 * 48)),\"before\":$before}]" \
	"$(jq -sc . "$work/rows")"

# A process that runs already, by number and by name. The calls that are seen from their beginning
# to their end have all their reads.
"$target" 100000 &
pid=$!
own "$pid"
runs "$pid" timeline_target
sleep 600 &
own $!
runs $! sleep
for who in "-p $pid" "--comm timeline_target" "-p $pid --comm sleep"; do
	# on a machine that stands still meanwhile there may be nothing in one second
	for time in 1s 3s 10s; do
		ask "$inside group r by f.ReturnValue into g select new { call = g.Key,
			reads = g.Count() }" \
			$who --for $time
		[ "$(wc -l <"$work/rows")" -le 2 ] || break
	done
	equal "$who: calls with all their reads" '[true,true]' \
		"$(jq -sc '[length > 2, all(.call % 100 == .reads)]' "$work/rows")"
done
