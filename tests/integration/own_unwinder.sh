#!/usr/bin/env bash
# Libraries that have an unwinder of their own linked in: exceptions pass through watched calls if it has a symbol; if not the ends of calls are not watched, and that is said.
. "$(dirname "$0")/lib.sh"
bin=$(dirname "$FAY")
library=$(find "$bin/.." -name libown_unwinder.so | head -1)
mkdir "$work/stripped"
strip -o "$work/stripped/libown_unwinder.so" "$library" || skip "strip is not installed"
returns='cluster.Return("*own_unwinder*!own_*").Count()'
calls() { printf '\n' >&9; wait_for "$work/target.out" "7 7" "$1"; }

start_target loaded "$bin/own_unwinder_target" "$library"
calls 1
trace -p "$target" "$returns"
calls 2
end_trace
equal "returns beside exceptions" 2 "$(final_sum Count)"
equal "text after" "$before" "$(text_hash "$target")"
calls 3
end_target

start_target loaded "$bin/own_unwinder_target" "$work/stripped/libown_unwinder.so"
exits "returns with an unwinder without symbols" 1 timeout -k 5 60 "$FAY" trace -p "$target" "$returns"
contains "says why" "$work/err" "an unwinder that is linked in and has no symbols (in libown_unwinder)"
trace -p "$target" 'cluster.Function("libown_unwinder!own_*").Count()'
calls 1
end_trace
equal "entries" 5 "$(final_sum Count)"
end_target

# Loaded while the program's own calls are watched.
for file in "$library" "$work/stripped/libown_unwinder.so"; do
	start_target ready "$bin/own_unwinder_target" "$file" later
	trace -p "$target" 'cluster.Return("own_unwinder_target!pass_on").Count()'
	echo >&9
	wait_for "$work/target.out" loaded
	calls 1
	contains "a library that is loaded later" "$work/trace.err" "has loaded an unwinder of its own: the ends of calls of 1 function are watched no longer"
	end_trace
	end_target
done
