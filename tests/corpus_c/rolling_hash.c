/* SPDX-License-Identifier: MIT */
// Content-defined chunks: a rolling hash over windows of 16 bytes.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t boundaries, bytes;
	uint8_t last_chunk;
};

PROBE("libc!write")
{
	uint8_t b[128];
	uint32_t hash = 0;
	unsigned start = 0;

	if (READ(b, event->arg[1]))
		return;
	for (unsigned i = 0; i < sizeof(b); i++) {
		hash = hash * 31 + b[i];
		if (i >= 16)
			hash -= b[i - 16] * 0x94446f01u; /* 31^16 */
		if (i >= 16 && (hash & 31) == 7) {
			state->boundaries++;
			state->bytes += i - start;
			start = i;
		}
	}
	state->last_chunk = (uint8_t)(sizeof(b) - start);
}
