#!/usr/bin/env bash
# What is said to words that mean nothing, and to queries that a shell or the habits of another tool
# have changed. Nothing is traced but a process that waits.
set -euo pipefail
fay=$1
work=$(mktemp -d)
sleep 1000 &
process=$!
trap 'kill $process; rm -rf "$work"' EXIT
fail() { echo "FAIL: $*" >&2; exit 1; }
# says CODE TEXT COMMAND...: exits with that, and the text is among its messages
says() {
	local code=$1 text=$2 got=0
	shift 2
	"$@" >"$work/out" 2>"$work/err" </dev/null || got=$?
	[ "$got" = "$code" ] || { cat "$work/err" >&2; fail "$*: exit code $got, expected $code"; }
	grep -qF -- "$text" "$work/err" || { cat "$work/err" >&2; fail "$*: does not say '$text'"; }
	echo "ok: $text"
}
count='cluster.Function("libc!read").Count()'

says 2 "unknown command 'trcae'; did you mean 'trace'?" "$fay" trcae
says 2 "did you mean '--json'?" "$fay" trace --jsn -p $process "$count"
says 2 "did you mean '--every'?" "$fay" trace --evry=1s -p $process "$count"
says 2 "did you mean '--kernel'?" "$fay" list --kernal
says 2 "did you mean '--clean'?" "$fay" doctor --cleen
says 2 "unexpected argument 'ls'" "$fay" trace "$count" ls
says 2 "unexpected argument 'ls'" "$fay" explain "$count" ls
says 2 "a query is missing" "$fay" explain
"$fay" explain "$count" --json >"$work/out" 2>"$work/err" && jq -e . "$work/out" >/dev/null ||
	fail "explain with an option behind the query: $(cat "$work/out")"
says 2 "--comm takes the name" "$fay" trace -p sleep "$count"
says 1 "-p $process traces a process by its ID" "$fay" trace --comm $process "$count"
says 2 "-p PID names a process" "$fay" list $process 'libc!*'
for _ in $(seq 600); do [ "$(cat /proc/$process/comm)" != sleep ] || break; sleep 0.05; done
says 1 "no process is named 'slee'; did you mean 'sleep'?" "$fay" trace --comm slee "$count"
says 2 "no system call matches \`opn\`; try '*opn*'" "$fay" list --syscalls opn
if [ -r /sys/kernel/btf/vmlinux ]; then
	"$fay" list --tracepoints 'sched:sched_switc[h]' >"$work/out"
	grep -q '^sched_switch(.*struct task_struct \*prev, ' "$work/out" ||
		fail "the arguments of sched_switch: $(cat "$work/out")"
	says 2 "no tracepoint matches \`nope\`" "$fay" list --tracepoints nope
	says 2 "the source has no tracepoint \`sched_swich\`; did you mean \`sched_switch\`?" "$fay" \
		explain 'cluster.Tracepoint("sched:sched_*").Count(t => t.function == "sched_swich")'
	says 2 "the source has no tracepoint \`sched:sched_switch\`; did you mean \`sched_switch\`?" \
		"$fay" explain 'cluster.Tracepoint("sched:sched_*")
			.Count(t => t.function != "sched:sched_switch")'
fi
says 2 "--kernel, --syscalls and --tracepoints are mutually exclusive" "$fay" list --syscalls --kernel
says 1 "no process is named \`slee\`; did you mean \`sleep\`?" "$fay" list --comm slee
# shellcheck disable=SC2028
says 2 "the shell removes them" "$fay" trace -p $process cluster.Function\(libc!read\).Count\(\)
says 2 "a timer's period" "$fay" explain 'cluster.Timer(10).Count()'
! grep -q "the shell removes them" "$work/err" || fail "a query without strings has lost none"
says 2 "the shell removes them" "$fay" explain "cluster.Syscall(read).Count()"
says 2 "either a query or --probe IMAGE" "$fay" trace --probe x -p $process "$count"
says 2 "strings are in double quotes" "$fay" trace -p $process \
	"cluster.Function('libc!read').Count()"
says 2 "'cluster.Function(\"libc!read\").Count()'" "$fay" trace -p $process 'libc!read'
says 2 "'cluster.Function(\"*!malloc\").Count()' counts calls" "$fay" trace -p $process malloc
[ "$("$fay" examples cache hit rate 2>/dev/null)" = "$("$fay" examples 'Hit cache' 2>/dev/null)" ] ||
	fail "the words of examples"
[ "$("$fay" list --examples cache hit 2>/dev/null)" = \
	"$("$fay" examples cache hit 2>/dev/null)" ] || fail "list --examples"
"$fay" examples lock 2>/dev/null | grep -q softirqs && fail "block has no word lock"
says 2 "docs/from-bpftrace.md" "$fay" trace 'kprobe:vfs_read { @[comm] = count(); }'
says 2 "docs/from-bpftrace.md" "$fay" explain \
	'tracepoint:syscalls:sys_enter_openat { printf("%s\n", comm); }'
