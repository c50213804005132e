#!/usr/bin/env bash
# Places where no jump fits are traced by traps in the kernel: exact in threads, beside jumps in one
# result; not in children, nor in what the program executes; with arguments, strings, semaphores;
# gone afterwards, also after kill -9; and refused with the reason where they cannot be.
host=1
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/say_lib.sh"
bin=$(dirname "$TARGET")
needs_bpf
start_target ready "$bin/traps_target"
say "run 4 100" ran
right=$answer

# --- functions: jumps and traps in one result
by_name='from c in cluster.Function("traps_target!traps_*") group c by c.function into g
	select new { g.Key, n = g.Count(), sum = g.Sum(x => x.Arg(0)), most = g.Max(x => x.Arg(0)) }'
trace --verbose -p "$target" "$by_name"
for name in nothing next inside; do
	contains "traps_$name by a trap" "$work/trace.err" "traced by a trap: traps_target!traps_$name:"
done
contains "a loop back to the start is not" "$work/trace.err" \
	"not traced: traps_target!traps_again: has a loop back to its first instruction"
contains "how many" "$work/trace.err" "fay: 3 of them through traps in the kernel"
contains "in all" "$work/trace.err" "fay: tracing 8 functions in 1 process"
say "run 4 100" ran
equal "the program's own result" "$right" "$answer"
say "run 8 1000" ran
end_trace
n=$((4 * 100 + 8 * 1000)) sum=$((4 * 5050 + 8 * 500500))
for name in nothing next inside nearby asked close; do
	equal "calls of traps_$name" "[$n]" "$(row "traps_$name" n)"
done
for name in next inside nearby asked close; do
	equal "arguments of traps_$name" "[$sum,1000]" "$(row "traps_$name" sum most)"
done
equal "traps, as JSON" 3 "$(jq -s 'map(select(.type == "end"))[0].traps' "$work/trace.json")"
equal "text after" "$before" "$(text_hash "$target")"

# --- one value, rows, a condition, who calls
trace -p "$target" 'cluster.Function("traps_target!traps_next").Count(c => c.Arg(0) % 2 == 0)'
contains "nothing but a trap" "$work/trace.err" "fay: tracing 1 function in 1 process"
equal "no jump, no memory of fay's" 0 "$(grep -c memfd:fay- "/proc/$target/maps" || true)"
say "run 2 100" ran
end_trace
equal "even numbers" 100 "$(final_sum Count)"
trace -p "$target" 'from c in cluster.Function("traps_target!traps_next")
	where c.Arg(0) > 98 && c.module == "traps_target"
	select new { n = c.Arg(0), own = c.pid, thread = c.tid != c.pid, c.comm, c.Caller,
		now = c.time > Now.AddMinutes(-1) && c.time < Now.AddMinutes(1) }'
