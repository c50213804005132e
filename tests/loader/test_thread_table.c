/* SPDX-License-Identifier: MIT */
/*
 * The trampoline looks at one entry of the thread table; a thread whose entry is elsewhere pays for
 * a search at each event. Of a thousand threads whose control blocks lie at equal distances,
 * whatever the size of their stacks, hardly any may be such a thread.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "dispatcher/runtime/runtime.h"

#define THREADS 1000u

/* Of threads that are entered one after the other: those whose first place is taken. */
static unsigned displaced(uint64_t first, uint64_t distance)
{
	static uint8_t taken[FAY_THREAD_TABLE_ENTRIES];
	unsigned count = 0;
	memset(taken, 0, sizeof(taken));
	for (unsigned i = 0; i < THREADS; i++) {
		uint32_t at = fay_thread_home(first - i * distance);
		count += taken[at];
		while (taken[at])
			at = (at + 1) % FAY_THREAD_TABLE_ENTRIES;
		taken[at] = 1;
	}
	return count;
}

static void distances(void **state)
{
	/* Control blocks on the heap; stacks of 16 and 64 KiB, musl's 128 KiB, 256 KiB, MariaDB's
	 * 292 KiB, Java's 1 MiB, 2, 8 and 64 MiB, without and with pages that guard them. */
	static const uint64_t all[] = { 0x800,    0x1000,   0x4000,   0x5000,    0x10000,
					0x11000,  0x20000,  0x21000,  0x40000,   0x41000,
					0x4a000,  0x100000, 0x101000, 0x104000,  0x200000,
					0x201000, 0x800000, 0x801000, 0x4000000, 0x4001000 };
	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		unsigned count = displaced(0x7ffff7d8a6c0, all[i]);
		if (count > THREADS / 100)
			fail_msg("%u of %u threads %#lx bytes apart are not where they are looked "
				 "for",
				 count, THREADS, (unsigned long)all[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(distances) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
