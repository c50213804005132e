#!/usr/bin/env bash
# Functions that are hard to patch: each is counted exactly, or is left out with the reason; entries
# and returns, both strategies, dynamic, static and static-pie. debugger.sh has the same while a
# debugger stops and resumes the program.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/awkward_lib.sh"
bin=$(dirname "$FAY")
rounds=200
for program in awkward_target awkward_static_target awkward_static_pie_target; do
	start $program
	for kind in Function Return; do
		for share in 1 1000000; do
			trace_awkward $program $kind --verbose --share $share
			run $rounds
			end_trace
			counted "$program, $kind, shared from $share" $rounds
			equal "text of $program" "$before" "$(text_hash "$target")"
		done
	done
	contains "no room at an exit" "$work/trace.err" "by_retpoline: has no room for a jump"
	trace_awkward $program Function --verbose
	run 1
	end_trace
	contains "too short" "$work/trace.err" "short_crowded: is 4 bytes long"
	contains "a loop to within the first bytes" "$work/trace.err" \
		"loop_inside: has a jump into its first 5 bytes"
	contains "entered behind its first instruction" "$work/trace.err" \
		"entered_inside: is entered at"
	[ $program != awkward_static_target ] || for function in mentioned indexed; do
		contains "an address in it is a number elsewhere: $function" "$work/trace.err" \
			"$function: may be entered at +0x1 by what has its address"
	done
	run 1
done

# Calls through the procedure linkage table: the first one goes through the resolver; the table's
# entries have no names.
for kind in Function Return; do
	printf '3\n4\n' | "$FAY" trace --json "cluster.$kind(\"libc!fflush\").Count()" \
		-- "$bin/awkward_target" >"$work/trace.json" 2>"$work/trace.err"
	equal "$kind of what is called through the PLT" 3 \
		"$(jq -R 'fromjson? | select(.type == "row" and .final) |
			.values.Count' "$work/trace.json")"
done
exits "an entry of the PLT" 2 "$FAY" trace 'cluster.Function("awkward_target!fflush@plt").Count()' \
	-- "$bin/awkward_target" </dev/null
contains "its reason" "$work/err" 'trace the function called, e.g. `*!fflush`'

# The plan says beforehand what would be done to each function, and touches nothing.
start awkward_target
"$FAY" explain --json -p "$target" 'cluster.Function("awkward_target!*").Count()' >"$work/plan.json"
of_function() {
	jq -r --arg f "$1" \
		'select((.type == "point" and .function == $f) or (.type == "not_traced"
			and .function == "awkward_target!" + $f)) | .trampoline // .reason' \
		"$work/plan.json"
}
equal "planned for leaf" own "$(of_function leaf)"
equal "planned for short_crowded" "is 4 bytes long, a jump needs 5" "$(of_function short_crowded)"
equal "planned for the probe" inlined \
	"$(jq -r 'select(.type == "probe") | .strategy' "$work/plan.json")"
equal "mappings of fay's after planning" 0 "$(grep -c memfd:fay- "/proc/$target/maps" || true)"

# Two traces, the one below leaves first: jumps back to the start still count for nobody.
trace -p "$target" 'cluster.Function("awkward_target!loop_back_*").Count()'
lower=$tracer
mv "$work/trace.json" "$work/lower.json"
trace -p "$target" 'cluster.Function("awkward_target!loop_back_*").Count()'
run 10
kill -INT "$lower"
ended "$lower"
run 10
end_trace
equal "jumps back under two traces" 40 "$(final_sum Count)"
equal "text after both" "$before" "$(text_hash "$target")"
