#!/usr/bin/env bash
# Fay and others at one function: ftrace's function tracer and function_graph, kprobe and kretprobe
# events, BPF (fentry, fexit), live patches, other fays. Each comes to what fay holds and leaves it,
# fay comes to what each holds and leaves it; all counts are exact, and at the end nothing is left.
# What ftrace allows one of only is refused, in words.
. "$(dirname "$0")/lib.sh"
cat >"$work/script" <<'IN'
. /inside.sh
cd /sys/kernel/tracing
F=__x64_sys_getpgid
ENTRIES="cluster.Function(kernel, \"$F\").Count(c => c.comm == \"kernel_calls\")"
RETURNS="cluster.Return(kernel, \"$F\").Count(c => c.comm == \"kernel_calls\" &&
	c.ReturnValue == -3)"
patch=/sys/kernel/livepatch/live_patch
tracers="function function_graph kprobe kretprobe" record=trace
q() { fay trace --json "$@" 2>/tmp/said; }
end() { kill -INT $1; wait $1; }

# come PEER: it is at the function, or not 0. BPF is a fay that is asked for stacks, which go
# through BPF.
come() {
	: >trace
	case $1 in
	function | function_graph) echo $F >set_ftrace_filter && echo $1 >current_tracer ;;
	kprobe) echo "p:beside/kprobe $F" >>kprobe_events ;;
	kretprobe) echo "r:beside/kretprobe $F" >>kprobe_events ;;
	fentry) begin fentry --json --for 600s \
		"from c in cluster.Function(kernel, \"$F\") where c.comm == \"kernel_calls\"
			group c by c.KernelStack into g select new { n = g.Count() }"
			fentry=$fay ;;
	fexit) begin fexit --json --for 600s \
		"from c in cluster.Return(kernel, \"$F\") where c.comm == \"kernel_calls\"
			group c by c.KernelStack into g select new { n = g.Count() }"; fexit=$fay ;;
	live_patch) insmod /live_patch.ko 2>/tmp/live_patch.said &&
		while [ "$(cat $patch/transition)" != 0 ]; do sleep 0.2; done ;;
	esac || return 1
	case $1 in
	kprobe | kretprobe) echo 'comm == "kernel_calls"' >events/beside/$1/filter &&
		echo 1 >events/beside/$1/enable ;;
	fentry | fexit) grep -q 'Ctrl-C ends' /tmp/$1.said && grep -q 'through BPF' /tmp/$1.said ;;
	esac
}

# leave PEER CALLS: so many it has seen, of kernel_calls.
leave() {
	case $1 in
	function) saw=$(grep -c "kernel_calls.*: $F <-" $record) ;;
	function_graph) saw=$(grep -c "$F()" $record) ;;
	kprobe | kretprobe) saw=$(grep -c "kernel_calls.*: $1: " $record) ;;
	fentry) end $fentry; saw=$(value n </tmp/fentry.rows) ;;
	fexit) end $fexit; saw=$(value n </tmp/fexit.rows) ;;
	live_patch) saw=$(cat /sys/module/live_patch/parameters/calls) ;;
	esac
	case $1 in
	function | function_graph) echo nop >current_tracer; echo >set_ftrace_filter ;;
	kprobe | kretprobe) echo 0 >events/beside/$1/enable; echo "-:beside/$1" >>kprobe_events ;;
	live_patch) echo 0 >$patch/enabled; while [ -e $patch ]; do sleep 0.2; done; rmmod \
		live_patch ;;
	esac || check "$where: $1 leaves" 0 $?
	check "$where: $1 saw" "$2" "$saw"
}

# visit PEER...: each comes to what is held, is there for 100 calls, and leaves; 10 calls more.
visit() {
	for peer; do
		come $peer || {
			check "$where: $peer comes" yes "$(cat /tmp/$peer.said)"
			continue
		}
		kernel_calls getpgid 100
		leave $peer 100
		kernel_calls getpgid 10
	done
}
at_once() {
	echo "$(grep -vc '^[[:space:]]' enabled_functions) $(sed -n "s/^$F (\([0-9]*\)).*/\1/p" \
		enabled_functions)"
}

# Fay holds it by a direct call, at entries or returns: what is no direct call comes and goes, and
# what would be one, or a live patch, is refused.
for what in entries returns; do
	where="fay's $what, direct"
	[ $what = entries ] && query=$ENTRIES || query=$RETURNS
	begin held --json --for 600s "$query"
	held=$fay
	check_has "$where" "(1) R   D" "$(cat enabled_functions | sed 's/ *\t/ /')"
	visit $tracers
	come fentry && check "$where: BPF" refused came
	come live_patch && check "$where: a live patch" refused came
	check_has "$where: a live patch, said" "busy" "$(cat /tmp/live_patch.said)"
	kernel_calls getpgid 10
	end $held
	check "$where" 450 "$(value Count </tmp/held.rows)"
	check "$where: nothing is left" "0 " "$(at_once)"
