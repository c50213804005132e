#!/usr/bin/env bash
# Debuggers and profilers that walk the stacks of a traced program: the counts stay exact, and the
# callers are those of the untraced program. Valgrind, which is refused: faults.sh.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/foreign_lib.sh"
flags="-O1 -g -fno-omit-frame-pointer -falign-functions=64 -fno-optimize-sibling-calls"
cat >"$work/walked.c" <<'EOS'
#include <stdio.h>
__attribute__((noinline)) long traced_leaf(long x)
{
	for (volatile long i = 0; i < x; i++)
		;
	return x + 1;
}
__attribute__((noinline)) long traced_middle(long x)
{
	long y = traced_leaf(x);
	__asm__ volatile("" ::: "memory");
	return y + 1;
}
__attribute__((noinline)) long traced_outer(long x)
{
	long y = traced_middle(x);
	__asm__ volatile("" ::: "memory");
	return y + 1;
}
int main(void)
{
	long sum = 0, count;
	puts("ready");
	fflush(stdout);
	while (scanf("%ld", &count) == 1) {
		for (long i = 0; i < count; i++)
			sum += traced_outer(i % 1000);
		printf("done %ld\n", sum);
		fflush(stdout);
	}
	return 0;
}
EOS
has "what is walked" gcc gcc || skip "not installed:$left_out"
compiled "what is walked" gcc $flags -o walked walked.c
traced='traced_*'
image one "$work/walked" walked "$traced"
# walked WHAT CALLS: the trace ends; each call was counted
walked() {
	wait_for "$work/target.out" "done"
	kill -INT "${tracers[0]}"
	ended "${tracers[0]}" || fail "$1: the trace"
	equal "$1: entries, returns, exceptions" "$((3 * $2)) $((3 * $2)) 0" \
		"$(counts_of "$work/one.json")"
	equal "$1: lost" 0 "$(ending "$work/one.json" events_lost)"
	equal "$1: text" "$before" "$(text_hash "$target")"
	end_target
	tried=$((tried + 1))
}
ordered() { # WHAT FILE: the three calls are there, innermost first
	awk '/traced_leaf/ { leaf = NR } /traced_middle/ && leaf == NR - 1 { middle = NR }
		/traced_outer/ && middle && middle == NR - 1 { ok = 1 } END { exit !ok }' "$2" ||
		{ head -40 "$2" >&2; fail "$1: the callers are not there"; }
	echo "ok: $1: the callers are there"
}

if has "gdb's bt and finish" gdb gdb; then
	start_target ready "$work/walked"
	begun one
	timeout 120 gdb -nx -batch -p "$target" -ex 'set pagination off' -ex 'break walked.c:5' \
		-ex "shell echo 10 >$work/in" -ex continue -ex bt -ex delete -ex finish -ex finish \
		-ex 'echo now\ ' -ex 'frame' -ex detach >"$work/gdb.out" 2>&1 ||
		{ cat "$work/gdb.out" >&2; fail gdb; }
	ordered "gdb's bt" "$work/gdb.out"
	equal "gdb's finish: values" "1 2" \
		"$(sed -n 's/^Value returned is .* = //p' "$work/gdb.out" | tr '\n' ' ' |
		sed 's/ $//')"
	grep -q 'traced_outer (x=' "$work/gdb.out" || fail "gdb's finish is not in the caller"
	walked "gdb" 10
fi
if has "perf record -g" perf linux-perf; then
	start_target ready "$work/walked"
	begun one
	# The program works for as long as perf looks.
	if perf record -q -e cpu-clock -g -p "$target" -o "$work/perf.data" -- bash -c \
		"echo 400000 >&9; until grep -q done '$work/target.out'; do sleep 0.1; done" \
		>"$work/perf.out" 2>&1; then
		perf script -i "$work/perf.data" -F ip,sym >"$work/perf.txt" 2>"$work/perf.err" ||
			true
		ordered "perf record -g" "$work/perf.txt"
	else
		echo "SKIPPED: perf record -g: $(head -1 "$work/perf.out")"
		has_lines "$work/target.out" "done" 1 || echo 400000 >&9
	fi
	walked perf 400000
fi
if has "bpftrace's ustack" bpftrace bpftrace; then
	start_target ready "$work/walked"
	begun one
	bpftrace -p "$target" -e "BEGIN { printf(\"looking\\n\"); }
		profile:hz:199 /pid == $target/ { @[ustack] = count(); }" >"$work/bpftrace.out" \
		2>&1 &
	looker=$!
	own "$looker"
	looks() { grep -q looking "$work/bpftrace.out" || [ -z "$(born "$looker")" ]; }
	await bpftrace looks
	echo 400000 >&9
	wait_for "$work/target.out" "done"
	signal_owned INT "$looker"
	ended "$looker" || true
	if grep -q traced_ "$work/bpftrace.out"; then
		ordered "bpftrace's ustack" "$work/bpftrace.out"
	else
		echo "SKIPPED: bpftrace's ustack: $(head -1 "$work/bpftrace.out")"
	fi
	walked bpftrace 400000
fi
all_done
