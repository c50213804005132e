/* SPDX-License-Identifier: MIT */
// The name that a record points to, hashed into a table.
// needs: nothing
#include "corpus.h"

STATE {
	struct { uint32_t hash, count; } row[64];
	uint64_t unreadable;
};

PROBE("redis-server!lookupKey")
{
	struct record r;
	char name[32];
	uint32_t hash = 2166136261u;
	unsigned at;

	if (READ(r, event->arg[4]) || READ(name, r.name)) {
		state->unreadable++;
		return;
	}
	for (unsigned i = 0; i < sizeof(name) && name[i]; i++)
		hash = (hash ^ (uint8_t)name[i]) * 16777619u;
	at = hash >> 26;
	if (state->row[at].hash != hash) {
		state->row[at].hash = hash;
		state->row[at].count = 0;
	}
	state->row[at].count++;
}