say "run 1 100" ran
end_trace
equal "rows" "[99,$target,true,\"traps_target\",true]
[100,$target,true,\"traps_target\",true]" \
	"$(jq -c 'select(.type == "row").values | [.n, .own, .thread, .comm, .now]' \
		"$work/trace.json")"
contains "the caller" "$work/trace.json" '"Caller":"traps_target!run+0x'
trace -p "$target" 'cluster.Function("traps_target!traps_inside").Histogram(c => c.Arg(0))'
say "run 4 7" ran
end_trace
equal "a histogram" '[4,8,16]' "$(jq -c 'select(.type == "row" and .final).values.Histogram |
	map(.count)' "$work/trace.json")"

# --- markers: operands, strings, semaphores
trace -p "$target" 'from m in cluster.Usdt("traps_target!forms:switch")
	group m by new { text = m.Arg(1).Text, e = m.Arg(3), f = m.Arg(5) } into g
	select new { g.Key, n = g.Count(), a = g.Sum(x => x.Arg(0)), c = g.Sum(x => x.Arg(2)),
		d = g.Max(x => x.Arg(4)) }'
say "run 4 100" ran
equal "the program's own result" "$right" "$answer"
end_trace
equal "arguments of a marker" '["an even one",7,1000000007,200,-10200,-10200,254]
["an odd one",7,1000000007,200,-10000,-10000,255]' \
	"$(jq -c 'select(.type == "row" and .final).values | [.text, .e, .f, .n, .a, .c, .d]' \
		"$work/trace.json" | sort)"
semaphore "at first" 0
trace -p "$target" 'cluster.Usdt("traps_target!forms:asked").Sum(m => m.Arg(0))'
semaphore "while traced" 1
say "run 4 100" ran
end_trace
equal "a marker that asks for its semaphore" 20200 "$(final_sum Sum)"
semaphore "after" 0

# --- no trap inside a jump, nor a jump over a trap; gone with the other, each can be set
trace -p "$target" 'cluster.Function("traps_target!traps_close").Count()'
other=$tracer
mv "$work/trace.json" "$work/other.json"
exits "a trap inside another trace's jump" 1 "$FAY" trace -p "$target" \
	'cluster.Usdt("traps_target!forms:close").Count()'
contains "the reason" "$work/err" "traps_target!forms:close cannot be traced"
say "run 4 100" ran
equal "the program's own result" "$right" "$answer"
kill -INT "$other"
ended "$other"
equal "the jump's calls" 400 "$(jq 'select(.type == "row" and .final).values.Count' "$work/other.json")"
# the programs of traps are made before jumps count, and set behind them
trace --timing -p "$target" 'cluster.Function("traps_target!traps_*").Count()'
end_trace
equal "what is done in which order" "make traps, find and attach, set traps" \
	"$(sed -n 's/^  \(make traps\|find and attach\|set traps\) .*/\1/p' "$work/trace.err" |
		paste -sd, | sed 's/,/, /g')"
trace -p "$target" 'cluster.Usdt("traps_target!forms:close").Count()'
contains "a trap once the jump is gone" "$work/trace.err" "fay: 1 of them through traps"
exits "a jump over another trace's trap" 1 "$FAY" trace -p "$target" \
	'cluster.Function("traps_target!traps_close").Count()'
contains "the reason" "$work/err" "traps_target!traps_close cannot be traced: it "
say "run 4 100" ran
equal "the program's own result" "$right" "$answer"
end_trace
equal "the trap's events" 400 "$(final_sum Count)"
equal "text after both" "$before" "$(text_hash "$target")"

# --- children, and what is executed, are others
trace -p "$target" "$by_name"
say "run 1 10" ran
say "fork 1000" forked
say "run 1 10" ran
end_trace
for name in nothing next nearby; do
	equal "without the child's: traps_$name" "[20]" "$(row "traps_$name" n)"
done
for query in "$by_name" 'cluster.Function("traps_target!traps_next").Count()'; do
	start_target ready "$bin/traps_target"
	trace -p "$target" "$query"
	say "run 1 10" ran
	had=$(grep -c ready "$work/target.out")
	echo "execute 1000" >&9
	wait_for "$work/target.out" ready $((had + 1))
	ended "$tracer"
	contains "that it executed" "$work/trace.err" "replaced its program (execve)"
	equal "without what it executed" 10 "$(jq -s 'map(select(.type == "row" and .final).values |
		select(.Key == "traps_next" or .Count) | .n // .Count) | add' "$work/trace.json")"
done

start_target ready "$bin/traps_target"
trace -p "$target" "$by_name"
say "run 1 10" ran
say "leave 7" left
end_trace
# perf events end with the first thread, which is said; links do not
n=17
! grep "process $target: its first thread has ended, and its traps with it" "$work/trace.err" || n=10
equal "once the first thread has ended" "[$n]" "$(row traps_next n)"
equal "by jumps" "[17]" "$(row traps_nearby n)"

# --- only some threads; two processes; a command
start_target ready "$bin/traps_target"
first=$target
exec 8>&9
mv "$work/target.out" "$work/first.out"
start_target ready "$bin/traps_target"
trace -p "$first" -p "$target" 'from c in cluster.Function("traps_target!traps_next")
	group c by c.pid into g select new { g.Key, n = g.Count() }'
