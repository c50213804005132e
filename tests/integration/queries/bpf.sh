#!/usr/bin/env bash
# Queries about the kernel through BPF: exact numbers, compared with what programs did, with what
# strace counts and with what servers say of themselves.
host=1
. "$(dirname "$0")/../lib.sh"
BPF_TARGET=${BPF_TARGET:?path of syscalls_target}
needs_bpf

# ask QUERY OPTIONS... [-- COMMAND]: the final rows into $work/rows, one JSON object each
ask() {
	local query=$1
	shift
	"$FAY" trace --json "$query" "$@" >"$work/trace.json" 2>"$work/trace.err" </dev/null ||
		{ cat "$work/trace.err" >&2; fail "fay trace: $query"; }
	jq -c 'select(.type == "row").values' "$work/trace.json" >"$work/rows"
	[ "$(jq -s 'map(select(.type == "end"))[0].events_lost' "$work/trace.json")" = 0 ] || {
		cat "$work/trace.err" >&2
		fail "events were lost: $query"
	}
}
value() { jq -sc "$1" "$work/rows"; }

# --- a program whose calls are known
# -----------------------------------------------------------------------------------
n=2000
sum=$((n * (n + 1) / 2))
ask 'from r in cluster.Syscall("read") where !r.Failed && r.comm == "syscalls_target" &&
	r.ReturnValue == r.Arg(2)
	group r by r.function into g
	select new { g.Key, n = g.Count(), bytes = g.Sum(x => x.ReturnValue),
	least = g.Min(x => x.ReturnValue), most = g.Max(x => x.ReturnValue),
		mean = g.Average(x => x.ReturnValue), sizes = g.Histogram(x => x.ReturnValue),
		spread = g.StdDev(x => x.ReturnValue) }' -- "$BPF_TARGET" $n
# The dynamic loader reads the C library's header, 832 bytes.
equal "reads" $((n + 1)) "$(value '.[0].n')"
equal "bytes read" $((sum + 832)) "$(value '.[0].bytes')"
equal "the smallest and the largest" "[1,$n]" "$(value '[.[0].least, .[0].most]')"
equal "their mean" "$(jq -n "($sum + 832) / ($n + 1)")" "$(value '.[0].mean')"
equal "their histogram" '[1,2,4,8,16,32,64,128,256,513,977]' "$(value '.[0].sizes | map(.count)')"
equal "their deviation" "$(python3 -c "
import statistics
print(round(statistics.pstdev(list(range(1, $n + 1)) + [832]), 6))")" \
"$(value '.[0].spread * 1e6 | round / 1e6')"

ask 'cluster.Syscall("write").Sum(w => w.ReturnValue)' -- "$BPF_TARGET" $n
equal "bytes written" $sum "$(value '.[0].Sum')"
ask 'cluster.Syscall("read").Count(r => r.Failed && r.ReturnValue == -9)' -- "$BPF_TARGET" $n
equal "reads that failed with EBADF" $n "$(value '.[0].Count')"
ask 'from o in cluster.Syscall("open*") group o by new { o.function, o.Failed } into g
	select new { g.Key, n = g.Count() }' -- "$BPF_TARGET" $n
equal "openat that failed" $n "$(value 'map(select(.function == "openat" and .Failed))[0].n')"
ask 'cluster.Syscall("read").Count(r => r.Duration > 0 && r.Duration < 1min)' -- "$BPF_TARGET" $n
equal "reads with a duration" $((2 * n + 1)) "$(value '.[0].Count')"
ask 'cluster.Syscall("write").Count()' -- "$BPF_TARGET" $n 8
equal "writes of eight threads" $((8 * n)) "$(value '.[0].Count')"

# Summaries: of 1 to n, and with few values for the one that counts them.
ask 'cluster.Syscall("write").Quantile(0.5, w => w.ReturnValue)' -- "$BPF_TARGET" $n
equal "the median, within 3.2 %" true "$(value "(.[0].Quantile - $n / 2 | fabs) < $n / 2 * 0.032")"
ask 'cluster.Syscall("write").DistinctCount(w => w.Arg(2) / 100)' -- "$BPF_TARGET" $n
equal "different values, within 10 %" true \
	"$(value "(.[0].DistinctCount - $n / 100 | fabs) < $n / 1000")"
