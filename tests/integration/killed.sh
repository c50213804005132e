#!/usr/bin/env bash
# fay is killed with SIGKILL while it traces: the program goes on rightly, the doctor shows it, the next fay cleans up.
. "$(dirname "$0")/lib.sh"
start_target ready "$TARGET" 2 100000
query='cluster.Function("threads_target!work").Count()'
kill_fay() {
	trace -p "$target" "$query"
	kill -9 "$tracer"
	ended "$tracer" 2>/dev/null || true
}

# What the doctor says of the program's session; other programs may have some, too.
state() { { "$FAY" doctor --json || true; } | jq -r --argjson pid "$target" 'select(.type == "session" and .pid == $pid) | .state'; }

kill_fay
[ "$(text_hash "$target")" != "$before" ] || fail "killed fay had patched nothing"
"$FAY" doctor >"$work/doctor" || true
contains "the doctor names the process" "$work/doctor" " $target"
equal "the session of a killed fay" dead "$(state)"
trace -p "$target" "$query"
contains "the next fay says what it removed" "$work/trace.err" "process $target: removed 1 session of a fay that was killed"
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
