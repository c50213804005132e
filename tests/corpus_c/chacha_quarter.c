/* SPDX-License-Identifier: MIT */
// ChaCha's block function, ten double rounds.
// needs: nothing
#include "corpus.h"

STATE {
	uint32_t block[16];
};

#define QUARTER(a, b, c, d)                                             \
	do {                                                            \
		x[a] += x[b]; x[d] ^= x[a]; x[d] = x[d] << 16 | x[d] >> 16; \
		x[c] += x[d]; x[b] ^= x[c]; x[b] = x[b] << 12 | x[b] >> 20; \
		x[a] += x[b]; x[d] ^= x[a]; x[d] = x[d] << 8 | x[d] >> 24;  \
		x[c] += x[d]; x[b] ^= x[c]; x[b] = x[b] << 7 | x[b] >> 25;  \
	} while (0)

PROBE("libcrypto!EVP_EncryptUpdate")
{
	uint32_t x[16], start[16];

	if (READ(start, event->arg[1]))
		return;
	for (unsigned i = 0; i < 16; i++)
		x[i] = start[i];
	for (int round = 0; round < 10; round++) {
		QUARTER(0, 4, 8, 12);
		QUARTER(1, 5, 9, 13);
		QUARTER(2, 6, 10, 14);
		QUARTER(3, 7, 11, 15);
		QUARTER(0, 5, 10, 15);
		QUARTER(1, 6, 11, 12);
		QUARTER(2, 7, 8, 13);
		QUARTER(3, 4, 9, 14);
	}
	for (unsigned i = 0; i < 16; i++)
		state->block[i] = x[i] + start[i];
}
