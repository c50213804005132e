# awkward_target's functions and how often each is called in a round. Source it after lib.sh.
names='short_padded short_crowded crowding with_endbr tail_call leaf red_zone loop_back_far loop_back_end loop_inside loop_behind indirect
	retpoline by_retpoline plt_entry entered_inside enters ffi_call_unix64 moving variadic by_value deep chosen_body'
expected() { # TIMES: names and counts of those that can be traced
	for name in $names; do
		case $name in
		short_crowded) ;;
		# at their exits there is room only if there is padding nearby
		by_retpoline | moving) [ "$traced" = Return ] || echo "$name $1" ;;
		# they return to what they have put on the stack
		retpoline | ffi_call_unix64) [ "$traced" = Return ] || echo "$name $1" ;;
		loop_inside) [ "$traced" = Function ] || echo "$name $1" ;;
		# its instructions are left so often
		entered_inside) [ "$traced" = Function ] || echo "$name $((2 * $1))" ;;
		# by itself, by a tail call, by an indirect call, by a retpoline, by a PLT's entry
		leaf) echo "leaf $((5 * $1))" ;;
		deep) echo "deep $((21 * $1))" ;;
		*) echo "$name $1" ;;
		esac
	done | sort
}
start() { # PROGRAM
	start_target ready "$bin/$1"
	lines=1
}
right_answers() { # COUNT: so many more of the program's answers, all of them right
	lines=$((lines + $1))
	wait_for "$work/target.out" "" $lines
	equal "results of the calls" "$1 ok" \
		"$(tail -n "$1" "$work/target.out" | sort | uniq -c | awk '{$1 = $1; print}')"
}
run() { # ROUNDS
	echo "$1" >&9
	right_answers 1
}
trace_awkward() { # PROGRAM KIND OPTIONS...
	traced=$2
	trace "${@:3}" -p "$target" \
		"from f in cluster.$2(\"$1!*\") where f.function != \"_start\"
			group f by f.function into g select new { f = g.Key, n = g.Count() }"
}
counted() { # WHAT TIMES
	jq -r 'select(.type == "row" and .final) | .values | "\(.f) \(.n)"' "$work/trace.json" |
		grep -wE "$(echo $names | tr ' ' '|')" | {
		[ "$traced" = Function ] && cat || grep -vE "^(by_retpoline|moving) "
	} | sort >"$work/got" || true
	expected "$2" >"$work/want"
	diff "$work/want" "$work/got" >&2 || fail "$1: counts by function"
	echo "ok: $1"
}
