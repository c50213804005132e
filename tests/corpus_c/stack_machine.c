/* SPDX-License-Identifier: MIT */
// A calculator in postfix form: the program is bytes of the traced program.
// needs: guard (the stack's height depends on the data)
#include "corpus.h"

enum { DEPTH = 8 };

STATE {
	int64_t result;
	uint64_t programs, faults;
};

PROBE("libc!write")
{
	uint8_t code[24];
	int64_t stack[DEPTH] = {0};
	unsigned top = 0;

	if (READ(code, event->arg[1]))
		return;
	for (unsigned i = 0; i < sizeof(code); i++) {
		unsigned operation = code[i] >> 4;

		if (operation < 8) {
			if (top == DEPTH)
				goto fault;
			stack[top++] = code[i];
			continue;
		}
		if (top < 2)
			goto fault;
		top--;
		switch (operation) {
		case 8:
			stack[top - 1] += stack[top];
			break;
		case 9:
			stack[top - 1] -= stack[top];
			break;
		case 10:
			stack[top - 1] = (int64_t)((uint64_t)stack[top - 1] * (uint64_t)stack[top]);
			break;
		case 11:
			stack[top - 1] ^= stack[top];
			break;
		default:
			stack[top - 1] = stack[top - 1] < stack[top];
		}
	}
	state->programs++;
	state->result ^= stack[0];
	return;
fault:
	state->faults++;
}
