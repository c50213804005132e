/* SPDX-License-Identifier: MIT */
// Floyd and Warshall over six nodes, weights from the event.
// needs: nothing
#include "corpus.h"

STATE {
	uint32_t distance[6][6];
	uint64_t total;
};

PROBE("libc!write")
{
	uint64_t random = event->arg[3] | 1;

	for (unsigned i = 0; i < 6; i++)
		for (unsigned j = 0; j < 6; j++) {
			random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
			state->distance[i][j] = i == j ? 0 : 1 + (uint32_t)(random >> 56);
		}
	for (unsigned k = 0; k < 6; k++)
		for (unsigned i = 0; i < 6; i++)
			for (unsigned j = 0; j < 6; j++) {
				uint32_t via = state->distance[i][k] + state->distance[k][j];

				if (via < state->distance[i][j])
					state->distance[i][j] = via;
			}
	for (unsigned i = 0; i < 6; i++)
		state->total += state->distance[0][i];
}
