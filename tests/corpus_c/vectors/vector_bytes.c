/* SPDX-License-Identifier: MIT */
// Sixteen bytes at once through the compiler's vector types: the sum and the greatest of 64 bytes.
// needs: guard (vectors, which accept_rate compiles without)
#include "../corpus.h"

typedef uint8_t bytes16 __attribute__((vector_size(16)));

STATE {
	uint64_t equal;
	bytes16 greatest;
	uint8_t lowest;
};

PROBE("libc!write")
{
	bytes16 data[4], limit;

	if (READ(data, event->arg[1]))
		return;
	for (int i = 0; i < 4; i++) {
		bytes16 more = (bytes16)(data[i] > state->greatest);

		state->greatest = (data[i] & more) | (state->greatest & ~more);
	}
	limit = data[0] ^ data[1] ^ data[2] ^ data[3];
	state->equal += limit[0] == limit[15];
	state->lowest = limit[event->arg[0] & 15];
}
