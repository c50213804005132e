#!/usr/bin/env bash
# What is printed, and with which exit code, on each wrong turn; nothing is left patched.
. "$(dirname "$0")/../lib.sh"
start_target ready "$TARGET" 2 100000
count='cluster.Function("threads_target!work").Count()'

exits "unknown function" 2 "$FAY" trace -p "$target" \
	'cluster.Function("threads_target!wrok").Count()'
contains "did you mean" "$work/err" "work"
contains "did you mean" "$work/err" "did you mean"
exits "unknown module" 2 "$FAY" trace -p "$target" 'cluster.Function("threads_tarket!work").Count()'
contains "nearest module" "$work/err" "threads_target"

exits "misspelt field" 2 "$FAY" trace -p "$target" \
	'from io in cluster.Function("threads_target!work")
    where io.tme < 5
    group io by io.tid into g select new { g.Key, n = g.Count() }'
contains "position" "$work/err" "query:2:14"
contains "suggestion" "$work/err" "time"
contains "caret" "$work/err" "^~~"
exits "misspelt operator" 2 "$FAY" explain 'cluster.Function("a!b").Cuont()'
contains "operator suggestion" "$work/err" "Count"
exits "empty query" 2 "$FAY" explain ''
exits "not a query" 2 "$FAY" explain 'select * from t'

exits "help of a command" 0 "$FAY" help list
contains "its usage" "$work/out" "usage: fay list"
exits "help of no command" 2 "$FAY" help nothing
strip -o "$work/bare" "$TARGET"
exits "a stripped file" 2 "$FAY" list "$work/bare" 'wo*'
contains "why nothing is found" "$work/err" "(stripped)"

# A FIFO that nobody writes to, a device: neither is waited for, nor opened.
mkfifo "$work/fifo"
for odd in "$work/fifo" /dev/zero "$work"; do
	exits "no file but $(stat -c %F "$odd")" 1 timeout 60 "$FAY" list "$odd" 'wo*'
	contains "its reason" "$work/err" "not a regular file"
done

exits "no such process" 1 "$FAY" trace -p 4194304 "$count"
contains "names the process" "$work/err" "4194304"
exits "pid is not a number" 2 "$FAY" trace -p abc "$count"
exits "no process of that name" 1 "$FAY" trace --comm no-such-name "$count"
cp /bin/true "$work/fay_zombie"
sh -c '"$0" & exec sleep 60' "$work/fay_zombie" &
parent=$!
own "$parent"
until grep -qs '^State:.*zombie' $(pgrep -P $parent | sed 's#.*#/proc/&/status#') /dev/null; do
	sleep 0.05
done
exits "an ended process of that name" 1 "$FAY" trace --comm fay_zombie "$count"
contains "that there is none" "$work/err" "no process is named"
# What does nothing is said to: one that has ended, is stopped, is held by another tracer, the
# kernel's.
zombie=$(pgrep -P $parent)
exits "a process that has ended" 1 "$FAY" trace -p "$zombie" "$count"
contains "that nothing is left" "$work/err" "(a zombie): nothing is left of it to trace"
sleep 1000 &
stopped=$!
own "$stopped"
kill -STOP $stopped
until grep -qs '^State:.T' /proc/$stopped/status; do sleep 0.05; done
exits "a stopped process" 0 "$FAY" trace -p $stopped --for 10ms 'cluster.Function("libc!read").Count()'
contains "how it goes on" "$work/err" "process $stopped is stopped by a signal: it does nothing until \
\`kill -CONT $stopped\`"
kill -KILL $stopped
kill $parent
if [ "$(cat /proc/2/comm)" = kthreadd ]; then
	exits "a thread of the kernel" 1 "$FAY" trace -p 2 "$count"
	contains "what tells of it" "$work/err" "Tracepoint and Timer are about what the kernel does"
fi
exits "no process given" 2 "$FAY" trace "$count"
exits "no such command" 2 "$FAY" trace "$count" -- /no/such/command
exits "bad duration" 2 "$FAY" trace -p "$target" --for soon "$count"
exits "unknown subcommand" 2 "$FAY" frobnicate

# No permission: another user's process.
chmod 755 "$work"
if setpriv --reuid=nobody --regid=nogroup --clear-groups true 2>/dev/null; then
	copy_fay
	exits "no permission" 1 setpriv --reuid=nobody --regid=nogroup --clear-groups \
		"$work/bin/fay" trace -p "$target" "$count"
	contains "which capability" "$work/err" "CAP_SYS_PTRACE"
fi

# Functions that cannot be patched are named with the reason; the others are traced.
exits "only a function too short" 1 "$FAY" trace -p "$target" --for 100ms \
	'cluster.Function("threads_target!tiny").Count()'
contains "named" "$work/err" "tiny"
exits "too short among others" 0 "$FAY" trace -p "$target" --for 100ms \
	'cluster.Function("threads_target!*").Count()'
contains "named with reason" "$work/err" "tiny: "