done

# BPF holds it by a direct call, so fay is called back; BPF leaves, and fay is called back still:
# then live patches and BPF come and go, too.
where="fay's entries, called back"
come fentry || check "$where: BPF comes" yes no
begin held --json --for 600s "$ENTRIES"
held=$fay
check_has "$where, said" "ftrace calls back at each event" "$(cat /tmp/held.said)"
kernel_calls getpgid 100
leave fentry 100
visit $tracers fentry fexit live_patch
end $held
check "$where" 870 "$(value Count </tmp/held.rows)"
check "$where: nothing is left" "0 " "$(at_once)"

# Others hold it, and fay comes and goes, at entries and at returns.
for peer in $tracers fentry fexit live_patch; do
	where="held by $peer"
	come $peer || check "$where" held "$(cat /tmp/$peer.said)"
	check "$where: entries" 50 "$(q "$ENTRIES" -- kernel_calls getpgid 50 | value Count)"
	case $peer in
	fentry | fexit | live_patch)
		check_has "$where: entries, said" "ftrace calls back at each event" \
			"$(cat /tmp/said)"
		q "$RETURNS" -- kernel_calls getpgid 50 >/tmp/rows; check "$where: returns" 1 $?
		check_has "$where: returns, said" "or a live patch replaces one" "$(cat /tmp/said)"
		leave $peer 50 ;; # the refused trace has not let its command run
	*)
		check "$where: returns" 50 \
			"$(q "$RETURNS" -- kernel_calls getpgid 50 | value Count)"
		leave $peer 100 ;;
	esac
	check "$where: nothing is left" "0 " "$(at_once)"
done

# What ftrace was given by fay.ko is freed when nobody walks ftrace's list any more that was there
# for a moment, also when a live patch lets ftrace refuse it.
where="refused beside a live patch"
come live_patch || check "$where" held "$(cat /tmp/live_patch.said)"
echo 8192 >buffer_size_kb
: >trace
echo "p:beside/waited synchronize_rcu_tasks_rude" >>kprobe_events &&
	echo 1 >events/beside/waited/enable || check "$where" watched no
echo 1 >events/kmem/kmalloc/enable
echo 1 >events/kmem/kfree/enable
echo 1 >options/event-fork
echo $$ >set_event_pid
check "$where" 50 "$(q "$ENTRIES" -- kernel_calls getpgid 50 | value Count)"
echo 0 >events/enable
echo >set_event_pid
leave live_patch 50
awk '{p = $0; sub(/.* ptr=/, "", p); sub(/ .*/, "", p)}
	/kmalloc: call_site=fay_register_set.*__GFP_ZERO/ {given++; open[p] = 1}
	/ waited: / {for (i in open) open[i] = 2}
	/ kfree: / && p in open {freed++; early += open[p] == 1; delete open[p]}
	END {printf "%d given, %d freed, %d early", given, freed, early}' trace >/tmp/freed
check "$where" "2 given, 2 freed, 0 early" "$(cat /tmp/freed)"
echo "-:beside/waited" >>kprobe_events # takes what was recorded with it

# Fays beside each other: one called directly, the others called back; one is killed, the next is
# called directly again.
where="fays"
begin a --json --for 600s "$RETURNS"; a=$fay
begin b --json --for 600s "$ENTRIES"; b=$fay
begin c --json --for 600s "$ENTRIES"; c=$fay
check "$where: three" "1 3" "$(at_once)"
kernel_calls getpgid 100
kill -9 $a
wait $a 2>/dev/null
check "$where: one is killed" "1 2" "$(at_once)"
kernel_calls getpgid 100
begin d --json --for 600s "$RETURNS"; d=$fay
kernel_calls getpgid 100
end $b
check "$where: the first called back" 300 "$(value Count </tmp/b.rows)"
kernel_calls getpgid 100
kill -9 $c
wait $c 2>/dev/null
check "$where: another is killed" "1 1" "$(at_once)"
kernel_calls getpgid 100
end $d
check "$where: the second called directly" 300 "$(value Count </tmp/d.rows)"

where="all at once" others="function kprobe kretprobe live_patch"
for peer in $others; do come $peer || check "$where: $peer" there no; done
check "$where" 50 "$(q "$ENTRIES" -- kernel_calls getpgid 50 | value Count)"
record=/tmp/record # what some record goes when others leave
cp trace $record
for peer in $others; do leave $peer 50; done

check "nothing is left" "0 " "$(at_once)"
# makes use of the numbers of those that were killed
q "$RETURNS" -- kernel_calls getpgid 10 >/tmp/rows
rmmod fay_s2 # of the second that was killed
rmmod fay || check "fay.ko unloads" yes no
finish
IN
patch=$(module live_patch) || fail "live_patch.ko is not built"
# Freed memory is poisoned, so that who still looks at it is seen.
inside "$work/script" --time 2000 --append "slub_debug=P" --with "$patch:live_patch.ko"
