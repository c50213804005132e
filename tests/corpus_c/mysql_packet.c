/* SPDX-License-Identifier: MIT */
// MySQL packets: three bytes of length, a sequence number, a command.
// needs: nothing
#include "corpus.h"

STATE {
	uint32_t command[32];
	uint64_t bytes, continued;
};

PROBE("mariadbd!net_write_packet")
{
	uint8_t h[5];
	uint32_t length;

	if (READ(h, event->arg[1]))
		return;
	length = h[0] | (uint32_t)h[1] << 8 | (uint32_t)h[2] << 16;
	state->bytes += length;
	if (length == 0xffffff)
		state->continued++;
	else if (h[3] == 0 && h[4] < 32)
		state->command[h[4]]++;
}
