/* SPDX-License-Identifier: MIT */
// Decimal numbers with sign in a text, with overflow noticed.
// needs: nothing
#include "corpus.h"

STATE {
	int64_t sum;
	uint64_t numbers, overflows;
};

PROBE("libc!strtol")
{
	char b[48];
	int64_t value = 0;
	bool negative = false, digits = false, overflow = false;

	if (READ(b, event->arg[1]))
		return;
	for (unsigned i = 0; i < sizeof(b); i++) {
		char c = b[i];

		if (c >= '0' && c <= '9') {
			if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, c - '0', &value))
				overflow = true;
			digits = true;
			continue;
		}
		if (digits) {
			if (overflow)
				state->overflows++;
			else
				state->sum = (int64_t)((uint64_t)state->sum + (uint64_t)(negative ? -value : value));
			state->numbers++;
		}
		value = 0;
		digits = overflow = false;
		negative = c == '-';
	}
}