exits "a function that nothing calls" 0 "$FAY" trace -p "$target" --for 100ms \
	'cluster.Function("threads_target!unused_function").Count()'
contains "that nothing calls it" "$work/err" "nothing that is traced was called or reached meanwhile"
exits "a condition that never holds" 0 "$FAY" trace \
	'cluster.Function("libc!malloc").Where(m => m.Arg(0) == 987654321).Count()' -- ls
! grep "nothing" "$work/err" || fail "malloc was called"

# Images that are none.
echo "this is not an image" >"$work/text"
exits "text as image" 1 "$FAY" verify "$work/text"
: >"$work/empty"
exits "empty image" 1 "$FAY" verify "$work/empty"
exits "an ordinary program as image" 1 "$FAY" verify /bin/true
exits "missing image" 2 "$FAY" verify "$work/none"
exits "no image" 2 "$FAY" verify
contains "that it is missing" "$work/err" "no image: name its file"
exits "two images" 2 "$FAY" verify "$work/text" "$work/empty"
contains "one at a time" "$work/err" "only one image at a time"
echo 'int x;' >"$work/probe.c"
exits "C as probe" 2 "$FAY" trace -p "$target" --probe "$work/probe.c"
contains "what makes it one" "$work/err" "fay cc $work/probe.c -o IMAGE"
exits "a program as C" 2 "$FAY" cc "$TARGET" -o "$work/image"
contains "what it is" "$work/err" "$TARGET: an ELF file"
equal "nothing else is said" 1 "$(wc -l <"$work/err")"
exits "a folder as C" 2 "$FAY" cc "$work" -o "$work/image"
contains "that it is one" "$work/err" "a directory"
head -c 4096 /dev/zero >"$work/zeros"
exits "zeros as C" 2 "$FAY" cc "$work/zeros" -o "$work/image"
contains "that they are no text" "$work/err" "not text"
exits "text as probe" 1 "$FAY" trace -p "$target" --probe "$work/text"

# A full disk for the output.
got=0
"$FAY" trace -p "$target" --for 200ms --json "$count" >/dev/full 2>"$work/err" || got=$?
equal "full disk: exit code" 4 "$got"
contains "full disk: said so" "$work/err" "No space left on device"

# A thread's number is no process's; a process that is named twice is traced once.
mkfifo "$work/early.in"
exec 8<>"$work/early.in"
"$TARGET" 2 100 early <&8 >"$work/early.out" &
early=$!
own "$early"
wait_for "$work/early.out" ready
has_threads() { [ "$(ls "/proc/$early/task" | wc -l)" = 3 ]; }
await "the threads" has_threads
thread=$(ls "/proc/$early/task" | grep -vx "$early" | head -1)
exits "a thread as process" 1 "$FAY" trace -p "$thread" --for 100ms "$count"
contains "what it is" "$work/err" "$thread is a thread of process $early"
kill "$early"
ended "$early" || true
exec 8>&-
exits "a process named twice" 0 "$FAY" trace -p "$target" -p "$target" --for 100ms "$count"
contains "traced once" "$work/err" "tracing 1 function in 1 process;"

# Signals that end a trace, and those that ask for what this one does not have.
for signal in TERM QUIT XCPU; do
	trace -p "$target" "$count"
	kill -USR1 "$tracer"
	kill -USR2 "$tracer"
	kill "-$signal" "$tracer"
	ended "$tracer" || fail "fay trace after SIG$signal: exit code $?"
	contains "SIG$signal ends it" "$work/trace.err" "fay: interrupted;"
done

equal "text after all failures" "$before" "$(text_hash "$target")"

# Two at once on the same function, ended in the order of their start: both count right.
"$FAY" trace --json -p "$target" "$count" >"$work/first.json" 2>"$work/first.err" &
first=$!
own "$first"
wait_for "$work/first.err" "fay: tracing"
"$FAY" trace --json -p "$target" "$count" >"$work/second.json" 2>"$work/second.err" &
second=$!
own "$second"
wait_for "$work/second.err" "fay: tracing"
echo >&9
wait_for "$work/target.out" done
kill -INT "$first"
ended "$first"
kill -INT "$second"
ended "$second"
for which in first second; do
	equal "$which of two sessions" 200000 \
		"$(jq -s 'map(select(.type == "row" and .final))[0].values.Count' \
		"$work/$which.json")"
done
equal "text after both" "$before" "$(text_hash "$target")"

# The target exits while traced; the result is printed and it is said.
trace -p "$target" "$count"
echo >&9
exec 9>&-
ended "$target"
ended "$tracer" || fail "fay trace of an exited program"
contains "exit is said" "$work/trace.err" "the traced program ended"

# ... and is killed while traced: no count is lost.
start_target ready "$TARGET" 2 100000
trace -p "$target" "$count"
echo >&9
wait_for "$work/target.out" done
kill -9 "$target"
ended "$tracer" || fail "fay trace of a killed program"
contains "kill is said" "$work/trace.err" "the traced program ended"
equal "counts of a killed program" 200000 "$(final_sum Count)"
