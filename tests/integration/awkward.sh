#!/usr/bin/env bash
# Functions that are hard to patch: each is counted exactly, or is left out with the reason; entries and returns, both strategies, dynamic, static and static-pie, and
# while a debugger stops and resumes the program.
. "$(dirname "$0")/lib.sh"
bin=$(dirname "$FAY")
rounds=200
names='short_padded short_crowded crowding with_endbr tail_call leaf red_zone loop_back_far loop_back_end loop_inside loop_behind indirect
	retpoline by_retpoline plt_entry entered_inside enters variadic by_value deep chosen_body'
expected() { # TIMES: names and counts of those that can be traced
	for name in $names; do
		case $name in
		short_crowded | loop_inside | entered_inside) ;;
		leaf) echo "leaf $((5 * $1))" ;; # by itself, by a tail call, by an indirect call, by a retpoline, by a PLT's entry
		deep) echo "deep $((21 * $1))" ;;
		*) echo "$name $1" ;;
		esac
	done | sort
}
start() { # PROGRAM
	start_target ready "$bin/$1"
	lines=1
}
run() { # ROUNDS
	echo "$1" >&9
	lines=$((lines + 1))
	for _ in $(seq 1200); do [ "$(wc -l <"$work/target.out")" -ge $lines ] && break; sleep 0.05; done
	equal "results of the calls" ok "$(tail -1 "$work/target.out")"
}
counted() { # WHAT TIMES
	jq -r 'select(.type == "row" and .final) | .values | "\(.f) \(.n)"' "$work/trace.json" | grep -wE "$(echo $names | tr ' ' '|')" | sort >"$work/got" || true
	expected "$2" >"$work/want"
	diff "$work/want" "$work/got" >&2 || fail "$1: counts by function"
	echo "ok: $1"
}
for program in awkward_target awkward_static_target awkward_static_pie_target; do
	start $program
	for kind in Function Return; do
		for share in 1 1000000; do
			trace --verbose --share $share -p "$target" \
				"from f in cluster.$kind(\"$program!*\") where f.function != \"_start\" group f by f.function into g select new { f = g.Key, n = g.Count() }"
			run $rounds
			end_trace
			counted "$program, $kind, shared from $share" $rounds
			equal "text of $program" "$before" "$(text_hash "$target")"
		done
	done
	contains "too short" "$work/trace.err" "short_crowded: is 4 bytes long"
	contains "a loop to within the first bytes" "$work/trace.err" "loop_inside: has a jump into its first 5 bytes"
	contains "entered behind its first instruction" "$work/trace.err" "entered_inside: is entered at"
	run 1
done

# Calls through the procedure linkage table: the first one goes through the resolver; the table's entries have no names.
for kind in Function Return; do
	printf '3\n4\n' | "$FAY" trace --json "cluster.$kind(\"libc!fflush\").Count()" -- "$bin/awkward_target" >"$work/trace.json" 2>"$work/trace.err"
	equal "$kind of what is called through the PLT" 3 "$(jq -R 'fromjson? | select(.type == "row" and .final) | .values.Count' "$work/trace.json")"
done
exits "an entry of the PLT" 2 "$FAY" trace 'cluster.Function("awkward_target!fflush@plt").Count()' -- "$bin/awkward_target" </dev/null
contains "its reason" "$work/err" 'trace what it leads to, e.g. `*!fflush`'

# The plan says beforehand what would be done to each function, and touches nothing.
start awkward_target
"$FAY" explain --json -p "$target" 'cluster.Function("awkward_target!*").Count()' >"$work/plan.json"
of_function() { jq -r --arg f "$1" 'select((.type == "point" and .function == $f) or (.type == "not_traced" and .function == "awkward_target!" + $f)) | .trampoline // .reason' "$work/plan.json"; }
equal "planned for leaf" own "$(of_function leaf)"
equal "planned for short_crowded" "is 4 bytes long, a jump needs 5" "$(of_function short_crowded)"
equal "planned for the probe" inlined "$(jq -r 'select(.type == "probe") | .strategy' "$work/plan.json")"
equal "mappings of fay's after planning" 0 "$(grep -c memfd:fay- "/proc/$target/maps" || true)"

# Two traces, the one below leaves first: jumps back to the start still count for nobody.
trace -p "$target" 'cluster.Function("awkward_target!loop_back_*").Count()'
lower=$tracer
mv "$work/trace.json" "$work/lower.json"
trace -p "$target" 'cluster.Function("awkward_target!loop_back_*").Count()'
run 10
kill -INT "$lower"
wait "$lower"
run 10
end_trace
equal "jumps back under two traces" 40 "$(final_sum Count)"
equal "text after both" "$before" "$(text_hash "$target")"

if command -v gdb >/dev/null; then
	trace -p "$target" 'from f in cluster.Function("awkward_target!*") group f by f.function into g select new { f = g.Key, n = g.Count() }'
	for i in 1 2 3; do
		echo 20000 >&9
		gdb -p "$target" -batch -ex "thread apply all bt 3" -ex detach >"$work/gdb.out" 2>&1 || { cat "$work/gdb.out" >&2; fail "gdb"; }
		lines=$((lines + 1))
		for _ in $(seq 1200); do [ "$(wc -l <"$work/target.out")" -ge $lines ] && break; sleep 0.05; done
	done
	equal "results of the calls under gdb" ok "$(tail -1 "$work/target.out")"
	end_trace
	counted "while gdb stops and resumes the program" 60000
	equal "text after gdb" "$before" "$(text_hash "$target")"
else
	echo "gdb is not installed: nothing stops the program"
fi