ask 'from w in cluster.Syscall("write") group w by w.Failed into g
	select new { g.Key, first = g.First(x => x.Arg(2)), last = g.Last(x => x.Arg(2)),
	q = g.Quantile(1, x => x.Arg(2)) }' -- "$BPF_TARGET" $n
equal "the first and the last, in a group" "[1,$n]" "$(value '[.[0].first, .[0].last]')"

ask 'from w in cluster.Syscall("write") group w by w.Failed into g
	select new { g.Key, top = g.TopK(4, x => x.Arg(2) % 4) }' -- "$BPF_TARGET" $n
equal "top values that all fit" "[[0,$((n / 4))],[1,$((n / 4))],[2,$((n / 4))],[3,$((n / 4))]]" \
	"$(value '.[0].top | map([.key, .count]) | sort')"
ask 'cluster.Syscall("write").TopK(3, w => w.Arg(2) * 4 <= 3 * '$n' ? -7 : w.Arg(2))' \
	-- "$BPF_TARGET" $n
equal "the one of many that is frequent, within a quarter of all" '[-7,true]' \
	"$(value ".[0].TopK[0] | [.key, .count <= $((3 * n / 4)) and .count >= $((n / 2))]")"
ask 'cluster.Syscall("write").TopK(200, w => w.Arg(2) / 10)' -- "$BPF_TARGET" $((n - 11))
equal "as many values as are kept" "[$((n / 10 - 1)),$((n - 11))]" \
	"$(value '.[0].TopK | [length, (map(.count) | add)]')"

# Division, shifts and comparisons, as the native probe computes them; the oracle is awk's.
ask 'from w in cluster.Syscall("write") group w by new { q = (w.Arg(2) - 1000) / 7, r = (w.Arg(2) -
	1000) % 7, s = (w.Arg(2) - 1000) >> 3, z = w.Arg(2) / (w.Arg(2) % 3) } into g
	select new { g.Key, n = g.Count() }' -- "$BPF_TARGET" $n
awk -v n=$n 'BEGIN { for (i = 1; i <= n; i++) { x = i - 1000; m = i % 3;
	print int(x / 7), x % 7, (x >= 0 ? int(x / 8) : -int((7 - x) / 8)), m ? int(i / m) : 0 } }' \
	| sort >"$work/expected"
jq -r '[.q, .r, .s, .z, .n] | join(" ")' "$work/rows" |
	awk '{ for (i = 0; i < $5; i++) print $1, $2, $3, $4 }' | sort >"$work/got"
cmp "$work/expected" "$work/got" || fail "arithmetic in BPF"
echo "ok: arithmetic of $n rows"

# --- more groups than a table has rows, and rows of events
# ----------------------------------------------------------------
ask 'from w in cluster.Syscall("write") group w by new { w.tid, size = w.Arg(2) } into g
	select new { g.Key, n = g.Count(), bytes = g.Sum(x => x.ReturnValue) }' \
	-- "$BPF_TARGET" $n 6
equal "groups" $((6 * n)) "$(value 'length')"
equal "their events" $((6 * n)) "$(value 'map(.n) | add')"
equal "their bytes" $((6 * sum)) "$(value 'map(.bytes) | add')"
ask 'from w in cluster.Syscall("write") select new { w.time, w.pid, w.comm,
	size = w.ReturnValue }' -- "$BPF_TARGET" $n
[ "$(seq -s, 1 $n)" = "$(value 'map(.size) | join(",")' | tr -d '"')" ] ||
	fail "rows of events in their order"
echo "ok: $n rows of events in their order"
ask 'from w in cluster.Syscall("write") orderby w.Arg(2) descending select w.Arg(2) take 3' \
	-- "$BPF_TARGET" $n
equal "rows ordered at the root" "[$n,$((n - 1)),$((n - 2))]" "$(value 'map([.[]][0])')"

# Nobody reads the rows for a while, so that the ring runs full: each read is shown or counted as
# lost.
"$FAY" trace --json \
	'from r in cluster.Syscall("read") where r.Arg(2) == 1 select new { r.time, r.pid, r.tid,
		r.cpu, r.comm, size = r.Arg(2) }' \
	-- dd if=/dev/zero of=/dev/null bs=1 count=300000 status=none 2>"$work/trace.err" |
	(sleep 2; cat) >"$work/trace.json"
