/* SPDX-License-Identifier: MIT */
// A 64-bit number as decimal text, from the right.
// needs: nothing
#include "corpus.h"

STATE {
	char text[24];
	uint64_t length[21];
};

PROBE("libc!printf")
{
	char digits[20];
	uint64_t n = event->arg[3];
	unsigned count = 0;

	do {
		digits[count++] = (char)('0' + n % 10);
		n /= 10;
	} while (n && count < 20);
	for (unsigned i = 0; i < count; i++)
		state->text[i] = digits[count - 1 - i];
	state->text[count] = 0;
	state->length[count]++;
}
