#!/usr/bin/env bash
# Probes that belong to no function: begin, end, timer, thread begin and end; what is refused of
# each kind.
. "$(dirname "$0")/../lib.sh"
here=$(cd "$(dirname "$0")" && pwd)
bin=$(dirname "$TARGET")
"$FAY" cc "$here/kinds.c" -o "$work/kinds.fay" || fail "kinds.c does not compile"
value() {
	grep '^{' "$work/out" | jq -s --arg c "$1" \
		'[.[] | select(.type == "row" and .final) | .values[$c] // empty | numbers] |
			add // 0'
}

exits "8 threads, from the start" 0 "$FAY" trace --json ${FAY_TRACE_OPTIONS:-} \
	--probe "$work/kinds.fay" -- "$bin/calls_target" threads
equal "begin" 1 "$(value begins)"
equal "end" 1 "$(value ends)"
equal "thread ends" 8 "$(value thread_ends)"
equal "thread begins" 8 "$(value thread_begins)"
equal "the begin probe's row" calls_target \
	"$(grep '^{' "$work/out" | jq -r 'select(.type == "row" and .values.comm) | .values.comm' |
	head -1)"
exits "200 threads, half of them cancelled" 0 "$FAY" trace --json ${FAY_TRACE_OPTIONS:-} \
	--probe "$work/kinds.fay" -- "$bin/calls_target" thread_exit 200
equal "thread ends" 200 "$(value thread_ends)"

# A killed program: the end probe still runs, and nothing is lost.
mkfifo "$work/in"
"$bin/calls_target" waiting <"$work/in" >"$work/waiting" &
target=$!
own "$target"
exec 8>"$work/in"
wait_for "$work/waiting" waiting
trace --every 100ms -p "$target" --probe "$work/kinds.fay"
ticked() {
	[ "$(sed -n 's/.*"ticks":\([0-9]*\).*/\1/p' "$work/trace.json" | tail -1)" -ge 20 ] \
		2>/dev/null
}
await "20 ticks of 20 ms" ticked
kill -9 "$target"
ended "$tracer" || fail "the trace of a killed program"
cp "$work/trace.json" "$work/out"
equal "end after a kill" 1 "$(value ends)"
ticks=$(value ticks)
[ "$ticks" -ge 20 ] || fail "only $ticks ticks at the end"
echo "ok: timer"

refused() { # WHAT TEXT
	"$FAY" cc "$work/r.c" -o "$work/r.fay" || fail "$1 does not compile"
	exits "$1" 1 "$FAY" trace ${FAY_TRACE_OPTIONS:-} --probe "$work/r.fay" \
		-- "$bin/calls_target" values
	contains "$1 is explained" "$work/err" "$2"
}
source() { printf '#include <fay/probe.h>\nFAY_SUM(s);\n%s\n' "$1" >"$work/r.c"; }
# By an index that the compiler does not know, or it would refuse.
source 'FAY_ENTRY("calls_target!traced_pair") { fay_sum(&s, ((const uint64_t *)event)[6 + (event->cpu & 1)]); }'
refused "a return value at the entry" "only return probes have"
source 'FAY_THREAD_BEGIN() { fay_sum(&s, event->arg[event->cpu & 1]); }'
refused "an argument of no call" "reads event.arg"
source 'FAY_ENTRY("calls_target!traced_pair") { fay_sum(&s, ((const uint64_t *)event)[15 + (event->cpu & 1)]); }'
refused "a duration at the entry" "reads event.duration"
source 'FAY_BEGIN() { fay_sum(&s, 1); }'
refused "no place at all" "no probe at a patch point"