shown=$(grep -c '"type":"row"' "$work/trace.json") \
	lost=$(jq -s 'map(select(.type == "end"))[0].events_lost' "$work/trace.json")
[ "$lost" -gt 0 ] || echo "the reader was fast enough: nothing was lost"
equal "rows shown and lost" 300000 $((shown + lost))

# --- against strace, on a program that nobody here wrote
# -------------------------------------------------------------------
if command -v strace >/dev/null; then
	strace -f -c -o "$work/strace" dd if=/dev/zero of=/dev/null bs=100 count=3000 status=none
	ask 'from s in cluster.Syscall("*") group s by s.function into g
		select new { g.Key, n = g.Count(), failed = g.Count(x => x.Failed) }' \
		-- dd if=/dev/zero of=/dev/null bs=100 count=3000 status=none
	# strace also counts the execve that starts the program, and the end that never returns is
	# in neither.
	awk '$1 ~ /^[0-9]/ && $NF != "total" && $NF != "execve" {
		print $NF, $4, (NF == 6 ? $5 : 0) }' \
		"$work/strace" | sort >"$work/expected"
	jq -r '[.Key, .n, .failed] | join(" ")' "$work/rows" | sort >"$work/got"
	diff "$work/expected" "$work/got" || fail "system calls of dd against strace"
	echo "ok: $(wc -l <"$work/got") kinds of system calls of dd as strace counts them"
else
	echo "not compared with strace: it is not installed"
fi

# A shell that starts others: only its own reads, or all of them.
command='for i in 1 2 3; do dd if=/dev/zero of=/dev/null bs=5 count=100 status=none; done'
ask 'cluster.Syscall("read").Count(r => r.Arg(2) == 5)' --follow -- bash -c "$command; true"
equal "reads of a command's children" 300 "$(value '.[0].Count')"
ask 'cluster.Syscall("read").Count(r => r.Arg(2) == 5)' -- bash -c "$command; true"
equal "without --follow" 0 "$(value '.[0].Count')"
ask 'cluster.Syscall("exit_group").Count()' --follow -- bash \
	-c 'for ((i = 0; i < 5000; i++)); do (:); done'
equal "ends of a command and its 5,000 children" 5001 "$(value '.[0].Count')"
# Children that outlive their parents.
left='(sleep 1; (sleep 1; dd if=/dev/zero of=/dev/null bs=5 count=100 status=none) & exit) & exit 3'
ask 'cluster.Syscall("read").Count(r => r.Arg(2) == 5)' --follow -- bash -c "$left"
equal "reads of a child whose parents have ended" '[100,3]' \
	"$(jq -sc '[map(select(.final))[0].values.Count,
		map(select(.type == "end"))[0].exit_status]' "$work/trace.json")"
start_target ready bash -c "echo ready; read -r; $left"
trace --follow -p "$target" 'cluster.Syscall("read").Count(r => r.Arg(2) == 5)'
echo >&9
ended "$tracer" || fail "fay trace of a process whose children are left"
equal "the same of a process by number" 100 "$(final_sum Count)"
exec 9>&-
exits "children of processes by name" 2 "$FAY" trace --follow --comm bash \
	'cluster.Syscall("read").Count()'
contains "what goes with them" "$work/err" "--follow goes with -p or a command"
# A child's number, given out again to a process that somebody else starts, is not the child's any
# more: clone3(2) with set_tid.
cat >"$work/reborn.py" <<'IN'
import ctypes, os, sys
number = ctypes.c_int(int(sys.argv[1]))
arguments = (ctypes.c_uint64 * 11)(0, 0, 0, 0, 17, 0, 0, 0, ctypes.addressof(number), 1, 0)
child = ctypes.CDLL(None, use_errno=True).syscall(435, ctypes.byref(arguments), ctypes.sizeof(arguments))
if child < 0:
    sys.exit(os.strerror(ctypes.get_errno()))