contains "two processes" "$work/trace.err" "fay: tracing 2 functions in 2 processes"
say "run 2 100" ran
echo "run 1 50" >&8
wait_for "$work/first.out" ran
end_trace
equal "calls by process" "$(printf '[%s]\n' "$first,50" "$target,200" | sort)" \
	"$(jq -c 'select(.type == "row" and .final).values | [.Key, .n]' "$work/trace.json" | sort)"
exec 8>&-
trace --tid "$target" 'cluster.Function("traps_target!traps_next").Count()'
say "run 2 100" ran
end_trace
equal "of a thread that calls nothing" 0 "$(final_sum Count)"
echo "run 2 100" | "$FAY" trace --json 'cluster.Function("traps_target!traps_n*").Count()' -- \
	"$bin/traps_target" 2>"$work/trace.err" | grep '^{' >"$work/trace.json"
equal "of a command" 600 "$(final_sum Count)"

# --- on and off while it runs, and killed
echo "run 4 300000" >&9
for _ in $(seq 10); do
	trace -p "$target" 'cluster.Function("traps_target!traps_n*").Count()'
	end_trace
done
wait_for "$work/target.out" ran 2
before_kill=$(text_hash "$target")
trace -p "$target" 'cluster.Usdt("traps_target!forms:*").Count()'
kill -KILL "$tracer"
wait "$tracer" || true
is_back() { [ "$(text_hash "$target")" = "$before_kill" ]; }
await "the text comes back after kill -9" is_back
semaphore "after kill -9" 0

# --- where it cannot be
refused() { # WHAT TEXT OPTIONS... QUERY
	local what=$1 text=$2
	shift 2
	exits "$what" 1 "$FAY" trace -p "$target" "$@"
	contains "$what: the reason" "$work/err" "$text"
}
next='cluster.Function("traps_target!traps_next").Count()'
refused --only-inline "is 4 bytes long, a jump needs 5" --only-inline "$next"
refused cycles "is 4 bytes long, a jump needs 5" \
	'cluster.Function("traps_target!traps_next").Sum(c => c.cycles)'
refused "a loop back" "has a loop back to its first instruction" \
	'cluster.Function("traps_target!traps_again").Count()'
"$FAY" trace --only-inline --verbose --for 100ms -p "$target" "$by_name" >"$work/out" 2>"$work/err"
contains "the others with --only-inline" "$work/err" "not traced: traps_target!traps_next:"

# What is called all the time is given up, unless one wants to pay for it.
trace --budget 5% -p "$target" 'cluster.Function("traps_target!traps_nothing").Count()'
echo "run 1 3000000" >&9
wait_for "$work/trace.err" "not traced any more: traps_target!traps_nothing: its traps took about"
end_trace
equal "a trap that was given up" 1 \
	"$(jq -s 'map(select(.type == "end"))[0].traps_left_out' "$work/trace.json")"
"$FAY" explain --json -p "$target" "$by_name" >"$work/plan.json"
equal "planned" '["traps_target!traps_inside","traps_target!traps_next","traps_target!traps_nothing"]' \
	"$(jq -sc 'map(select(.type == "not_traced" and .trap).function) | sort' "$work/plan.json")"

# A user may patch his own program, but set no traps.
copy_fay
cp "$bin/traps_target" "$work/bin/"
chmod 755 "$work/bin/traps_target"
as_user=(setpriv --reuid=nobody --regid=nogroup --clear-groups)
start_target ready "${as_user[@]}" "$work/bin/traps_target"
runs "$target" traps_target
"${as_user[@]}" "$work/bin/fay" trace --json --for 200ms -p "$target" "$by_name" >"$work/out" 2>"$work/err"
contains "a user's own functions" "$work/err" "fay: tracing 5 functions in 1 process"
contains "but no traps" "$work/err" "not permitted; BPF needs root, or CAP_BPF and CAP_PERFMON"
exits "a trap for a user" 1 "${as_user[@]}" "$work/bin/fay" trace -p "$target" "$next"
contains "the reason" "$work/err" "not permitted; BPF needs root, or CAP_BPF and CAP_PERFMON"
end_target
