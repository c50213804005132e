/* SPDX-License-Identifier: MIT */
// TEA, 32 rounds, on the first eight bytes.
// needs: nothing
#include "corpus.h"

STATE {
	uint32_t out[2];
	uint64_t weak;
};

PROBE("libcrypto!EVP_EncryptUpdate")
{
	uint32_t v[2], sum = 0, k[4];

	if (READ(v, event->arg[1]))
		return;
	for (unsigned i = 0; i < 4; i++)
		k[i] = (uint32_t)(event->arg[3] >> 8 * i);
	for (int round = 0; round < 32; round++) {
		sum += 0x9e3779b9;
		v[0] += ((v[1] << 4) + k[0]) ^ (v[1] + sum) ^ ((v[1] >> 5) + k[1]);
		v[1] += ((v[0] << 4) + k[2]) ^ (v[0] + sum) ^ ((v[0] >> 5) + k[3]);
	}
	state->weak += v[0] == v[1];
	state->out[0] = v[0];
	state->out[1] = v[1];
}
