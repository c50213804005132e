# Queries that run while their events are saved, and what a plain reference makes of the saved
# events. Source it behind lib.sh.
bin=$(dirname "$TARGET")
# NAME KEYS STREAM WORD...: what the reference is asked, a line each; KEYS: how many columns tell a
# row from the others
queries=()
live=()    # "NAME PID" of what traces

# tracer_of NAME ARGS...: a trace of the target, attached when it returns
tracer_of() {
	local name=$1
	shift
	rm -f "$work/$name.err"
	"$FAY" trace -p "$target" "$@" >"$work/$name.json" 2>"$work/$name.err" </dev/null &
	live+=("$name $!")
	own "$!"
	wait_for "$work/$name.err" "fay: tracing"
}
# saved NAME QUERY: its events, into NAME.fay
saved() { tracer_of "$1" --save "$work/$1.fay" "$2"; }
# asked NAME KEYS QUERY STREAM WORD...: a live query, and what it is in the reference's words
asked() {
	local name=$1 keys=$2 query=$3
	shift 3
	tracer_of "$name" --json "$query"
	queries+=("$name $keys $*")
}
# The target makes its calls; all traces end, the first one last: what comes to an end must not
# change what the others see.
finish() {
	local one code i
	echo >&9
	wait_for "$work/target.out" done
	sleep 0.5 # windows of all calls are over
	for ((i = ${#live[@]} - 1; i >= 0; i--)); do
		one=${live[i]} code=0
		kill -INT "${one#* }"
		ended "${one#* }" || code=$?
		[ $code = 0 ] || {
			cat "$work/${one% *}.err" >&2
			fail "${one% *} exited with $code"
		}
	done
	end_target
}
# What the reference gives (an array) beside what was said live.
cat >"$work/agrees.jq" <<'END'
# TopK: none too high, none too low by more than total / (k + 1); nothing is left of values that all came about as often (null)
def top($want; $got; $k):
	($want.top | map({key: (.key | tostring), value: .count}) | from_entries) as $true | ($want.count / ($k + 1)) as $slack
	| ($got | map(.count)) as $counts | ($counts == ($counts | sort | reverse)) and ($got | length) <= $k
	and all($got[]; .count <= ($true[.key | tostring] // 0) and .count >= $true[.key | tostring] - $slack)
	and all($true | to_entries[] | select(.value > $slack); .key as $key | any($got[]; (.key | tostring) == $key));
def from: if .range == "<= 0" then 0 else .range | split("..")[0] | tonumber end;
def histogram($want; $got): ($got | map(.count) | add // 0) == $want.count
	and all($want.at_least[]; .[0] as $from | ([$got[] | select(from >= $from) | .count] | add // 0) as $n | $n >= .[1] and $n <= .[2]);
def agrees($want; $got):
	if ($want | type) != "object" then $want == $got
	elif $want.least then $got != null and $got >= $want.least and $got <= $want.most
	elif $want.at_least then histogram($want; $got)
	else top($want; $got // []; $top) end;
[range(0; [($want | length), ($got | length)] | max) as $r | range(0; [($want[$r] | length), ($got[$r] | length)] | max) as $c
	| select(agrees($want[$r][$c]; $got[$r][$c]) | not) | {row: $r, column: $c, want: $want[$r][$c], got: $got[$r][$c], of: $got[$r]}] | .[0:5]
END
# judge NAME KEYS FIRST LAST STREAM WORD...: compares; 3: calls came too close to a window's edge or
# to each other. A window that was shown again counts once.
judge() {
	local name=$1 keys=$2 first=$3 last=$4 code=0 got differs
	shift 4
	"$bin/saved_reference" "$work/$first.fay" "$work/$last.fay" "$@" >"$work/want" || code=$?
	[ $code != 3 ] || return 3
	[ $code = 0 ] || fail "$name: the reference: exit code $code"
	jq -sc --argjson k "$keys" 'sort_by(.[:$k])' "$work/want" >"$work/want.json"
	equal "$name: lost" 0 \
		"$(jq -s 'map(select(.type == "end"))[0] | .events_lost + (.join.evicted // 0) +
			(.join.late // 0) + (.counted.late // 0)' "$work/$name.json")"
	jq -sc --argjson k "$keys" \
		'map(select(.type == "row" and .final) | [.values[]]) | group_by(.[:$k]) |
			map(last)' \
		"$work/$name.json" >"$work/got.json"
	[ "$(jq length "$work/want.json")" -gt 0 ] || fail "$name: nothing to compare"
	differs=$(jq -nc --argjson top 3 --argjson want "$(cat "$work/want.json")" --argjson got \
		"$(cat "$work/got.json")" -f "$work/agrees.jq")
	[ "$differs" = "[]" ] || fail "$name: not what the saved events say: $differs"
	echo "ok: $name: $(jq length "$work/got.json") rows"
}
# judge_all FIRST LAST: all that was asked; 3 if one cannot be judged
judge_all() {
	local one words
	for one in "${queries[@]}"; do
		read -ra words <<<"$one"
		judge "${words[0]}" "${words[1]}" "$1" "$2" "${words[@]:2}" || return $?
	done
}
# until_sure: ask_all TURNS, judged by the sessions before and behind; again where calls came too
# close to each other, or to a window's edge. On a busy machine few turns go as fast as they should.
until_sure() {
	local turns code
	for turns in 36 36 24 12 9 6 6; do
		ask_all "$turns"
		code=0
		judge_all first last || code=$?
		[ $code = 3 ] || break
	done
	[ $code = 0 ] ||
		fail "in seven runs calls came too close to each other, or to a window's edge"
}
