/* SPDX-License-Identifier: MIT */
// Flags, signed weights and reference counts of one record.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t flag[16];
	int64_t weight;
	uint16_t most_refs;
	uint64_t negative;
};

PROBE("redis-server!incrRefCount")
{
	struct record r;

	if (READ(r, event->arg[4]))
		return;
	for (unsigned i = 0; i < 16; i++)
		if (r.flags >> i & 1)
			state->flag[i]++;
	state->weight += r.weight;
	if (r.weight < 0)
		state->negative++;
	if (r.refs > state->most_refs)
		state->most_refs = r.refs;
}
