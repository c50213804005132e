/* SPDX-License-Identifier: MIT */
// HTTP requests by method, from the first eight bytes.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t get, head, post, put, delete, options, other;
};

#define WORD(a, b, c, d) \
	((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)

PROBE("libc!recv")
{
	uint32_t word;

	if (event->arg[2] < 4 || READ(word, event->arg[1]))
		return;
	switch (word) {
	case WORD('G', 'E', 'T', ' '):
		state->get++;
		break;
	case WORD('H', 'E', 'A', 'D'):
		state->head++;
		break;
	case WORD('P', 'O', 'S', 'T'):
		state->post++;
		break;
	case WORD('P', 'U', 'T', ' '):
		state->put++;
		break;
	case WORD('D', 'E', 'L', 'E'):
		state->delete++;
		break;
	case WORD('O', 'P', 'T', 'I'):
		state->options++;
		break;
	default:
		state->other++;
	}
}
