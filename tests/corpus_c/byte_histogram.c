/* SPDX-License-Identifier: MIT */
// Which byte values a buffer holds, over its first 64 bytes.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t seen[256];
	uint64_t unreadable;
};

PROBE("libc!write")
{
	uint8_t bytes[64];

	if (READ(bytes, event->arg[1])) {
		state->unreadable++;
		return;
	}
	for (unsigned i = 0; i < sizeof(bytes); i++)
		state->seen[bytes[i]]++;
}
