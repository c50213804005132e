#!/usr/bin/env bash
# fay is killed with SIGKILL while it traces: the program goes on rightly, the doctor shows it, the
# next fay cleans up. What a fay that ended as it should leaves mapped is not taken for that.
. "$(dirname "$0")/../lib.sh"
start_target ready "$TARGET" 2 100000
query='cluster.Function("threads_target!work").Count()'
kill_fay() {
	trace -p "$target" "$query"
	kill -9 "$tracer"
	ended "$tracer" 2>/dev/null || true
}

# What the doctor says of the program's session; other programs may have some, too.
state() {
	{
		"$FAY" doctor --json || true
	} | jq -r --argjson pid "$target" 'select(.type == "session" and .pid == $pid) | .state'
}

kill_fay
[ "$(text_hash "$target")" != "$before" ] || fail "killed fay had patched nothing"
"$FAY" doctor >"$work/doctor" || true
contains "the doctor names the process" "$work/doctor" " $target"
equal "the session of a killed fay" dead "$(state)"
trace -p "$target" "$query"
contains "the next fay says what it removed" "$work/trace.err" \
	"process $target: removed 1 session of a killed fay"
equal "a session of a fay that runs is no leftover" lives "$(state)"
echo >&9
wait_for "$work/target.out" done
end_trace
equal "calls counted" 200000 "$(final_sum Count)"
equal "text after" "$before" "$(text_hash "$target")"

kill_fay
kill_fay
"$FAY" doctor --clean >"$work/doctor" 2>"$work/err"
contains "what was removed" "$work/err" "process $target: removed 1 session"
! grep -q "process $target" "$work/doctor" || fail "the doctor finds something left"
equal "text after" "$before" "$(text_hash "$target")"
end_target

returns='cluster.Return("killed_left_target!leave").Count()'
start_target ready "$(dirname "$FAY")/killed_left_target"
trace -p "$target" "$returns"
echo >&9
wait_for "$work/target.out" called
end_trace
contains "a trace says that it leaves memory mapped" "$work/trace.err" \
	"process $target: memory of the trace stays mapped"
equal "text after" "$before" "$(text_hash "$target")"
trace -p "$target" "$returns"
end_trace
contains "it is left while a thread may be inside" "$work/trace.err" \
	"process $target: left 1 session mapped that an earlier trace had left"
echo >&9
wait_for "$work/target.out" gone
trace -p "$target" "$returns"
contains "the next fay says what it removed" "$work/trace.err" \
	"process $target: removed 1 session left mapped by an earlier trace"
end_trace
! grep "stays mapped" "$work/trace.err" || fail "memory stays mapped though nobody is inside"
end_target
