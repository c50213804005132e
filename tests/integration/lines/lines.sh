#!/usr/bin/env bash
# Lines of the source: counted as the compiler's own coverage counts them, in live processes, by
# jumps and by traps; wrong ones refused with what would be right; debug information that is cut
# off or changed anywhere does no harm.
host=1
. "$(dirname "$0")/../lib.sh"
here=$(dirname "$0") bin=$(dirname "$TARGET") source=lines_target.c
command -v gcov >/dev/null || skip "no gcov"
number() { grep -n -- "$1" "$here/$source" | head -1 | cut -d: -f1; } # of the line with that text

# --- beside coverage. What differs are conditions of loops, whose first statement is what a
# debugger stops at, and statements for which the compiler has left one place of several.
"$here/lines_compare" "$FAY" "$here/$source" 1000 lines_target gcc | tee "$work/compared"
read -r compared equal < <(awk '/^compared/ { print $2, $4 }' "$work/compared")
[ "$compared" -ge 40 ] || fail "only $compared lines have code"
[ $((equal * 100)) -ge $((compared * 80)) ] || fail "only $equal of $compared lines are equal"
for text in 'doubled = number' 'result ^= ' 'result -= ' 'a -= b' 'rounds++;' 'n - 2' 'case 1'; do
	! grep -q "^line $(number "$text"):" "$work/compared" || fail "'$text' differs"
done

# --- a live process
start_target ready "$bin/lines_target"
trace -p "$target" "from l in cluster.Line(\"lines_target!$source:$(number 'int at = 0')\")
	group l by new { l.function, l.line, own = l.module == \"lines_target\" } into g
	select new { f = g.Key.function, l = g.Key.line, n = g.Count() }"
echo 300 >&9
exec 9>&-
ended "$target" || fail "exit code $?"
ended "$tracer" || fail "fay trace ended with $?: $(cat "$work/trace.err")" # with the program
equal "events lost" 0 "$(jq 'select(.type == "end").events_lost' "$work/trace.json")"
equal "rows" "{\"f\":\"lines_search\",\"l\":$(number 'int at = 0'),\"n\":300}" \
	"$(jq -c 'select(.type == "row" and .final).values | {f, l, n}' "$work/trace.json")"

# --- variables: a register, a constant, a frame's offset, a global, a structure, a string
rows() { # LINE COLUMNS...: of all events, in a program that does three rounds
	echo 3 | "$FAY" trace --json --for 60s -o "$work/rows.json" \
		"from l in cluster.Line(\"lines_target!$source:$(number "$1")\") select new { $2 }" \
		-- "$bin/lines_target" >"$work/out" 2>"$work/err" || fail "$1: $(cat "$work/err")"
	jq -c 'select(.type == "row").values | [.[]]' "$work/rows.json"
}
equal "locals of main" '[0,3,0,"twenty",10]
[1,3,2225,"twenty",10]
[2,3,2454,"twenty",10]' "$(rows 'lines_sum(items' 'l.i, l.rounds, l.value, n = l.items[1].name,
	s = l.items[0].size')"
equal "parameters, a global" '["ten",121,true,3]
["twenty",121,true,3]
["thirty",121,true,3]' "$(rows 'int at = 0' 'l.text, l.wanted, k = l.Known("text"), l.lines_step')"
equal "optimised out" '[0,false]' "$(rows 'seen.items' 'l.i, k = l.Known("i")' | sort -u)"
exits "no such variable" 2 "$FAY" trace "cluster.Line(\"lines_target!$source:$(number 'int at = 0'
	)\").Sum(l => l.txt)" -- "$bin/lines_target"
contains "did you mean" "$work/err" "did you mean \`text\`?"
if command -v gdb >/dev/null; then
	# gdb alone finds what a function was called with, where its caller still knows. It has no
	# value where one is known in a single view of an address.
	"$here/variables_compare" "$FAY" "$here/$source" 6 "$bin/lines_target" | tee "$work/compared"
	read -r compared equal < <(awk '/^compared/ { print $2, $4 }' "$work/compared")
	[ "$compared" -ge 40 ] || fail "only $compared variables"
	[ $((equal * 100)) -ge $((compared * 85)) ] || fail "only $equal of $compared are equal"
fi

# --- copies of inlined functions: only where they are asked for
counts() { # FUNCTION COLUMNS...: sorted, of a program that does 300 rounds
	echo 300 | "$FAY" trace --json --for 60s -o "$work/rows.json" \
		"from f in cluster.Function(\"lines_target!$1\") group f by new { $2 } into g
		select new { g.Key, n = g.Count() }" -- "$bin/lines_target" \
		>"$work/out" 2>"$work/err" || fail "$1: $(cat "$work/err")"
	jq -c 'select(.type == "row" and .final).values | [.[]]' "$work/rows.json" | sort
}
equal "both" '[false,"lines_both",100]
[true,"lines_both",300]' "$(counts lines_both 'f.Inlined, f.function')"
equal "their parameters" '[false,2,100]
[true,7,300]' "$(counts lines_both 'f.Inlined, f.times')"
equal "not asked for" '["lines_both",100]' "$(counts lines_both f.function)"
equal "copies alone" '[true,901]' "$(counts twice f.Inlined)"
equal "a parameter of theirs" '[true,10,300]
[true,30,300]
[true,52,300]' "$(counts twice 'f.Inlined, f.number' | grep -v ',1]')"
equal "not inlined" '[false,300]' "$(counts lines_search f.Inlined)"
exits "copies alone, not asked for" 2 "$FAY" trace 'cluster.Function("lines_target!twice").Count()' \
	-- "$bin/lines_target" </dev/null
