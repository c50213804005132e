/* SPDX-License-Identifier: MIT */
// A perceptron of 32 inputs that learns whether the length is even in a number of bits.
// needs: guard (vectors, which accept_rate compiles without)
#include "../corpus.h"

STATE {
	float weight[32];
	uint32_t right, wrong;
};

PROBE("libc!write")
{
	uint32_t bits = (uint32_t)event->arg[3];
	float sum = 0;
	bool says, truth = __builtin_popcount(bits & 0xff) > 4;

	for (int i = 0; i < 32; i++)
		sum += bits >> i & 1 ? state->weight[i] : 0;
	says = sum > 0;
	if (says == truth) {
		state->right++;
		return;
	}
	state->wrong++;
	for (int i = 0; i < 32; i++)
		if (bits >> i & 1)
			state->weight[i] += truth ? 0.25f : -0.25f;
}
