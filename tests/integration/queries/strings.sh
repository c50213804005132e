#!/usr/bin/env bash
# Strings of up to 4,096 bytes as keys and columns and in comparisons: exactly what the program
# passed. Ends of pages, strings that are cut, bytes that are no characters, a million of them,
# strings that change meanwhile.
. "$(dirname "$0")/../lib.sh"

# run KIND [COUNT] -- OPTION... QUERY: the target under that query; its output is in $work/said
run() {
	local kind=("$1")
	shift
	[ "$1" = -- ] || { kind+=("$1"); shift; }
	shift
	"$FAY" trace -o "$work/trace" "$@" -- "$STRINGS_TARGET" "${kind[@]}" >"$work/said" \
		2>"$work/trace.err" || { cat "$work/trace.err" >&2; fail "${kind[*]}"; }
}
rows() { jq -c 'select(.type == "row" and .final) | .values' "$work/trace"; }
end_of() { jq -s "map(select(.type == \"end\"))[0].$1" "$work/trace"; }
value() { jq -s "map(select(.type == \"row\" and .final))[0].values.$1" "$work/trace"; }

by_text='from e in cluster.Function("strings_target!said")
    group e by e.Arg(0).Text into g select new { text = g.Key, calls = g.Count() }'
for kind in lengths ends same; do
	run "$kind" -- --json "$by_text"
	sort "$work/said" >"$work/expected"
	rows | sort >"$work/rows"
	cmp "$work/expected" "$work/rows" || {
		diff "$work/expected" "$work/rows" | cut -c1-300 | head -20 >&2
		fail "$kind: other rows than the program's"
	}
	equal "$kind: events lost" 0 "$(end_of events_lost)"
	equal "$kind: texts lost" "0 0" "$(end_of texts_lost) $(end_of texts_unsent)"
	echo "ok: $kind: $(wc -l <"$work/rows") rows"
done

# By name, from the debug information; rows of events; what was cut, and what is short.
run lengths -- --json 'from e in cluster.Function("strings_target!said") where e.text.Length > 4090
    select new { e.text, n = e.text.Length }'
equal "rows of long strings" "$(jq -s 'map(select((.text | length) > 4090) | .calls) | add' \
	"$work/said")" "$(rows | wc -l)"
equal "their longest" "4096 4099" "$(rows | jq -s -r '[(map(.n) | max), (map(.text | length) | max)]
	| "\(.[0]) \(.[1])"')"

# Comparisons, in the probe and with the merged rows.
string=$(jq -r 'select((.text | length) == 100) | .text' "$work/said")
calls=$(jq 'select((.text | length) == 100) | .calls' "$work/said")
run lengths -- --json "cluster.Function(\"strings_target!said\").Count(e =>
    e.Arg(0).Text == \"$string\")"
equal "== a string of 100 bytes" "$calls" "$(value Count)"
part=${string:40:30}
counted() { jq -s "map(select(.text | $1) | .calls) | add // 0" "$work/said"; }
run lengths -- --json "cluster.Function(\"strings_target!said\").Count(e =>
    e.Arg(0).Text.Contains(\"$part\"))"
equal "Contains" "$(counted "contains(\"$part\")")" "$(value Count)"
run deep -- --json 'cluster.Function("strings_target!said").Count(e =>
    e.Arg(0).Text.Contains("the end"))'
equal "Contains, at any place" 36 "$(value Count)"
run deep -- --json 'cluster.Function("strings_target!said").Count(e =>
    e.Arg(0).Text.Contains("the end 3570") || e.Arg(0).Text.EndsWith("xxxthe end 2550"))'
