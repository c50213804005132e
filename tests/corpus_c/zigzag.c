/* SPDX-License-Identifier: MIT */
// ZigZag decoding of signed numbers, with the range seen.
// needs: nothing
#include "corpus.h"

STATE {
	int64_t least, most;
	uint64_t negative;
};

PROBE("libprotobuf!ReadSInt64")
{
	uint64_t coded = event->arg[3];
	int64_t value = (int64_t)(coded >> 1) ^ -(int64_t)(coded & 1);

	if (value < state->least)
		state->least = value;
	if (value > state->most)
		state->most = value;
	state->negative += (uint64_t)(value < 0);
}
