/* SPDX-License-Identifier: MIT */
// Characters by class, with ranges and falling through.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t digit, upper, lower, space, control, punctuation, high, lines;
};

PROBE("libc!fputs")
{
	uint8_t b[48];

	if (READ(b, event->arg[1]))
		return;
	for (unsigned i = 0; i < sizeof(b); i++)
		switch (b[i]) {
		case '0' ... '9':
			state->digit++;
			break;
		case 'A' ... 'Z':
			state->upper++;
			break;
		case 'a' ... 'z':
			state->lower++;
			break;
		case '\n':
			state->lines++;
			/* fall through */
		case ' ':
		case '\t':
			state->space++;
			break;
		case 0 ... 8:
		case 11 ... 31:
		case 127:
			state->control++;
			break;
		case 128 ... 255:
			state->high++;
			break;
		default:
			state->punctuation++;
		}
}
