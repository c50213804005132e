/* SPDX-License-Identifier: MIT */
// Sums of 256-bit numbers with carries, and a comparison.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t limb[4];
	uint64_t overflows, larger;
};

PROBE("libcrypto!BN_add")
{
	uint64_t b[4], carry = 0;
	bool larger = false;

	if (READ(b, event->arg[1]))
		return;
	for (int i = 3; i >= 0; i--)
		if (b[i] != state->limb[i]) {
			larger = b[i] > state->limb[i];
			break;
		}
	state->larger += larger;
	for (unsigned i = 0; i < 4; i++) {
		uint64_t sum = state->limb[i] + carry;

		carry = sum < carry;
		sum += b[i];
		carry += sum < b[i];
		state->limb[i] = sum;
	}
	state->overflows += carry;
}
