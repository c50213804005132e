/* SPDX-License-Identifier: MIT */
// A switch over values far apart.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t terminal, block, socket, other;
};

PROBE("libc!ioctl")
{
	switch ((uint32_t)event->arg[3]) {
	case 0x5401: case 0x5402: case 0x5403: case 0x5413: case 0x5414:
		state->terminal++;
		break;
	case 0x1260: case 0x1268: case 0x127b: case 0x80081272:
		state->block++;
		break;
	case 0x8901: case 0x8902: case 0x8912: case 0x8927: case 0x541b:
		state->socket++;
		break;
	default:
		state->other++;
	}
}