says 2 "did you mean the example \`opensnoop\`?" "$fay" trace -f opensnop
says 2 "unexpected argument 'x'; it has no parameters" "$fay" explain -f opensnoop x
says 2 "did you mean \`opensnoop\`?" "$fay" examples opensnop
says 2 "\`fay examples\` lists all" "$fay" examples nothing-of-this-kind
says 2 "--run takes an example's name" "$fay" examples --run
says 2 "either a query or --probe IMAGE" "$fay" trace -f opensnoop --probe x
says 2 "parameters are for queries in files" "$fay" explain 'param n = 1
	cluster.Function("libc!read").Count(r => r.Arg(0) == $n)'
says 2 "the format flame shows one result of groups" "$fay" trace --flame -p $process \
	'from r in cluster.Function("libc!read") select new { s = r.Stack(4) }'
says 2 "--svg and --format are mutually exclusive" "$fay" trace --json --flame "$count"
says 2 "--svg FILE say where the result goes" "$fay" trace --html a.html -o b.html "$count"
says 2 "--svg FILE say where the result goes" "$fay" trace -o b.html --svg a.svg "$count"
says 2 "--against goes with --flame or --html" "$fay" trace --json --against x "$count"
stacks='from r in cluster.Function("libc!read") group r by r.Stack(4) into g select new {
	g.Key, n = g.Count() }'
says 2 "cannot read '$work/none'" "$fay" trace --flame --against "$work/none" -p $process "$stacks"
echo nothing >"$work/folded"
says 2 "has no folded stacks; \`fay trace --folded -o FILE\` keeps some" "$fay" trace --html \
	"$work/page" --against "$work/folded" -p $process "$stacks"
says 2 "--html FILE makes a flame graph of them" "$fay" trace --svg "$work/p" -p $process "$stacks"
says 2 "expected an expression, found the end of the query" "$fay" explain \
	'cluster.Function("libc!read").Count('
[ "$(tail -1 "$work/err")" = "                                        ^" ] ||
	fail "no caret at the end of the query: $(cat "$work/err")"
says 2 "did you mean \`cluster\`?" "$fay" explain 'clutser.Function("libc!read").Count()'

if [ -r /sys/kernel/btf/vmlinux ] && [ "$(id -u)" = 0 ]; then
	says 0 "that name are traced, threads of others are not; did you mean 'sleep'?" \
		"$fay" trace --comm slee --for 10ms 'cluster.Syscall("read").Count()'
fi
# Events that are not in the process which is named, and processes in which nothing is called.
if [ -r /sys/kernel/btf/vmlinux ] && [ "$(id -u)" = 0 ]; then
	says 0 "tracepoint block_rq_complete comes in whatever thread the disk's interrupt finds" \
		"$fay" trace -p $process --for 10ms -f biosnoop
	says 0 "tracepoint sched_switch comes in the thread that leaves the processor" "$fay" trace \
		--for 10ms -f runqlat -- true
	says 0 "tracing the kernel" "$fay" trace --for 10ms -f runqlat pid=$process
	! grep -q "comes in" "$work/err" || fail "no process is named: $(cat "$work/err")"
	python3 -c 'import os, time
if os.fork(): time.sleep(1000)' &
	parent=$!
	until child=$(pgrep -P $parent) && grep -qs '^State:.Z' "/proc/$child/status"; do sleep 0.05; done
	says 0 "$child has exited and waits for its parent (a zombie): it does nothing any more" \
		"$fay" trace -p "$child" --for 10ms 'cluster.Syscall("read").Count()'
	kill -STOP $parent
	until grep -qs '^State:.T' /proc/$parent/status; do sleep 0.05; done
	says 0 "it does nothing until \`kill -CONT $parent\`" "$fay" trace -p $parent --for 10ms \
		'cluster.Syscall("read").Count()'
	kill -KILL $parent
fi
printf '.options --forr 1s\n.options\n.options --for 1s\n.options\n' |
	"$fay" shell >"$work/out" 2>"$work/err" || true
grep -qF "did you mean '--for'?" "$work/err" || fail ".options --forr: $(cat "$work/err")"
[ "$(grep -cxF none "$work/out")" = 1 ] && grep -qxF -- '--for 1s' "$work/out" ||
	fail ".options: $(cat "$work/out")"

printf 'help\nquit;\n.quit\n' | "$fay" shell >"$work/out" 2>"$work/err" || true
[ "$(grep -c "commands begin with a dot: \.\(help\|quit\)$" "$work/err")" = 2 ] ||
	fail "help and quit in the shell: $(cat "$work/err")"

# What is cut off of a picture.
says 0 "the query takes 1 rows: stacks beyond these are not in it" "$fay" trace --folded \
	'from m in cluster.Function("libc!malloc") group m by m.Stack(4) into g
		select new { g.Key, n = g.Count() } take 1' -- ls /

