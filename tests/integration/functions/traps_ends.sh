#!/usr/bin/env bash
# Returns of functions with an exit where no jump fits are traced by traps in the kernel at all
# their exits: exact in threads and by recursion; at jumps to other functions, conditional or from a
# table; with durations and arguments, also of calls that are left, or go on in another thread or in
# another function; and refused with the reason where an end cannot be seen.
host=1
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/say_lib.sh"
bin=$(dirname "$TARGET")
needs_bpf
conditions="o no b ae e ne be a s ns p np l ge le g"
start_target ready "$bin/traps_ends_target"
say "run 4 100" ran
right=$answer

# --- counted: all ends, once each
by_name='from r in cluster.Return("traps_ends_target!ends_*") group r by r.function into g
	select new { g.Key, n = g.Count() }'
trace --verbose -p "$target" "$by_name"
contains "a lone ret" "$work/trace.err" "traced by a trap: traps_ends_target!ends_call:"
contains "how many" "$work/trace.err" "fay: 24 of them through traps in the kernel"
say "run 4 100" ran
equal "the program's own result" "$right" "$answer"
say "run 8 1000" ran
say "fork 1000" forked
end_trace
n=$((4 * 100 + 8 * 1000))
for name in call somewhere table shared thunk dead; do
	equal "returns of ends_$name" "[$n]" "$(row "ends_$name" n)"
done
equal "ends of what others enter behind its begin" "[$((2 * n))]" "$(row ends_entered n)"
equal "of a recursive function" "[$((6 * n))]" "$(row ends_recursive n)"
for name in $conditions; do
	equal "after a jump or not, by flags: ends_$name" "[$((12 * 32))]" "$(row "ends_$name" n)"
done
equal "traps, as JSON" 24 "$(jq -s 'map(select(.type == "end"))[0].traps' "$work/trace.json")"
equal "text after" "$before" "$(text_hash "$target")"

# --- values, arguments, durations
trace --verbose -p "$target" 'from r in cluster.Return("traps_ends_target!ends_*")
	group r by r.function into g select new { g.Key, n = g.Count(), value = g.Sum(x => x.ReturnValue),
		argument = g.Sum(x => x.Arg(0)), least = g.Min(x => x.Duration),
		most = g.Max(x => x.Duration) }'
say "run 4 100" ran
equal "the program's own result" "$right" "$answer"
say pause paused
say moved moved
say "left 2" left
end_trace
# all of three, half of two, and of each condition and its opposite one half
left=$((4 * (3 * 100 + 2 * 50 + 8 * 32)))
equal "calls that went on elsewhere are counted" "$left" \
	"$(jq -s 'map(select(.type == "end"))[0].calls_left_by_jump' "$work/trace.json")"
sum=$((4 * 5050))
equal "values, arguments" "[$((4 * 100 + 3)),$((sum + 20 + 7 + 2)),$((sum + 20 + 7 + 2))]" \
	"$(row ends_call n value argument)"
equal "by recursion" "[$((6 * 400)),$((15 * 400))]" "$(row ends_recursive n argument)"
equal "of calls that entered at the begin" "[400,$sum,$sum]" "$(row ends_entered n value argument)"
for name in somewhere table; do
	equal "half of them go on elsewhere, without a value: ends_$name" \
		"[400,$((4 * 2550)),$sum]" "$(row "ends_$name" n value argument)"
done
flags=$(row ends_o n argument)
for name in $conditions; do
	equal "by flags: ends_$name" "$flags" "$(row "ends_$name" n argument)"
done
equal "their number" 128 "$(jq '.[0]' <<<"$flags")"
equal "of calls that end by their first instruction" "[400,0,$sum,0]" \
	"$(row ends_thunk n value argument most)"
equal "durations" true "$(jq 'select(.type == "row" and .final and .values.Key == "ends_call").values |
	.least < 10000000 and .most >= 20000000 and .most < 290000000' "$work/trace.json")"

trace -p "$target" 'cluster.Return("traps_ends_target!ends_call").Count(r => r.Arg(0) % 2 == 0)'
say "left 1000" left
say "left 1000" left
end_trace
equal "of calls that are left in between" 1000 "$(final_sum Count)"

# --- each trap is an open file
ulimit -Sn 64
trace -p "$target" "$by_name"
contains "with few files allowed" "$work/trace.err" "fay: 24 of them through traps in the kernel"
end_trace

# --- two traces of one function; gone with the first, the second is possible
trace -p "$target" 'cluster.Return("traps_ends_target!ends_call").Count()'
exits "under another trace's traps" 1 "$FAY" trace -p "$target" \
	'cluster.Return("traps_ends_target!ends_call").Count()'
contains "the reason" "$work/err" "has another tracer's trap at +0x"
end_trace
equal "text after all" "$before" "$(text_hash "$target")"

# --- killed
trace -p "$target" "$by_name"
kill -KILL "$tracer"
wait "$tracer" || true
is_back() { [ "$(text_hash "$target")" = "$before" ]; }
"$FAY" doctor --clean >"$work/out" 2>&1 || true
await "the text comes back after kill -9" is_back

# --- on and off while it runs
echo "run 4 20000" >&9
for _ in $(seq 4); do
	trace -p "$target" 'cluster.Return("traps_ends_target!ends_*").Max(r => r.Duration)'
	kill -INT "$tracer"
	ended "$tracer"
done
wait_for "$work/target.out" ran 4
equal "text after that" "$before" "$(text_hash "$target")"

# --- where it cannot be
refused() { # WHAT TEXT OPTIONS... QUERY
	local what=$1 text=$2
	shift 2
	exits "$what" 1 "$FAY" trace -p "$target" "$@"
	contains "$what: the reason" "$work/err" "$text"
}
refused --only-inline "has no room for a jump at" --only-inline \
	'cluster.Return("traps_ends_target!ends_call").Count()'
refused "data that look like code that nothing leads to" "; nor by traps in the kernel, since it \
may have data in it" 'cluster.Return("traps_ends_target!reads_data").Count()'
refused "no exit" "abort cannot be traced: it has no exit: it never returns" \
	'cluster.Return("libc!abort").Count()'
refused "exceptions" "has no room for a jump at" \
	'cluster.Return("traps_ends_target!ends_call").Count(r => r.Failed)'
trace --budget 5% -p "$target" 'cluster.Return("traps_ends_target!ends_recursive").Max(r => r.Duration)'
echo "run 1 1000000" >&9
wait_for "$work/trace.err" "not traced any more: traps_ends_target!ends_recursive: its traps took about"
end_trace
equal "a function that was given up" 1 \
	"$(jq -s 'map(select(.type == "end"))[0].traps_left_out' "$work/trace.json")"
end_target
