#!/usr/bin/env bash
# Entry, return and exception probes with exact counts, whatever becomes of the calls: see
# calls_target.cc, whose own tally is what is compared with.
. "$(dirname "$0")/../lib.sh"
here=$(cd "$(dirname "$0")" && pwd)
bin=$(dirname "$TARGET")

make_probe() { # PROGRAM
	sed "s/PROGRAM/$1/" "$here/calls.c" >"$work/$1.c"
	"$FAY" cc "$work/$1.c" -o "$work/$1.fay" || fail "the probe for $1 does not compile"
}
value() {
	grep '^{' "$work/out" | jq -s --arg c "$1" \
		'[.[] | select(.type == "row" and .final) | .values[$c] // empty | numbers] |
			add // 0'
}
ending() { grep '^{' "$work/out" | jq -s "map(select(.type == \"end\"))[0].$1"; }
# run PROGRAM LABEL ARGUMENTS...: under trace; the program's tally into e, r, x
run() {
	local program=$1
	shift
	"$FAY" trace --json ${FAY_TRACE_OPTIONS:-} --probe "$work/$program.fay" -- "$bin/$program" \
		"$@" >"$work/out" 2>"$work/err" ||
		{ cat "$work/out" "$work/err"; fail "$program $*"; }
	read -r e r x < <(grep -v '^{' "$work/out" | tail -1) || {
		cat "$work/err"
		fail "$program $*: no tally"
	}
}
exact() {
	run "$@"
	equal "$* entries, returns, exceptions" "$e $r $x" \
		"$(value entries) $(value returns) $(value exceptions)"
	equal "$* lost" 0 "$(ending events_lost)"
}

make_probe calls_target
for scenario in values recursion tail exceptions mirror coroutines migration thread_exit forks \
	processes threads exit exec; do
	exact calls_target $scenario
done
exact calls_target uncaught
contains "a child's std::terminate" "$work/err" "forked children"
# Calls that longjmp has left, or that went with their stacks, are noticed when their place on the
# stack is used again: all but the last ones.
noticed() { # AT-MOST-NOT ARGUMENTS...
	local last=$1
	shift
	run "$@"
	equal "$* entries, returns" "$e $r" "$(value entries) $(value returns)"
	equal "$* lost" 0 "$(ending events_lost)"
	local seen
	seen=$(value exceptions)
	[ "$seen" -le "$x" ] && [ "$seen" -ge $((x - last)) ] ||
		fail "$* exceptions: $seen, not $last less than $x at most"
	echo "ok: $* exceptions: $seen of $x"
}
noticed 4 calls_target jumps
noticed 1 calls_target signals

run calls_target deep
equal "calls too deep: entries" "$e" "$(value entries)"
equal "calls too deep: returns and lost ones" "$r" $(($(value returns) + $(ending lost_calls)))

run calls_target timer
lost=$(ending lost_reentrant)
equal "interrupted: entries and lost ones" "$e" $(($(value entries) + lost))
equal "interrupted: returns, exceptions and lost ones" "$((r + x))" \
	$(($(value returns) + $(value exceptions) + lost + $(ending lost_calls)))

make_probe calls_c_target
noticed 3 calls_c_target
exact calls_c_target crowd
noticed 3 calls_c_target again
# More stacks than there is room for records: what lies on those that are gone makes room, and
# counts as lost.
run calls_c_target bottom
equal "stacks that are gone: entries" "$e" "$(value entries)"
[ "$(value returns)" -le "$r" ] && [ $(($(value returns) + $(ending lost_calls))) -ge "$r" ] ||
	fail "stacks that are gone: $(value returns) returns of $r, $(ending lost_calls) lost"
make_probe calls_static_target
for scenario in values tail exceptions threads forks; do
	exact calls_static_target $scenario
done

# Calls that return in another thread, or are left there by exceptions, and coroutines that switch
# by longjmp.
make_probe switched_target
exact switched_target stolen
noticed 3 switched_target thrown
noticed 2 switched_target jumped

