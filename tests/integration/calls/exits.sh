#!/usr/bin/env bash
# Functions that nothing tells how they are left (exits.S): with the ends of all their calls traced
# they compute what they do untraced, and those that cannot be traced are named with the reason.
. "$(dirname "$0")/../lib.sh"
rounds=100
start_target ready "$(dirname "$FAY")/exits_target"
run() { # WHAT COUNT-OF-RUNS
	echo $rounds >&9
	wait_for "$work/target.out" done "$2"
	equal "$1: what went wrong" "" "$(grep -v '^ready$\|^done$' "$work/target.out" || true)"
}
run untraced 1
of_each='group r by r.function into g select new { f = g.Key, n = g.Count()'
trace --verbose -p "$target" "from r in cluster.Return(\"exits_target!*\") $of_each }"
run "ends counted" 2
end_trace
count_of() {
	jq -s --arg f "$1" \
		'[.[] | select(.type == "row" and .final and .values.f == $f) | .values.n] |
			add // 0' \
		"$work/trace.json"
}
for function in base_table label_table loop_table rep_ret bnd_ret ret_imm carry_callee cf_callee \
	stc_callee passes_on unsized by_indexed by_based indexed based; do
	equal "calls of $function" $rounds "$(count_of $function)"
done
refused() { # FUNCTION REASON
	contains "$1 is refused" "$work/trace.err" "target!$1: $2"
	equal "calls of $1" 0 "$(count_of "$1")"
}
for function in base_table16 label_spoilt multiplied2 own16 other32 times3 before4 rdisp bypointer \
	xlat joined spoilt_table behind_call; do
	refused $function "has an indirect jump at"
done
for function in subroutine subroutine_flags; do refused $function "calls a part of itself"; done
refused label_itself "has a jump at"
refused multiplied "has code at"
refused pushed "returns at"
refused outer "has another entry"
refused workers "may be entered at"
refused workers16 "may be entered anywhere"
trace -p "$target" \
	"from r in cluster.Return(\"exits_target!*\") $of_each, d = g.Sum(x => x.Duration) }"
run "with durations" 3
end_trace
for function in by_indexed by_based indexed based; do
	equal "durations of $function" $rounds "$(count_of $function)"
done
equal "text afterwards" "$before" "$(text_hash "$target")"
run afterwards 4
end_target

# Stripped (exits_parts.S): what is a part of another function, labels, jumps from other functions.
strip -o "$work/parts_target" "$(dirname "$FAY")/exits_parts_target"
start_target ready "$work/parts_target"
run "with parts, untraced" 1
trace --verbose -p "$target" "from r in cluster.Return(\"parts_target!*\") $of_each }"
run "with parts" 2
end_trace
unnamed() { nm "$(dirname "$FAY")/exits_parts_target" | awk -v n="$1" '$3 == n { sub(/^0*/, ""); print "fn_" $1 }'; }
for function in split split_off split_called split_data split_lea split_mov split_one split_other \
	split_near split_nearer labels_two numbered; do
	equal "calls of $function" $rounds "$(count_of $function)"
done
for part in cold_split cold_off; do
	refused "$(unnamed $part)" "is not entered by a call (part of a function)"
done
for function in cold_called cold_data cold_lea cold_mov; do
	equal "calls of $function" $((rounds / 2)) "$(count_of "$(unnamed $function)")"
done
for function in cold_two cold_near; do
	equal "calls of $function" $rounds "$(count_of "$(unnamed $function)")"
done
for function in labels_word labels_sum labels_other; do
	refused $function "has an indirect jump at"
done
for function in jumped jumped_bnd jumped_hint jumped_short; do refused $function "is entered at"; done
equal "text with parts afterwards" "$before" "$(text_hash "$target")"
run "with parts, afterwards" 3
end_target
