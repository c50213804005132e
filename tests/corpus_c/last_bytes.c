/* SPDX-License-Identifier: MIT */
/* Single bytes and halfwords at the end of what was read, of which the lowest bits are used. */
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t calls;
	uint32_t mixed, halves;
	struct {
		unsigned bit : 1, other : 3;
	} field;
};

PROBE("libc!write")
{
	uint8_t bytes[45];
	uint16_t halves[3];

	state->calls++;
	if (READ(bytes, event->arg[1]) || READ(halves, event->arg[1] + 64))
		return;
	state->field.bit = (unsigned)(event->arg[2] ^ bytes[44]);
	state->field.other = (unsigned)(event->arg[3] + bytes[40]);
	state->mixed = (state->mixed ^ bytes[44]) << 4 & 0x7f0;
	state->halves = ((uint32_t)event->arg[2] ^ halves[2]) << 3 & 0xfff8;
}
