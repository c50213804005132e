/* SPDX-License-Identifier: MIT */
// The Internet checksum over 128 bytes, four at a time.
// needs: nothing
#include "corpus.h"

STATE {
	uint16_t last;
	uint64_t zero;
};

PROBE("libc!write")
{
	uint32_t words[32];
	uint64_t sum = 0;

	if (READ(words, event->arg[1]))
		return;
	for (unsigned i = 0; i < 32; i++)
		sum += words[i];
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	state->last = (uint16_t)~sum;
	if (!state->last)
		state->zero++;
}
