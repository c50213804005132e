#!/usr/bin/env bash
# USDT probes: listed, counted exactly in threads of two modules, arguments of every form,
# semaphores up and down, killed fay included.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/say_lib.sh"
bin=$(dirname "$TARGET")
mkfifo "$work/in"
"$bin/markers_target" <"$work/in" >"$work/target.out" 2>&1 &
target=$!
own "$target"
exec 9>"$work/in"
wait_for "$work/target.out" ready
# As text: to jq a number is a double.
rows() {
	sed -n 's/.*"type":"row".*"values":\({[^}]*}\).*/\1/p' "$work/trace.json" | sort | uniq -c |
		sed 's/^ *//'
}
library=$(basename "$bin"/libmarkers_library.so .so)

"$FAY" list --usdt "$bin/markers_target" >"$work/list"
equal "markers in the program" 6 "$(wc -l <"$work/list")"
contains "a marker is listed" "$work/list" "markers_target!faytest:step"
contains "with its arguments" "$work/list" \
	"forms:registers 8@%rdi -4@%edi 1@%dil -1@%sil -2@%si 1@%ah"
contains "and that it has a semaphore" "$work/list" "(semaphore)"
"$FAY" list --usdt --json -p "$target" "$library!*" >"$work/list"
equal "the library's, in the process" faylib:step "$(jq -r .marker "$work/list")"

say "step 4 5000" step; right=$answer
say "forms 10" forms; forms=$answer
before=$(text_hash "$target") before_library=$(text_hash "$target" libmarkers_library)
semaphore "at first" 0

trace -p "$target" 'from m in cluster.Usdt("*markers*!fay*:step") group m by m.function into g
	select new { g.Key, n = g.Count(), a = g.Sum(x => x.Arg(0)), b = g.Sum(x => x.Arg(1)) }'
contains "both modules" "$work/trace.err" "tracing 2 "
semaphore "while traced" 1
say "step 4 5000" step
equal "the program's own result" "$right" "$answer"
end_trace
equal "faytest:step" '[20000,49990000,0]' \
	"$(jq -c 'select(.type == "row" and .final and .values.Key == "faytest:step").values |
		[.n, .a, .b]' "$work/trace.json")"
equal "faylib:step" '[20000,49990000,149970000]' \
	"$(jq -c 'select(.type == "row" and .final and .values.Key == "faylib:step").values |
		[.n, .a, .b]' "$work/trace.json")"
semaphore "after" 0
equal "text after" "$before" "$(text_hash "$target")"
equal "the library's text after" "$before_library" "$(text_hash "$target" libmarkers_library)"

forms() { # MARKER ARGUMENTS: rows of 10 calls
	local columns=""
	for i in $(seq 0 $(($2 - 1))); do columns+="a$i = m.Arg($i), "; done
	trace -p "$target" \
		"from m in cluster.Usdt(\"markers_target!forms:$1\") select new { ${columns%, } }"
	say "forms 10" forms
	equal "$1: the program's own result" "$forms" "$answer"
	end_trace
}
forms registers 6
equal "registers" \
	'10 {"a0":1234605616445958088,"a1":1442228168,"a2":200,"a3":-127,"a4":-31871,"a5":167}' \
	"$(rows)"
forms memory 6
equal "memory" '10 {"a0":2,"a1":22,"a2":-2,"a3":-32768,"a4":1000000007,"a5":99}' "$(rows)"
forms constants 4
equal "constants, and memory that is not there" '5 {"a0":0,"a1":-7,"a2":-2147483648,"a3":1}
5 {"a0":9223231303661387774,"a1":-7,"a2":-2147483648,"a3":1}' "$(rows)"

refused() { # MARKER ARGUMENT TEXT
	exits "$1" 1 "$FAY" trace -p "$target" \
		"cluster.Usdt(\"markers_target!forms:$1\").Sum(x => x.Arg($2))"
	contains "$1 is explained" "$work/err" "$3"
}
refused constants 4 "has an argument 4 that is a floating-point number"
refused constants 5 "has an argument 5 that is in a register that USDT probes do not use"
refused joined 0 "has 0 arguments; the probe uses argument 0"
refused short 0 "too short for a jump"
exits "a place that other code jumps to" 1 "$FAY" trace -p "$target" \
	'cluster.Usdt("markers_target!forms:joined").Count()'
contains "is explained" "$work/err" "by a jump from another function"
exits "no such marker" 2 "$FAY" trace -p "$target" \
	'cluster.Usdt("markers_target!faytest:stop").Count()'
contains "the nearest" "$work/err" "did you mean \`faytest:step\`"
exits "no such form" 2 "$FAY" trace -p "$target" 'cluster.Usdt("markers_target!step").Count()'
contains "what was expected" "$work/err" "a USDT probe is given as \"module!provider:name\""

# Killed: the semaphore stays up and the program runs on; the next fay, or the doctor, takes both
# away.
query='cluster.Usdt("markers_target!faytest:step").Count()'
trace -p "$target" "$query"
kill -9 "$tracer"
ended "$tracer" 2>/dev/null || true
semaphore "behind a killed fay" 1
say "step 4 5000" step
equal "the program's own result" "$right" "$answer"
trace -p "$target" "$query"
semaphore "of the next fay alone" 1
say "step 4 5000" step
end_trace
equal "counted by the next" 20000 "$(final_sum Count)"
semaphore "after both" 0
trace -p "$target" "$query"
kill -9 "$tracer"
ended "$tracer" 2>/dev/null || true
"$FAY" doctor --clean >/dev/null 2>&1
semaphore "after the doctor" 0
equal "text at the end" "$before" "$(text_hash "$target")"

# Two at once, ending in the other order.
trace -p "$target" "$query"
first=$tracer
mv "$work/trace.json" "$work/first.json"
"$FAY" trace --json -p "$target" "$query" >"$work/second.json" 2>"$work/second.err" &
own "$!"
second=$!
wait_for "$work/second.err" "fay: tracing"
semaphore "of two" 2
say "step 4 5000" step
kill -INT "$first"
ended "$first"
semaphore "of the second" 1
say "step 4 5000" step
kill -INT "$second"
ended "$second"
equal "counted by the first" 20000 \
	"$(jq -s '[.[] | select(.type == "row" and .final) | .values.Count] |
		add' "$work/first.json")"
equal "counted by the second" 40000 \
	"$(jq -s '[.[] | select(.type == "row" and .final) | .values.Count] |
		add' "$work/second.json")"
semaphore "of none" 0
equal "text at the end" "$before" "$(text_hash "$target")"

# A vendor's probe on the same marker.
cat >"$work/p.c" <<'END'
#include <fay/probe.h>
FAY_COUNT(n);
FAY_SUM(third);
FAY_MARKER("markers_target!faytest:step")
{
	fay_count(&n);
	fay_sum(&third, event->arg[2]);
}
END
exits "a probe in C" 0 "$FAY" cc "$work/p.c" -o "$work/p.fay"
trace -p "$target" --probe "$work/p.fay"
say "step 1 256" step
end_trace
equal "events of the probe in C" 256 "$(final_sum n)"
expected=$(python3 -c 'print(sum(i * 2654435761 & 255 for i in range(256)))')
equal "the third argument's sum" "$expected" "$(final_sum third)"
exec 9>&-
ended "$target"
