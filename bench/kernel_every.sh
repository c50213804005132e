#!/usr/bin/env bash
# All functions of the kernel counted at once, in the virtual machine, in executed instructions
# (tests/vm/every.sh), beside ftrace's function tracer at the same functions: one JSON object.
#
#     bench/kernel_every.sh >bench/results/kernel_every.json
set -euo pipefail
cd "$(dirname "$0")/.."
said=$(FAY_VM_ICOUNT=1 BUILD=${BUILD:-$PWD/build} tests/vm/every.sh) || {
	echo "$said" >&2
	exit 1
}
number() {
	sed -n "s/.*$1.*/\1/p" <<<"$said" | head -1 | grep . || {
		echo "bench/kernel_every.sh: no number in what tests/vm/every.sh said: $1" >&2
		exit 1
	}
}
functions=$(number '[^0-9]\([0-9]\{1,\}\) functions were traced')
called=$(number '[^0-9]\([0-9]\{1,\}\) functions were called')
calls=$(number 'were called, \([0-9]\{1,\}\) calls')
lost=$(number '"events_lost":\([0-9]\{1,\}\)')
alone=$(number 'the load: alone \([0-9][0-9.]*\) s')
fay=$(number ' fay \([0-9][0-9.]*\) s')
ftrace=$(number 'function tracer \([0-9][0-9.]*\) s')
jq -nc --arg date "$(date -u +%F)" --arg commit "$(git log -1 --format=%h 2>/dev/null)" \
	--argjson functions "$functions" --argjson called "$called" --argjson calls "$calls" \
	--argjson lost "$lost" \
	--argjson alone "$alone" --argjson fay "$fay" --argjson ftrace "$ftrace" \
	'{what: "all kernel functions", unit: "10^9 instructions", $date, $commit, $functions,
		$called, $calls, $lost, untraced: $alone, $fay, $ftrace}'