contains "how" "$work/err" 'it was inlined, at'
exits "ends of copies" 2 "$FAY" trace \
	'cluster.Return("lines_target!lines_both").Count(f => f.Inlined)' -- "$bin/lines_target"
contains "why" "$work/err" "a copy of an inlined function has no end that could be traced"
exits "callers of copies" 1 "$FAY" trace 'from f in cluster.Function("lines_target!lines_both")
	select new { f.Inlined, f.Caller }' -- "$bin/lines_target"
contains "why" "$work/err" "inlined copies have none"
exits "list of copies" 0 "$FAY" list --inlined "$bin/lines_target" 'lines_target!lines_b*'
contains "a copy" "$work/out" "lines_target!lines_both"

# --- what there is
exits "list" 0 "$FAY" list --lines "$bin/lines_target" "lines_target!$source:$(number 'n - 2')"
contains "the function" "$work/out" "lines_target!lines_recurse"
exits "a line without code" 2 "$FAY" list --lines "$bin/lines_target" "lines_target!$source:2"
contains "the next one" "$work/err" "no statement begins at $source:2 in"
contains "the next one" "$work/err" "; the next one is in line "
exits "no such file" 2 "$FAY" list --lines "$bin/lines_target" 'lines_target!nothing.c:2'
contains "which" "$work/err" "no source file \`nothing.c\` in the debug information of"
exits "no line" 2 "$FAY" list --lines "$bin/lines_target" 'lines_target!lines_target.c'
exits "no line" 2 "$FAY" trace 'cluster.Line("lines_target!lines_target.c").Count()' -- true
contains "how" "$work/err" 'a line is given as "module!file:number"'
strip -g -o "$work/stripped" "$bin/lines_target"
exits "no debug information" 1 "$FAY" list --lines "$work/stripped" "stripped!$source:40"
contains "where it was looked for" "$work/err" "has no debug information (looked for in the file"

# --- debug information that is not what it should be: an answer or a refusal, soon
cat >"$work/change.py" <<'PYTHON'
import random, subprocess, sys
fay, program, out, rounds = sys.argv[1:4] + [int(sys.argv[4])]
whole = open(program, "rb").read()
sections = {}
for line in subprocess.run(["readelf", "-SW", program], capture_output=True,
                           text=True).stdout.splitlines():
    parts = line.replace("[ ", "[").split()
    if len(parts) > 5 and parts[1].startswith(".debug_"):
        sections[parts[1]] = (int(parts[4], 16), int(parts[5], 16))
chosen = random.Random(25)
for number in range(rounds):
    changed = bytearray(whole)
    name = chosen.choice([n for n in sections if n != ".debug_str"])
    start, size = sections[name]
    for _ in range(chosen.choice([1, 4, 64])):
        at = start + chosen.randrange(size)
        changed[at] = chosen.choice([0, 0xff, 0x7f, 0x80, changed[at] ^ 1 << chosen.randrange(8)])
    if number % 8 == 0: # cut off
        changed[start + size // 2:start + size] = bytes(size - size // 2)
    open(out, "wb").write(changed)
    for arguments in ["--lines", "changed!lines_target.c:36"], ["--inlined", "changed!twice"]:
        code = subprocess.run([fay, "list", arguments[0], out, arguments[1]], timeout=120,
                              capture_output=True).returncode
        if code not in (0, 1, 2, 3):
            sys.exit(f"change {number} of {name}: {arguments} ends with {code}")
print(f"{rounds} changes")
PYTHON
python3 "$work/change.py" "$FAY" "$bin/lines_target" "$work/changed" 40 || fail "changed information"
echo "ok: changed debug information"
