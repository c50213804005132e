#!/usr/bin/env bash
# Traps in what comes later: children that are forked, programs that are executed, processes of a
# name, modules that are loaded, unloaded and loaded again; no call is missed, and nothing stays.
host=1
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../functions/say_lib.sh"
bin=$(dirname "$TARGET")
program=$bin/traps_target
plugin=$bin/traps_plugin.so
needs_bpf
by_name='from c in cluster.Function("traps_target!traps_*") group c by c.function into g
	select new { g.Key, n = g.Count(), sum = g.Sum(x => x.Arg(0)), most = g.Max(x => x.Arg(0)) }'
# from_start WHAT OPTION... -- COMMAND...: a command that is traced from its start
from_start() {
	local what=$1 code=0
	shift
	"$FAY" trace --json "$@" >"$work/all.json" 2>"$work/trace.err" || code=$?
	[ "$code" = 0 ] || { cat "$work/trace.err" >&2; fail "$what: fay exited with $code"; }
	grep '^{' "$work/all.json" >"$work/trace.json"
	equal "$what: events lost" 0 \
		"$(jq -s 'map(select(.type == "end"))[0].events_lost' "$work/trace.json")"
}
calls_are() { # WHAT CALLS NAME...
	local what=$1 n=$2 name
	shift 2
	for name in "$@"; do equal "$what: $name" "[$n]" "$(row "$name" n)"; done
}
all="traps_nothing traps_next traps_inside traps_nearby"

# --- --follow: forked, executed, both; what the program itself does goes on
printf 'run 2 100\nfork 50\nfork 7\nexecute 30\nrun 1 5\n' |
	from_start "a child, and another program" --follow "$by_name" -- "$program"
calls_are "forked and executed" $((200 + 50 + 7 + 30 + 5)) $all
equal "arguments" "[$((2 * 5050 + 1275 + 28 + 465 + 15)),100]" "$(row traps_next sum most)"
from_start "a shell's children" --follow "$by_name" -- sh -c \
	"'$program' 10 </dev/null; (exec '$program' 200 </dev/null) & '$program' 3000 </dev/null; wait"
calls_are "a shell's" 3210 $all
from_start "eight at once" --follow "$by_name" -- sh -c \
	"for i in 1 2 3 4 5 6 7 8; do echo 'fork 20' | '$program' 10 & done; wait"
calls_are "of eight" 240 $all
printf 'run 4 100\nfork 30\nfork 40\n' | from_start "durations" --follow \
	'from r in cluster.Return("traps_ends_target!ends_[cr]*") group r by r.function into g
	select new { g.Key, n = g.Count(d => d.Duration < 10000000000), sum = g.Sum(x => x.Arg(0)) }' \
	-- "$bin/traps_ends_target"
equal "durations, arguments" "[470,$((4 * 5050 + 465 + 820))]" "$(row ends_call n sum)"
equal "by recursion" "[$((6 * 470)),$((15 * 470))]" "$(row ends_recursive n sum)"

# --- a server that is there, and its children from now on
start_target ready "$program"
clean=$before # processes of a name may be traced before this is looked at
trace --follow -p "$target" "$by_name"
say "run 1 10" ran
say "fork 1000" forked
say "fork 1" forked
end_trace
calls_are "of a process that was there" 1011 $all
say "run 1 10" ran
equal "text after" "$clean" "$(text_hash "$target")"

# --- modules that come later
later='from c in cluster.Function("traps_*!traps_*") group c by c.function into g
	select new { g.Key, n = g.Count(), sum = g.Sum(x => x.Arg(0)) }'
for options in "" --follow --wait; do
	trace $options -p "$target" "$later"
	for n in 100 20 3; do say "load $n $plugin" loaded; done
	say "run 1 5" ran
	end_trace
	calls_are "loaded later, $options" 123 traps_later traps_behind_later traps_called
	equal "arguments, $options" "[$((5050 + 210 + 6))]" "$(row traps_later sum)"
	calls_are "beside, $options" 5 traps_next traps_nearby
done
trace --wait -p "$target" 'cluster.Function("traps_plugin!traps_later").Count()'
contains "nothing yet" "$work/trace.err" "tracing nothing yet, waiting for modules"
for n in 1000 1; do say "load $n $plugin" loaded; done
end_trace
equal "a module that was waited for, without any jump" 1001 "$(final_sum Count)"
trace --wait -p "$target" 'cluster.Return("traps_plugin!traps_called").Max(r => r.ReturnValue)'
say "load 77 $plugin" loaded
end_trace
equal "returns there" 77 "$(final_sum Max)"
equal "text after all" "$clean" "$(text_hash "$target")"
end_target

# --- --comm NAME --wait
trace --comm traps_target --wait 'cluster.Function("traps_target!traps_n*").Count()'
start_target ready "$program"
await "process $target is traced" grep -qw "in process $target" "$work/trace.err"
say "run 2 100" ran
end_target
start_target ready "$program"
await "process $target is traced" grep -qw "in process $target" "$work/trace.err"
say "run 1 50" ran
end_trace
equal "of those that came" $((3 * 250)) "$(final_sum Count)"
equal "text after" "$clean" "$(text_hash "$target")"
end_target

# --- what is too dear is given up, for those that come later, too
exits "given up" 0 "$FAY" trace --budget 5% --follow \
	'cluster.Function("traps_target!traps_nothing").Count()' -- sh -c \
	"'$program' 300000 </dev/null; '$program' 10 </dev/null; '$program' 10 </dev/null"
equal "once" 1 "$(grep -c "not traced any more: traps_target!traps_nothing" "$work/err")"

# --- more functions of libc than a program waits for traps at
exits "all of libc" 0 "$FAY" trace --follow 'cluster.Function("libc!*").Count()' -- \
	sh -c '/bin/true; /bin/true' </dev/null
equal "what comes later has no traps: said once" 1 "$(grep -c "no more than 4 such" "$work/err")"

# --- killed while children come and go
start_target ready "$program"
trace --follow -p "$target" "$by_name"
for _ in 1 2 3 4; do echo "fork 100" >&9; done
wait_for "$work/target.out" forked
kill -KILL "$tracer"
wait "$tracer" || true
wait_for "$work/target.out" forked 4
say "run 1 10" ran
"$FAY" doctor --clean >"$work/out" 2>&1 || true
is_back() { [ "$(text_hash "$target")" = "$clean" ]; }
await "the text comes back after kill -9" is_back
end_target