# A signal at each instruction of a call, whose handler unwinds inside itself. First the probes of
# before, which keep handlers' calls out while they run; then probes that let them in.
make_probe stepped_target
for mode in throw throw-again throw-caught jump jump-caught return switch; do
	run stepped_target $mode
	lost=$(ending lost_reentrant)
	equal "stepped, $mode: entries and lost ones" "$e" $(($(value entries) + lost))
	missing=$((r + x - $(value returns) - $(value exceptions) - lost))
	case $mode in
	jump) last=7 ;; # longjmp, as above
	jump-caught) last=3 ;;
	*) last=0 ;;
	esac
	[ $missing -ge 0 ] && [ $missing -le $last ] ||
		fail "stepped, $mode: $missing calls did not end"
done
for mode in full-return full-unwind; do
	run stepped_target $mode
	lost=$(ending lost_reentrant)
	[ "$(value entries)" -le "$e" ] && [ $(($(value entries) + lost)) -ge "$e" ] ||
		fail "stepped, $mode: $(value entries) entries and $lost lost of $e"
	missing=$((r + x - $(value returns) - $(value exceptions) - lost - $(ending lost_calls)))
	# those that the last longjmp has left
	[ $missing -ge 0 ] && [ $missing -le 4200 ] ||
		fail "stepped, $mode: $missing calls did not end"
done
sed -i '/EXCEPTION/,/^}/d; /hist/Id; /exceptions/d' "$work/stepped_target.c"
"$FAY" cc "$work/stepped_target.c" -o "$work/stepped_target.fay" ||
	fail "the probe without exceptions does not compile"
for mode in throw throw-again throw-caught jump jump-caught return; do
	run stepped_target $mode
	equal "stepped, $mode: entries and returns" "$e $r" "$(value entries) $(value returns)"
	equal "stepped, $mode: lost" 0 "$(ending events_lost)"
done

# A session that begins and ends while calls are under way: they return to their callers, and the
# text is as it was.
mkfifo "$work/in"
"$bin/calls_target" waiting <"$work/in" >"$work/waiting" &
target=$!
own "$target"
exec 8>"$work/in"
wait_for "$work/waiting" waiting
before=$(text_hash "$target")
unwinder=$(text_hash "$target" libc.so.6)
trace -p "$target" --probe "$work/calls_target.fay"
echo >&8
wait_for "$work/waiting" waiting 2
first=$tracer
cp "$work/trace.json" "$work/first.json"
# A second one on top, which leaves after the first: chains of watched calls.
"$FAY" trace --json ${FAY_TRACE_OPTIONS:-} -p "$target" --probe "$work/calls_target.fay" \
	>"$work/second.json" 2>"$work/second.err" &
second=$!
own "$second"
wait_for "$work/second.err" "fay: tracing"
kill -INT "$first"
ended "$first" || fail "the first trace"
equal "entries seen by the first" 2 "$(final_sum entries)"
kill -INT "$second"
ended "$second" || fail "the second trace"
equal "text after both" "$before" "$(text_hash "$target")"
equal "libc's text after both" "$unwinder" "$(text_hash "$target" libc.so.6)"
equal "mappings left" 0 "$(grep -c fay-code "/proc/$target/maps" || true)"
echo >&8
ended "$target" || fail "the program did not survive"
contains "the program's own checks" "$work/waiting" good

# The same with calls of coroutines that switch by longjmp, one of which a longjmp seems to have
# left.
start_target ready "$bin/switched_target" waiting
trace -p "$target" --probe "$work/switched_target.fay"
echo >&9
wait_for "$work/target.out" half
end_trace
equal "switched: text" "$before" "$(text_hash "$target")"
equal "switched: mappings left" 0 "$(grep -c fay-code "/proc/$target/maps" || true)"
end_target

# A call whose return address is 0: that is put back, too.
start_target ready "$bin/calls_c_target" waiting
trace -p "$target" --probe "$work/calls_c_target.fay"
echo >&9
wait_for "$work/target.out" half
end_trace
equal "return address 0: mappings left" 0 "$(grep -c fay-code "/proc/$target/maps" || true)"
end_target
