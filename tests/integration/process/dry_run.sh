#!/usr/bin/env bash
# --dry-run: the probe is verified, processes and functions are found, the cost is predicted; nothing
# stays in the program, and nothing is traced.
. "$(dirname "$0")/../lib.sh"
unset FAY_BUDGET
hot='cluster.Function("budget_target!hot").Count()'
dry() { # EXIT-CODE ARGUMENT...
	local want=$1 code=0
	shift
	timeout 60 "$FAY" trace --dry-run "$@" >"$work/dry" 2>"$work/dry.err" </dev/null || code=$?
	equal "fay trace --dry-run $* exits with" "$want" "$code"
}
says() { contains "$1" "$work/dry" "$2"; }
of() { jq "$1" "$work/dry"; }
start_target ready "$BUDGET_TARGET"
echo >&9
rest 2

dry 0 -p "$target" "$hot"
says "the process" "process $target (budget_target)"
says "the function" "  budget_target!hot: "
says "how many" "would trace 1 function in 1 process"
says "the cost" "% of the processor time"
says "the proof" "the probe is accepted: at most "
says "the end" "nothing is installed any more"
equal "the program's text" "$before" "$(text_hash "$target")"
equal "nothing mapped" 0 "$(grep -c memfd:fay- "/proc/$target/maps" || true)"

dry 0 --json -p "$target" "$hot"
equal "the type" '"dry_run"' "$(of .type)"
equal "a busy function takes much" true "$(of '.share > 0.05 and .call_ns > 0')"
equal "its function" "[\"budget_target!hot\",$target,true]" \
	"$(of '.functions[0] | [.function, .pid, .calls > 1000]' | jq -c .)"
equal "the worst case" true "$(of '.worst_instructions > 0 and .certified == false')"
dry 0 --json -p "$target" 'cluster.Function("budget_target!*").Count()'
equal "each function that is asked for" true "$(of '.functions | length > 1')"
equal "the busiest first" '"budget_target!hot"' "$(of '.functions[0].function')"
equal "the program's text" "$before" "$(text_hash "$target")"

# An image that is accepted, one that is refused, what is not there, and what does not go together.
as -o "$work/o" "$(dirname "$0")/../../../examples/images/hostile.S"
ld -shared -nostdlib -z now -z noexecstack --build-id=none -o "$work/hostile.fay" "$work/o"
dry 1 -p "$target" --probe "$work/hostile.fay"
contains "a refused image" "$work/dry.err" "MEM-BOUNDS"
equal "and no result" 0 "$(wc -c <"$work/dry")"
dry 2 -p "$target" 'cluster.Function("budget_target!nothing").Count()'
dry 2 'cluster.Function("budget_target!hot").Count()'
dry 2 "$hot" -- true
dry 2 --csv -p "$target" "$hot"
dry 2 --save "$work/saved" -p "$target" "$hot"
! "$FAY" trace --dry-run 'cluster.Tracepoint("sched:sched_switch").Count()' >"$work/dry" 2>&1 ||
	fail "a dry run of the kernel's events"
exits "saved events" 0 "$FAY" trace --for 100ms --budget none --save "$work/saved" -p "$target" \
	'cluster.Function("budget_target!hot")'
exits "a dry run of saved events" 2 "$FAY" trace --dry-run "file(\"$work/saved\").Count()"
contains "why not" "$work/err" "is for functions of programs"

kill -STOP "$target"
dry 0 --json -p "$target" "$hot"
equal "an idle program: not known" true "$(of '.share == null and .calls == 0')"
kill -CONT "$target"
echo >&9
wait_for "$work/target.out" "hot "
equal "the program's text" "$before" "$(text_hash "$target")"
echo >&9
end_target