if child == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
os.waitpid(child, 0)
IN
reads="dd if=/dev/zero of=/dev/null bs=5 count=100 status=none"
start_target ready bash -c "echo ready; read -r; $reads & wait \$!; echo child \$!; read -r"
trace --follow -p "$target" 'cluster.Syscall("read").Count(r => r.Arg(2) == 5)'
echo >&9
wait_for "$work/target.out" child
number=$(sed -n 's/^child //p' "$work/target.out")
python3 "$work/reborn.py" "$number" $reads || fail "a process of number $number"
end_trace
equal "reads of a child, and not of who has its number later" 100 "$(final_sum Count)"
end_target

# --- a server, by process and by name; the paper's query
# --------------------------------------------------------------------
start_redis
reads() { redis-cli -p "$port" info stats | tr -d '\r' | sed -n 's/^total_reads_processed://p'; }
paper='from io in cluster.Syscall("read") where io.time < Now.AddMinutes(5) let size = io.Arg(2) // request size in bytes
	group io by size/1024 into g select new { sizeInKilobytes = g.Key, countOfReadIOs = g.Count() };'
for which in "-p $redis" "--comm redis-server"; do
	first=$(reads)
	trace $which "$paper"
	redis-benchmark -p "$port" -n 20000 -c 10 -t set -q >/dev/null
	end_trace
	last=$(reads)
	counted=$(final_sum countOfReadIOs)
	# The reads of the two `info` connections around the trace, and those of /proc and the
	# clock, some each second, differ by a few.
	echo "$which: the server counted $((last - first)) reads, fay $counted"
	[ "$counted" -ge 20000 ] && [ "$counted" -le $((last - first + 1000)) ] ||
		fail "reads of redis-server"
done
# By number or by name: the ones as well as the others, and nobody else.
trace -p "$redis" --comm dd \
	'from r in cluster.Syscall("read") group r by new { r.pid, r.comm } into g
		select new { g.Key, n = g.Count() }'
