/* SPDX-License-Identifier: MIT */
/* Requests by class, the class taken from a table of constants: an index masked into read-only
 * data. */
#include <fay/probe.h>

/* Bits set in a half byte. */
static const uint8_t bits[16] = { 0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4 };

FAY_CELL(flags, FAY_VALUES(FAY_VALUE_COUNT(calls), FAY_VALUE_SUM(bits_set)));

FAY_ENTRY("libc!open*")
{
	uint64_t word = event->arg[1];
	int64_t n = 0;

	for (unsigned i = 0; i < 8; i++)
		n += bits[word >> 4 * i & 15];
	fay_count(&flags.calls);
	fay_sum(&flags.bits_set, n);
}
