# Inside the machine: checks that count their failures. `finish` exits.
failures=0
export FAY_BUDGET=none
# check NAME EXPECTED ACTUAL
check() {
	if [ "$2" = "$3" ]; then
		echo "ok   $1: $3"
	else
		echo "FAIL $1: expected '$2', got '$3'"
		failures=$((failures + 1))
	fi
}
# check_has NAME TEXT WHOLE
check_has() {
	case $3 in
	*"$2"*) echo "ok   $1" ;;
	*) echo "FAIL $1: no '$2' in '$3'"; failures=$((failures + 1)) ;;
	esac
}
# begin NAME ARGUMENT...: `fay trace` in the background, process $fay, that has attached (or ended)
# when this returns. Rows go to /tmp/NAME.rows, messages to /tmp/NAME.said, which is made anew
# before: what an earlier trace said would do for this one, and SIGINT is not heard by a program
# that a shell has put into the background until it asks for it.
begin() {
	local name=$1
	shift
	: >/tmp/$name.said
	fay trace "$@" >/tmp/$name.rows 2>/tmp/$name.said &
	fay=$!
	while ! grep -q 'Ctrl-C ends' /tmp/$name.said; do
		[ -d /proc/$fay ] || break
		sleep 0.2
	done
}
# finish [MODULE]: this session's module, and no other, is to be there still
finish() {
	local left=$(sed -n 's/^\(fay_s[0-9]*\) .*/\1/p' /proc/modules)
	if [ "$left" != "${1:-}" ]; then
		echo "FAIL sessions' modules that are left: '$left' instead of '${1:-}'"
		failures=$((failures + 1))
	fi
	[ "$failures" -eq 0 ] && echo "all fine"
	exit $((failures != 0))
}
# The kernel's own memory, KiB: slab caches that cannot be given back, vmalloc, per-CPU memory, page
# tables, stacks of tasks.
memory_parts() {
	local cache
	sleep 2 # what is freed after a grace period
	sync
	echo 3 >/proc/sys/vm/drop_caches
	for cache in /sys/kernel/slab/*/shrink; do echo 1 >$cache; done 2>/dev/null
	awk '/^(SUnreclaim|VmallocUsed|Percpu|PageTables|KernelStack):/ {print $1, $2}' \
		/proc/meminfo
	awk '/^(kmalloc|fay)/ {print "slab", $1, int($2 * $4 / 1024)}' /proc/slabinfo
}
memory_sum() { awk '$1 != "slab" {n += $2} END {print n}' "$1"; }
memory_mark() { memory_parts >/tmp/memory.before; }
# memory_check NAME: since memory_mark no more was kept than what caches of the kernel's make of it.
memory_check() {
	local grown
	memory_parts >/tmp/memory.after
	grown=$(($(memory_sum /tmp/memory.after) - $(memory_sum /tmp/memory.before)))
	echo "   $1: the kernel's own memory $(memory_sum \
		/tmp/memory.before) KiB before, $(memory_sum /tmp/memory.after) KiB after:" \
		$(awk 'NR == FNR {n[$1 ~ /slab/ ? $2 : $1] = $NF; next} {k = $1 ~ /slab/ ? $2 : $1;
			if ($NF != n[k]) printf "%s %+d ", k, $NF - n[k]}' \
		/tmp/memory.before /tmp/memory.after)
	[ "$grown" -lt 1024 ] || check "$1: kernel memory that is kept" "less than 1024 KiB" \
		"$grown KiB"
}
# The value of a column of the last JSON row.
value() {
	sed -n "s/.*\"final\":true.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p" | tail -1
}
