#!/usr/bin/env bash
# Which way each function of a program is traced, with all the modules that the program has loaded:
# by jumps, by traps in the kernel, or not at all. A line for calls as they begin, for calls counted
# as they end, and for how long they take; parts of functions and functions that never return are
# left out of the last two. Nothing is patched.
#
#   FAY=build/bin/fay tests/soak/ways.sh [PROGRAM...]
#   WHY=1 ...: behind each line why functions are refused, most frequent reason first
#   KEEP=DIRECTORY: the plans as JSON are left there
host=1
. "$(dirname "$0")/../integration/lib.sh"
. "$(dirname "$0")/starts.sh"
# line PROGRAM WHAT QUERY [LEAVE-OUT]
line() {
	local plan=${KEEP:-$work}/$1.$2.json
	timeout 1200 "$FAY" explain --json -p "$pid" "$3" >"$plan" 2>"$work/explain.err" || {
		echo "$1 | $2 | $(tail -n 1 "$work/explain.err" | cut -c1-160)"
		return 0
	}
	jq -rs --arg p "$1" --arg w "$2" --arg out "${4:-nothing is so}" --arg why "${WHY:-}" '
		def count(f): map(select(f)) | length;
		map(select(.type != "not_traced" or (.reason | test($out) | not))) |
		count(.type == "point") as $jumps | count(.type == "not_traced" and .trap) as $traps |
		map(select(.type == "not_traced" and (.trap | not))) as $refused |
		($refused | length) as $no | ($jumps + $traps + $no) as $all |
		"\($p) | \($w) | \($jumps) | \($traps) | \($no) (\(1e5 * $no / ([$all, 1] | max) |
			round / 1e3) %)",
		(if $why == "" then empty else
			$refused | map(.reason | gsub("(at|to|of|from|in) [^ ;,]*[+][-0-9a-fx]+"; "\(.)";
				"") | gsub("[-+]?0x[0-9a-f]+|[+][0-9a-f]+"; "N") | gsub("[0-9]+"; "N")) |
			group_by(.) | sort_by(-length)[] | "    \(length) \(.[0])"
		end)' "$plan"
}

# __restore_rt, which unwinders know by its bytes, does not return either
apart="is not entered by a call|never returns|recognised by its bytes"
echo "program | asked for | jumps | traps | refused"
for name in ${*:-$programs}; do
	pid=
	"${name}_" || {
		echo "$name | not here"
		continue
	}
	line "$name" entries 'cluster.Function("*!*").Count()'
	line "$name" returns 'cluster.Return("*!*").Count()' "$apart"
	line "$name" durations 'cluster.Return("*!*").Max(r => r.Duration)' "$apart"
	signal_owned KILL "$pid"
done
