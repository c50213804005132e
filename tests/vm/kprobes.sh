#!/usr/bin/env bash
# The kernel's own kprobe events at more and more functions, chosen at random, under the load of every.sh: BUILD=$PWD/build tests/vm/kprobes.sh [NUMBER...] (256 1024 4096).
# One CPU, and a second is 10^9 instructions. Not part of the test run: it takes long.
. "$(dirname "$0")/lib.sh"
cat >"$work/script" <<'IN'
. /inside.sh
. /load.sh
cd /sys/kernel/tracing
load
echo "the load alone: $(measure) s"
awk '!/\[/ {print $1}' available_filter_functions | awk 'BEGIN {srand(1)} {print rand(), $0}' | sort -n | cut -d' ' -f2 >/tmp/functions
there=0 refused=0 line=0
for number; do
	from=$(now)
	while [ $there -lt $number ] && line=$((line + 1)) && function=$(sed -n ${line}p /tmp/functions) && [ -n "$function" ]; do
		if echo "p:fay/e$line $function" >>kprobe_events 2>/dev/null; then there=$((there + 1)); else refused=$((refused + 1)); fi
	done
	made=$(now)
	echo 1 >events/fay/enable
	enabled=$(now)
	echo "$there kprobes ($refused refused): defined in $(elapsed $from $made) s, enabled in $(elapsed $made $enabled) s, the load $(measure) s," \
		"hits $(awk '{n += $2} END {print n}' kprobe_profile), missed $(awk '{n += $3} END {print n}' kprobe_profile)"
	from=$(now)
	echo 0 >events/fay/enable
	echo "   disabled in $(elapsed $from $(now)) s"
done
finish
IN
[ $# -gt 0 ] || set -- 256 1024 4096
inside "$work/script" --icount --time 7200 --with "$here/load.sh:load.sh" -- "$@"
