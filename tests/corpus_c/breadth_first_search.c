/* SPDX-License-Identifier: MIT */
// Distances in a graph of 16 nodes that is a table of neighbours.
// needs: nothing
#include "corpus.h"

static const uint8_t neighbour[16][3] = {
	{1, 2, 3}, {0, 4, 5},   {0, 6, 7},    {0, 8, 9},   {1, 10, 11}, {1, 12, 13}, {2, 14, 15}, {2, 1, 3},
	{3, 4, 6}, {3, 15, 14}, {4, 5, 13},   {4, 12, 8},  {5, 11, 9},  {5, 10, 7},  {6, 9, 2},   {6, 9, 0},
};

STATE {
	uint64_t distance[16], unreachable;
};

PROBE("libc!write")
{
	uint8_t queue[16], distance[16];
	unsigned head = 0, tail = 0, from = (unsigned)event->arg[0] & 15, to = (unsigned)event->arg[3] & 15;

	for (unsigned i = 0; i < 16; i++) {
		distance[i] = 255;
		queue[i] = 0;
	}
	distance[from] = 0;
	queue[tail++] = (uint8_t)from;
	while (head < tail) {
		unsigned at = queue[head++] & 15;

		for (unsigned n = 0; n < 3; n++) {
			unsigned next = neighbour[at][n] & 15;

			if (distance[next] == 255 && tail < 16) {
				distance[next] = (uint8_t)(distance[at] + 1);
				queue[tail++] = (uint8_t)next;
			}
		}
	}
	if (distance[to] < 16)
		state->distance[distance[to]]++;
	else
		state->unreachable++;
}
