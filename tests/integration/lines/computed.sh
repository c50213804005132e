#!/usr/bin/env bash
# Variables of a line that are computed, and those of which there is only what the call began with:
# beside the truth in deep calls, in a signal's handler, of calls under way, in several processes,
# and where the line's place or the function's beginning is out of reach.
host=1
. "$(dirname "$0")/../lib.sh"
here=$(readlink -f "$(dirname "$0")") source=computed_target.c
command -v gcc >/dev/null || skip "no gcc"
cd "$work"
cp "$here/$source" .
# The compiler itself, so that this is what its optimisation makes of it
gcc -O2 -g -o computed_target "$source"
readelf --debug-dump=loc computed_target >places 2>/dev/null
grep -q entry_value places || skip "this gcc keeps the parameters"
line() { grep -n -- "$1" "$source" | head -1 | cut -d: -f1; }
query() { echo "from l in cluster.Line(\"computed_target!$source:$(line "$1")\") $2"; }
rows() { jq -c 'select(.type == "row" and .final != false).values | [.[]]' "$1" | sort; }
same='group l by new { known = l.Known("given"), right = l.given == l.level } into g
	select new { g.Key, n = g.Count() }'

# --- 6 calls, 200 times 41, those of the handler, and 3,001 within each other, of which the table
# has room for some thousand
echo 200 >input
"$FAY" trace --json --budget none --for 60s -o out.json "$(query 'sink ^= 5' "$same")" \
	-- ./computed_target <input >out 2>err || fail "$(cat err)"
rows out.json >got
jq -s -e 'all(.[]; .[0] == .[1])' got || fail "a wrong value: $(cat got)"
known=$(jq 'select(.[0])[2]' got) unknown=$(jq 'select(.[0] | not)[2]' got)
[ "$known" -ge $((6 + 200 * 41 + 900)) ] || fail "only $known are known"
equal "calls but those of the handler" 1 $(((known + unknown - 6 - 200 * 41 - 3001) % 4 == 0))
[ "$unknown" -le 2200 ] || fail "$unknown are not known"
equal "what the program prints" "7380" "$(tail -1 out)"

# --- what is computed
"$FAY" trace --json --for 60s -o out.json "$(query 'sink ^= 6' 'select new { l.first, l.expected,
	k = l.Known("first") }')" -- ./computed_target <input >out 2>err || fail "$(cat err)"
equal "computed" 5 "$(jq -s 'map(select(.type == "row").values |
	select(.first == .expected and .k)) | length' out.json)"

# --- calls under way when tracing begins: not known, and the others are
start_target waits ./computed_target
trace -p "$target" --budget none "$(query 'sink ^= 5' "$same")"
echo 200 >&9
exec 9>&-
ended "$target" || fail "exit code $?"
ended "$tracer" || fail "fay trace ended with $?: $(cat "$work/trace.err")"
rows "$work/trace.json" >got
jq -s -e 'all(.[]; .[0] == .[1])' got || fail "a wrong value: $(cat got)"
[ "$(jq 'select(.[0])[2]' got)" -ge $((200 * 41 + 900)) ] || fail "calls: $(cat got)"

# --- a budget takes out all, for good: a line without its calls' beginnings would see others'
"$FAY" trace --json --budget 0.01% --for 60s -o out.json "$(query 'sink ^= 5' "$same")" \
	-- ./computed_target < <(echo 300000) >out 2>err || fail "$(cat err)"
contains "left out" err "left out from now on"
! grep -q "traced again" err || fail "it comes back"
rows out.json >got
jq -s -e 'all(.[]; .[0] == .[1])' got || fail "a wrong value: $(cat got)"

# --- the plan
exits "explained" 0 "$FAY" explain "$(query 'sink ^= 5' 'select new { l.given }')" \
	-- ./computed_target
contains "the beginnings" "$work/out" "and what its calls begin with, computed_target!@calls $source:"
