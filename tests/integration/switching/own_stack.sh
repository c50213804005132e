#!/usr/bin/env bash
# What a probe reads of the stack that it runs on: without a system call where that cannot fault,
# and right everywhere else. A program asks for words on stacks of all kinds, as it is and with the
# system call refused: what is still read then is what is read directly.
. "$(dirname "$0")/../lib.sh"
here=$(cd "$(dirname "$0")" && pwd)
gcc -O2 -fno-omit-frame-pointer -D_GNU_SOURCE -pthread -o "$work/own" "$here/own_stack_target.c"
cat >"$work/reads.c" <<'END'
#include <fay/probe.h>
FAY_STREAM(reads, FAY_COLUMNS(FAY_KEY_U64(what), FAY_KEY_U64(got)));
FAY_ENTRY("own!asked")
{
	uint64_t word;
	struct reads_row row = { .what = event->arg[1] };
	row.got = fay_try_read(&word, sizeof(word), event->arg[0]) == 0;
	reads_emit(&row);
}
END
"$FAY" cc "$work/reads.c" -o "$work/reads.img"
# asks ARGUMENT...: the numbers of what was read, and of what was not
asks() {
	start_target ready "$work/own" "$@"
	trace --follow -p "$target" --probe "$work/reads.img"
	echo >&9
	wait_for "$work/target.out" did
	end_trace >&2
	end_target
	for got in 1 0; do
		jq -rs "map(select(.type == \"row\" and .values.got == $got).values.what) |
			sort | map(tostring) | join(\" \")" "$work/trace.json"
	done
}
# Cannot be read: beyond the initial stack (3), a guard (11), a page without access (19), no memory
# (21, 22).
equal "by one way or the other" \
	"1 2 4 5 6 7 7 8 9 10 12 13 14 15 16 17 18 20|3 11 19 21 22" \
	"$(asks | paste -sd'|')"
# Directly: the initial stack as far as it went when the probe was installed (1, 2); the stack of a
# thread (7, 8), of coroutines within it (15), of a vfork (20).
# Not: below the stack pointer (4), other memory (5), what the initial stack has grown by (6), the
# thread's control block (9), another thread's stack (10), one that the program gave (12), one
# without a guard (13), a coroutine's (14), a signal's (16), one that is lent by another thread
# (17), a forked child's (18).
equal "without a system call" "1 2 7 7 8 15 20|3 4 5 6 9 10 11 12 13 14 16 17 18 19 21 22" \
	"$(asks confined | paste -sd'|')"