# A policy holds for what the kernel runs, too.
if [ -r /sys/kernel/btf/vmlinux ] && [ "$(id -u)" = 0 ]; then
	says 2 "$work/none: No such file" "$fay" trace --policy "$work/none" --for 10ms \
		'cluster.Syscall("read").Count()'
	echo 'allow_event_fields = none' >"$work/policy"
	says 1 "the policy has limits that cannot be checked for BPF programs" "$fay" trace \
		--policy "$work/policy" --for 10ms 'cluster.Syscall("read").Count()'
	echo 'tracepoints = kernel!sched_*' >"$work/policy"
	says 1 "the policy does not allow tracepoint sys_enter (as kernel!NAME)" "$fay" trace \
		--policy "$work/policy" --for 10ms 'cluster.Syscall("read").Count()'
	says 0 "tracing the kernel through BPF" "$fay" trace --policy "$work/policy" --for 10ms \
		'cluster.Tracepoint("sched:sched_switch").Count()'
fi

# A file of another kind than is asked for.
echo 'int f(void) { return 1; }' >"$work/x.c"
says 1 "'$work/x.c' is a source, not an image: \`fay cc $work/x.c -o IMAGE\`" \
	"$fay" verify "$work/x.c"
head -c 1000 "$fay" >"$work/image"
says 2 "$work/image: not a policy: a policy is text" "$fay" policy check "$work/image"

says 2 "a function is compared by its symbol's name" "$fay" explain \
	'cluster.Function("libc!*").Count(f => f.function == "shop::parse")'

# Extensions.
says 2 "--extension takes -o, -I, -D, -O and -fno-ivopts only" "$fay" cc --extension -g x.c -o x
says 2 "usage: fay new extension NAME" "$fay" new
says 2 "usage: fay new extension NAME" "$fay" new probe x
says 2 "'2nd' cannot be the name of a function in C" "$fay" new extension 2nd
says 2 "File exists" env -C / "$fay" new extension tmp

# A policy for users of the kernel.
says 2 "usage: fay kernel allow" "$fay" kernel
says 2 "usage: fay kernel allow" "$fay" kernel alow
says 2 "cannot open '$work/none'" "$fay" kernel allow "$work/none"
policy() { printf '%s\n' "$@" >"$work/policy"; }
if [ "$(id -u)" = 0 ]; then
	policy 'group = no_such_group_here'
	says 2 "$work/policy:1:9: there is no such group" "$fay" kernel allow "$work/policy"
	policy 'tracepoints = kernel!vfs_read'
	says 2 '`group` is missing' "$fay" kernel allow "$work/policy"
	policy 'group = root'
	says 2 '`tracepoints` is missing' "$fay" kernel allow "$work/policy"
	policy 'group = root' 'tracepoints = vfs_read'
	says 2 'write kernel!vfs_read' "$fay" kernel allow "$work/policy"
	policy 'max_points = 1' 'max_points = 2'
	says 2 "$work/policy:2:1: the name is given twice" "$fay" kernel allow "$work/policy"
	policy 'max_sessions = 9'
	says 2 "more than there can be, or none" "$fay" kernel allow "$work/policy"
	policy 'max_point = 1'
	says 2 "unknown name" "$fay" kernel allow "$work/policy"
	chmod 666 "$work/policy"
	says 1 "could have been written by others than root" "$fay" kernel allow "$work/policy"
else
	policy 'group = root'
	says 1 "could have been written by others than root" "$fay" kernel allow "$work/policy"
fi

# The doctor says of what cannot be read what the kernel says.
points=/sys/kernel/tracing/available_filter_functions
if ! why=$(LC_ALL=C head -c 1 "$points" 2>&1 >/dev/null) && [ "${why##*: }" != \
	"No such file or directory" ]; then
	"$fay" doctor >"$work/out" 2>/dev/null || true
	grep -qF "$points: ${why##*: }" "$work/out" ||
		fail "the doctor does not say '$why': $(cat "$work/out")"
	echo "ok: the doctor, of the hotpatch points: ${why##*: }"
fi

# A server's first process waits, its workers were not named.
sh -c 'sleep 1000 & wait' &
parent=$!
until [ "$(cat /proc/$parent/task/$parent/children)" ]; do sleep 0.05; done
child=$(cat /proc/$parent/task/$parent/children)
for source in 'Function("libc!read")' 'Syscall("*")'; do
	says 0 "process $parent has 1 child, not traced unless named, too" \
		"$fay" trace -p $parent --for 100ms "cluster.$source.Count()"
done
kill $parent $child

# 80 columns suffice for what is said of a command
for command in $("$fay" help | sed -n 's/^    fay \([a-z]*\) .*/\1/p') --help; do
	"$fay" help "${command#--help}" >"$work/out" 2>&1 || :
	[ "$(wc -l <"$work/out")" -ge 2 ] || fail "fay help $command: $(cat "$work/out")"
	! grep -E '.{81}' "$work/out" || fail "fay help $command: a line of more than 80 columns"
done
# in a folder of a long name too
long=$work/$(printf '%060d' 0)
mkdir "$long"
for program in "${fay%/*}"/{fayd,fay-verify,fay-cc}; do
	ln -s "$(realpath "$program")" "$long"
	program=$long/${program##*/}
	"$program" --help >"$work/out" 2>&1 || :
	grep -q '^usage: ' "$work/out" || fail "$program --help: $(cat "$work/out")"
	! grep -E '.{81}' "$work/out" || fail "$program --help: a line of more than 80 columns"
done
echo "ok: no line of help has more than 80 columns"
