/* SPDX-License-Identifier: MIT */
// Latencies by descriptor: started at an even call, ended at an odd one, worst ten.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t start[64];
	uint64_t total[64];
	uint64_t worst[10];
};

PROBE("libc!poll")
{
	unsigned fd = (unsigned)event->arg[0] & 63;
	uint64_t took;

	if (!(event->arg[3] & 1)) {
		state->start[fd] = event->time;
		return;
	}
	if (!state->start[fd])
		return;
	took = event->time - state->start[fd];
	state->start[fd] = 0;
	state->total[fd] += took;
	for (unsigned i = 0; i < 10; i++)
		if (took > state->worst[i]) {
			for (unsigned j = 9; j > i; j--)
				state->worst[j] = state->worst[j - 1];
			state->worst[i] = took;
			break;
		}
}
