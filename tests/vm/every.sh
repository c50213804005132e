#!/usr/bin/env bash
# Every function of the kernel that can be traced, counted by function and processor, while files
# and processes are worked on. FAY_VM_ICOUNT=1: one CPU, a second is 10^9 instructions, and beside
# ftrace's function tracer with the same functions under the same load. (Its profiler, which would
# count likewise, is not in Debian's kernel.)
. "$(dirname "$0")/lib.sh"
cat >"$work/script" <<'IN'
. /inside.sh
. /load.sh
load
alone=$(measure)

begin every --timing --verbose --json --for 600s --probe /probes/every.fay
traced=$(measure)
kill -INT $fay
wait $fay
check "fay ends" 0 $?
points=$(sed -n 's/.*tracing \([0-9]*\) kernel functions.*/\1/p' /tmp/every.said)
[ "${points:-0}" -gt 30000 ] || check "functions traced" "more than 30000" "$points"
total=$(grep '"result":"calls"' /tmp/every.rows | value calls)
sum=$(sed -n 's/.*"result":"by_function".*"calls":\([0-9]*\).*/\1/p' /tmp/every.rows |
	awk '{n += $1} END {printf "%d", n}')
check "calls by function add up" "$total" "$sum"
echo "   $(grep '"type":"end"' /tmp/every.rows)"
echo "   $(grep -c '"result":"by_function"' /tmp/every.rows) functions were called, $total calls"
grep -E '^ +(find and attach|detach)' /tmp/every.said
echo "   $points functions were traced; not traced, by reason:"
sed -n 's/^fay: not traced: [^:]*: /   /p' /tmp/every.said | sort | uniq -c
[ "$total" -gt 1000000 ] || check "calls" "more than a million" "$total"

tracer=
if [ -n "$compare" ]; then
	cd /sys/kernel/tracing
	[ -e function_profile_enabled ] && echo "   this kernel has ftrace's function profiler, too"
	echo function >current_tracer
	tracer=$(measure)
	echo nop >current_tracer
	cd /
fi

# Traces whose functions together are too many for the kernel's table of direct calls: entries are
# called back by ftrace instead, returns are refused, and the table does not leak.
running=
# beside NAME QUERY
beside() {
	begin "$1" --json --for 900s "$2"
	running="$running $fay"
}
beside few 'cluster.Function(kernel, "vfs_read").Count()' # the kernel's caches are warm
kill -INT $running && wait $running
running=
memory_mark
beside s 'cluster.Function(kernel, "s*").Count()'
beside p 'cluster.Function(kernel, "p*").Count()'
beside d 'from f in cluster.Function(kernel, "d*") where f.comm == "kernel_calls"
	group f by f.function into g select new { f = g.Key, n = g.Count() }'
kernel_calls access 50
fay trace 'cluster.Return(kernel, "s*").Count()' >/dev/null 2>/tmp/said
check "returns of too many functions" 3 $?
check_has "returns of too many functions, said" "with those of running traces, these are more" \
	"$(cat /tmp/said)"
kill -INT $running
wait
check "direct calls of s and p" 0 "$(cat /tmp/[sp].said | grep -c 'ftrace calls back')"
check_has "calls of d, called back" "too many functions for direct calls" "$(cat /tmp/d.said)"
check_has "calls of d" '"f":"do_faccessat","n":50' "$(cat /tmp/d.rows)"
memory_check "direct calls"
echo "   the load: alone $alone s, fay $traced s${tracer:+, ftrace's function tracer $tracer s}"
echo "   available_filter_functions has" \
	"$(wc -l </sys/kernel/tracing/available_filter_functions) lines"
finish
IN
sed -i "1i compare=${FAY_VM_ICOUNT:-}" "$work/script"
inside "$work/script" ${FAY_VM_ICOUNT:+--icount} --with "$here/guest/load.sh:load.sh" \
	--with "$BUILD/tests/vm/every.fay:probes/every.fay"