redis-cli -p "$port" ping >/dev/null
dd if=/dev/zero of=/dev/null bs=1 count=500 status=none
end_trace
jq -c 'select(.type == "row" and .final).values' "$work/trace.json" >"$work/rows"
equal "processes by number and by name" '[true,true,[]]' \
	"$(value "[any(.pid == $redis), (map(select(.comm == \"dd\").n) | add >= 500), map(select(.pid != $redis and .comm != \"dd\"))]")"
# One thread of a process that has several.
exits "a thread that is not there" 1 "$FAY" trace --for 1s --tid 4194303 \
	'cluster.Syscall("read").Count()'
contains "which" "$work/err" "there is no thread 4194303"
exits "a name that nobody has" 0 "$FAY" trace --for 1s --comm nobody-s_name \
	'cluster.Syscall("read").Count()'
contains "which, too" "$work/err" "no process is named 'nobody-s_name' yet"
trace --tid "$redis" 'from r in cluster.Syscall("read") group r by new { r.tid, r.pid } into g
	select new { g.Key, n = g.Count() }'
redis-cli -p "$port" ping >/dev/null
end_trace
equal "threads seen with --tid" "[[$redis,$redis]]" \
	"$(jq -sc '[.[] | select(.type == "row" and .final) | [.values.tid, .values.pid]]' \
	"$work/trace.json")"
"$FAY" trace --json 'cluster.Syscall("read").Count(r => r.time < Now.AddSeconds(1.5))' -p "$redis" \
	>"$work/trace.json" 2>"$work/trace.err"
contains "a query with a deadline ends by itself" "$work/trace.err" \
	"the query's own deadline passed"

# --- tracepoints, arguments by name and type
# ----------------------------------------------------------------------------------
ask 'from e in cluster.Tracepoint("sched:sched_process_exit") group e by new { name = e.p.comm,
	e.p.tgid, same = e.p.tgid == e.pid } into g select new { g.Key, n = g.Count() }' \
	-- "$BPF_TARGET" 10 5
equal "threads that ended" '[["syscalls_target",6,true]]' "$(value 'map([.name, .n, .same])')"
ask 'from s in cluster.Tracepoint("sched_switch") where s.prev.pid == s.tid
	let same = s.prev.comm == s.comm group s by same into g select new { same = g.Key,
	n = g.Count() }' --for 1s
equal "the task that is left is the current one" '[true]' "$(value 'map(.same)')"
# (An interrupt's event in the middle of another one's is lost, and counted.)
trace --every 100ms \
	'from s in cluster.Tracepoint("sched_*") group s by s.function into g
		select new { g.Key, n = g.Count() }'
wait_for "$work/trace.json" '"Key":"sched_switch"' 10
kill -INT "$tracer"
ended "$tracer"
jq -c 'select(.type == "row" and .final).values' "$work/trace.json" >"$work/rows"
[ "$(value 'map(select(.Key == "sched_switch"))[0].n')" -gt 10 ] || fail "many tracepoints at once"
echo "ok: many tracepoints at once"

# --- each processor's clock
# -----------------------------------------------------------------------------------------------------
ask 'from t in cluster.Timer(1ms) group t by new { t.comm, t.function } into g
	select new { g.Key, n = g.Count() }' -- bash -c 'for ((i = 0; i < 200000; i++)); do :; done'
equal "the program that ran" '[["bash","timer",true]]' "$(value 'map([.comm, .function, .n > 10])')"

# --- stacks, beside what the kernel itself says of a thread that sleeps
# ----------------------------------------------------------
sleep 600 </dev/null &
own "$!"
sleeper=$!
runs "$sleeper" sleep
until [ "$(awk '{print $3}' "/proc/$sleeper/stat")" = S ]; do sleep 0.05; done
ask 'from s in cluster.Tracepoint("sched_switch") where s.prev.pid == s.tid && s.next.pid != s.tid
	group s by new { s.comm, s.KernelStack } into g orderby g.Count() descending
	select new { g.Key, n = g.Count() } take 1' \
	-- "$(dirname "$BPF_TARGET")/timeline_target" 100
# Both sleep in clock_nanosleep(2).
awk '{sub(/\+.*/, "", $2); print $2}' "/proc/$sleeper/stack" >"$work/expected"
[ -s "$work/expected" ] || skip "/proc/PID/stack is empty"
value '.[0].KernelStack[]' | sed -E 's/^"kernel!([^+]*).*/\1/' |
	tail -n "$(grep -c . "$work/expected")" >"$work/got"
diff "$work/expected" "$work/got" || fail "the stack of a thread that sleeps"
# Where somebody else is at the same tracepoint, too, the kernel has a function of its own between
# it and what is called.
equal "the innermost function" '"kernel!__schedule' \
	"$(value '.[0].KernelStack | map(select(contains("__traceiter_") | not))[0]' | cut -d+ -f1)"
[ "$(value '.[0].n')" -gt 20 ] || fail "few stacks"
ask 'from w in cluster.Syscall("write") group w by new { w.KernelStack, w.UserStack } into g
	select new { g.Key, n = g.Count() }' -- "$BPF_TARGET" $n
equal "stacks of writes" "[1,$n]" \
	"$(value '[(map(.KernelStack | join(" ") | contains("do_syscall_64")) | all | if . then 1 else 0 end), (map(.n) | add)]')"
equal "stacks of writes: nothing of the tracepoint's own" true \
	"$(value '[.[].KernelStack[] | contains("__bpf_trace_") | not] | all')"
ask 'from w in cluster.Syscall("write") group w by new { inner = w.KernelStack(1), ends = w.Duration
	>= 0 } into g select new { g.Key, n = g.Count() }' -- "$BPF_TARGET" $n
equal "the innermost function of writes that end" "[true,$n]" \
	"$(value '[(map(.inner[0] // "" | test("^kernel!") and (test("__bpf_trace_") | not)) | all), (map(.n) | add)]')"
# A chain of frames, a word of which is no address: it ends there.
cat >"$work/frames.c" <<'END'
static void *frames[4];
int main(void)
{
	frames[0] = &frames[2], frames[1] = (void *)main, frames[3] = (void *)7;
	for (int i = 0; i < 5; i++) {
		long result;
		__asm__ volatile("push %%rbp\n\tmov %2, %%rbp\n\tsyscall\n\tpop %%rbp" : "=a"(result)
			: "0"(39L), "r"(frames) : "rcx", "r11", "memory");
	}
	return 0;
}
END
gcc -O2 -mno-red-zone -o "$work/frames" "$work/frames.c"
ask 'from s in cluster.Syscall("getpid") group s by s.UserStack into g select new { g.Key, n = g.Count() }' \
	-- "$work/frames"
equal "words that are no addresses" "[2,5]" "$(value '[(.[0].Key | length), .[0].n]')"
# Names: of a command that has ended, of one that ends before its entry point, of processes that are
# there, and that come, by name and among all.
cat >"$work/asks.c" <<'END'
#include <unistd.h>
__attribute__((noinline)) void wanted(void) { getppid(); __asm__ volatile(""); }
int main(int argc, char **argv)
{
	for (int i = 0; i < 3000; i++, usleep(argc > 1 ? 1000 : 0))
		wanted();
	return 5;
}
END
gcc -O1 -fno-omit-frame-pointer -o "$work/asks_stack" "$work/asks.c"
of_asks='from s in cluster.Syscall("getppid") where s.comm == "asks_stack"
	group s by s.UserStack(3) into g select new { g.Key, n = g.Count() }'
named() { value '[.[] | select(.Key[1] // "" | test("^asks_stack!main"))] | length'; }
ask "$of_asks" -- "$work/asks_stack"
equal "names of a command that has ended" "1 3000" "$(named) $(value '.[0].n')"
contains "its exit status" "$work/trace.err" "exit status 5"
gcc -shared -o "$work/libgone.so" -x c /dev/null
gcc -o "$work/lacks" "$work/asks.c" -Wl,--no-as-needed "$work/libgone.so"
rm "$work/libgone.so"
ask "$of_asks" -- "$work/lacks"
contains "a command that ends in the dynamic loader" "$work/trace.err" "exit status 127"
"$work/asks_stack" slowly &
asker=$!
own $asker
ask "$of_asks" --for 500ms --comm asks_stack
equal "names of a process by name" 1 "$(named)"
ask "$of_asks" --for 500ms
equal "names among all processes" 1 "$(named)"
wait $asker || true
(sleep 0.5; "$work/asks_stack" slowly || true) & own $!
ask "$of_asks" --for 2500ms
equal "names of a process that came later" 1 "$(named)"
exits "too many frames" 3 "$FAY" trace \
	'cluster.Timer(10ms).Select(t => new { a = t.KernelStack(32), b = t.UserStack(9) })'
contains "said" "$work/err" "at most 40 frames in total"

# --- what is off
# ----------------------------------------------------------------------------------------------------------------
exits "an unknown tracepoint" 2 "$FAY" trace 'cluster.Tracepoint("sched_swich").Count()'
contains "it is suggested" "$work/err" "did you mean \`sched_switch\`?"
exits "a tracepoint of tracefs alone" 2 "$FAY" trace \
	'cluster.Tracepoint("syscalls:sys_enter_openat").Count()'
contains "what it is here" "$work/err" 'that is `cluster.Syscall("openat")` here'
exits "an unknown field" 2 "$FAY" trace \
	'cluster.Tracepoint("sched_switch").Count(s => s.next.pdi == 1)'
contains "it is suggested" "$work/err" \
	"\`struct task_struct\` has no member \`pdi\`; did you mean \`pid\`?"
exits "a misspelt field" 2 "$FAY" trace 'cluster.Tracepoint("sched_switch").Count(s => s.cpuu == 1)'
contains "the arguments are named, too" "$work/err" \
	"did you mean \`cpu\`? \`sched_switch\` has the arguments \`preempt\`, \`prev\`, \`next\`"
exits "an unknown system call" 2 "$FAY" trace 'cluster.Syscall("raed").Count()'
exits "a field that system calls have not" 2 "$FAY" trace --for 1s \
	'cluster.Syscall("read").Max(r => r.cycles)'
exits "a process that is not there" 1 "$FAY" trace -p 4194303 'cluster.Syscall("read").Count()'
FAY_BTF=/nonexistent exits "a kernel without types" 1 "$FAY" trace --for 1s \
	'cluster.Syscall("read").Count()'
contains "it is said" "$work/err" "the kernel's types are not known"
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	copy_fay
	exits "without permission" 1 setpriv --reuid 65534 --clear-groups "$work/bin/fay" trace \
		--for 1s 'cluster.Syscall("read").Count()'
	contains "what is needed is said" "$work/err" "CAP_BPF and CAP_PERFMON"
fi
exits "what runs it is explained" 0 "$FAY" explain 'cluster.Syscall("read").Count()'
contains "with the reason" "$work/out" "back end     BPF"
