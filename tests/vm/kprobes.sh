#!/usr/bin/env bash
# The kernel's own kprobes at more and more functions, chosen at random, under the load of every.sh:
# BUILD=$PWD/build tests/vm/kprobes.sh [entry|behind] [NUMBER...].
# One CPU, and a second is 10^9 instructions. Not part of the test run: it takes long.
#
#   entry    at functions' first instructions, which ftrace calls. Each of them costs ftrace a walk
#            over all its functions; it is told to change the code once for all.
#   behind   five bytes behind, at the instruction after ftrace's: by breakpoints. (The kernel would
#            make jumps of some of these later; it is told not to.)
. "$(dirname "$0")/lib.sh"
cat >"$work/script" <<'IN'
. /inside.sh
. /load.sh
where=$1
shift
ftrace() { [ $where = behind ] || echo $1 >/proc/sys/kernel/ftrace_enabled; }
switch() { ftrace 0; echo $1 >events/fay/all/enable; ftrace 1; }
cd /sys/kernel/tracing
[ $where = entry ] && offset=0 || offset=5
echo 0 >/proc/sys/debug/kprobes-optimization
load
echo "the load alone: $(measure) s; $where; $(grep MemAvailable /proc/meminfo)"
awk '!/\[/ {print $1}' available_filter_functions | awk 'BEGIN {srand(1)} {print rand(), $0}' |
	sort -n | cut -d' ' -f2 >/tmp/functions
there=0 refused=0 line=1
for number; do
	from=$(now)
	set -- $(kernel_kprobes $offset $((number - there)) $line /tmp/functions)
	there=$((there + $1)) refused=$((refused + $2)) line=$3
	made=$(now)
	switch 1
	enabled=$(now)
	echo "$there kprobes ($refused refused): defined in $(elapsed $from \
		$made) s, enabled in $(elapsed $made $enabled) s, the load $(measure) s," \
		"hits $(awk '{n += $2} END {printf "%d", n}' kprobe_profile), missed $(awk \
		'{n += $3} END {printf "%d", n}' kprobe_profile); $(grep MemAvailable \
		/proc/meminfo)"
	check "enabled" 1 "$(cat events/fay/all/enable)"
	from=$(now)
	switch 0
	echo "   disabled in $(elapsed $from $(now)) s"
done
finish
IN
case ${1:-} in
entry | behind) ;;
*) set -- entry "$@" ;;
esac
[ $# -gt 1 ] || set -- "$1" 1024 4096
inside "$work/script" --icount --memory 1024 --time 7200 --with "$BUILD/bin/kernel_kprobes" \
	--with "$here/guest/load.sh:load.sh" -- "$@"