equal "Contains and EndsWith at the end" 14 "$(value Count)"
run lengths -- --json "from e in cluster.Function(\"strings_target!said\")
    group e by e.Arg(0).Text into g where g.Key.EndsWith(\"${string: -20}\") || g.Key.Length == 200
    orderby g.Key select new { g.Key, n = g.Count() }"
equal "conditions on keys" "$(counted "endswith(\"${string: -20}\") or length == 200")" \
	"$(rows | jq -s 'map(.n) | add')"
equal "order of keys" true "$(rows | jq -s 'map(.Key) | . == sort')"

# Bytes, in JSON as Latin-1, in CSV as escapes, in tables as question marks.
run bytes -- --json "$by_text"
equal "bytes" true "$(rows | jq -s 'map(select(.calls == 6))[0].text == ([range(1; 256)] | implode)')"
run bytes -- --csv "$by_text"
contains "bytes in CSV" "$work/trace" "\\xfd\\xfe\\xff\",6"
run bytes -- "$by_text"
contains "bytes in a table" "$work/trace" "!\"#\$%&'()*+,-./0123456789"

# Saved: the texts are in the file, and queries over it see them as live ones do.
"$FAY" trace --save "$work/saved.fay" 'from e in cluster.Function("strings_target!said")
    select new { e.time, e.comm, text = e.Arg(0).Text, n = e.Arg(0).Text.Length }' -- \
	"$STRINGS_TARGET" lengths >"$work/said" 2>"$work/trace.err" ||
	{ cat "$work/trace.err" >&2; fail "--save"; }
ask() { "$FAY" trace --json "$1" >"$work/trace" 2>"$work/trace.err" ||
	{ cat "$work/trace.err" >&2; fail "$1"; }; }
ask "from e in file(\"$work/saved.fay\") group e by e.text into g
    select new { text = g.Key, calls = g.Count() }"
rows | sort >"$work/rows"
sort "$work/said" | cmp - "$work/rows" || fail "saved: other rows than the program's"
ask "from e in file(\"$work/saved.fay\")
    where e.text == \"$string\" || e.text.Contains(\"$part\") && e.text.Length == e.n
    group e by e.comm into g select new { g.Key, n = g.Count() }"
equal "comparisons of saved strings" "$(counted "contains(\"$part\")")" \
	"$(value n)"
ask "from a in file(\"$work/saved.fay\") join b in file(\"$work/saved.fay\")
    on a.text equals b.text within 10s where a.n == 100 select new { a.text, b.n }"
equal "saved strings joined" "$((calls * calls)) $string" \
	"$(rows | wc -l) $(value text | tr -d '"')"
if command -v babeltrace2 >/dev/null; then
	"$FAY" export --ctf "$work/ctf" "$work/saved.fay" >/dev/null 2>&1
	equal "saved strings as CTF" "$calls" "$(babeltrace2 "$work/ctf" | grep -cF "\"$string\"")"
fi

# A million: each is counted, texts are kept as far as there is room, and it is said how many are
# not.
run distinct 1000000 -- --csv "$by_text"
events_lost=$(sed -n 's/.* \([0-9]*\) events\{0,1\} lost.*/\1/p' "$work/trace.err")
equal "rows of a million strings" 1000000 \
	"$(($(awk -F, '$NF == 1' "$work/trace" | wc -l) + events_lost))"
lost=$(grep -c '^<text lost>,' "$work/trace") || true
[ "$lost" -gt 0 ] && [ "$lost" -lt 700000 ] || fail "$lost texts are lost"
grep '^"a key' "$work/trace" | sort | uniq -d | head -1 >"$work/twice"
equal "texts that are there twice" "" "$(cat "$work/twice")"
kept_not=$(sed -n 's/.*do not fit into 64 MiB: \([0-9]*\) times.*/\1/p' "$work/trace.err")
unsent=$(sed -n 's/^fay: \([0-9]*\) times\{0,1\} a string had no room.*/\1/p' "$work/trace.err")
[ "$lost" -le $((kept_not + ${unsent:-0})) ] ||
	fail "$lost texts are lost, but $kept_not and ${unsent:-0} are said to be"

# A string that changes while it is read: each call is counted, with a text that was there.
run changing 20000 -- --csv "$by_text"
equal "calls with a changing string" 20000 \
	"$(awk -F, 'NR > 1 {n += $NF} END {print n}' "$work/trace")"
! grep -q '<text lost>' "$work/trace" || fail "a changing string's text is lost"
