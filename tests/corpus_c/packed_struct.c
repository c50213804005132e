/* SPDX-License-Identifier: MIT */
// Unaligned members of a packed record.
// needs: nothing
#include "corpus.h"

struct __attribute__((packed)) log_entry { uint8_t level; uint32_t when; uint16_t module; uint64_t id; uint8_t end; };

STATE {
	struct log_entry entry[4];
	uint64_t ids, levels[8];
};

PROBE("libc!syslog")
{
	struct log_entry e;

	if (READ(e, event->arg[1]))
		return;
	state->levels[e.level & 7]++;
	state->ids ^= e.id;
	if (e.when > state->entry[e.module & 3].when)
		state->entry[e.module & 3] = e;
}
