/* SPDX-License-Identifier: MIT */
/*
 * Parses 32 captured frames of up to 128 bytes: Ethernet, VLAN tags, IPv4 with options or IPv6, TCP
 * or UDP; writes one record each and counts by protocol.
 */
#include "kernel.h"

#define FRAMES 32
#define ROOM 128

struct state {
	struct {
		uint64_t source, destination;
		uint16_t port[2], payload;
		uint8_t protocol, vlans;
	} record[FRAMES];
	uint64_t packets[256]; /* by protocol */
	uint64_t malformed;
	uint32_t size[FRAMES];
	uint8_t frame[FRAMES][ROOM];
};

#define BE16(p) ((unsigned)(p)[0] << 8 | (p)[1])
#define BE32(p) ((uint32_t)(p)[0] << 24 | (uint32_t)(p)[1] << 16 | (uint32_t)(p)[2] << 8 | (p)[3])
#define BE64(p) ((uint64_t)BE32(p) << 32 | BE32((p) + 4))

KERNEL
{
	for (unsigned i = 0; i < FRAMES; i++) {
		const uint8_t *frame = S.frame[i];
		unsigned size = S.size[i] < ROOM ? S.size[i] : ROOM, at = 14, type, vlans = 0,
			 protocol;

		if (size < 14)
			goto malformed;
		type = BE16(frame + 12);
		while ((type == 0x8100 || type == 0x88a8) && vlans < 2) {
			if (at + 4 > size)
				goto malformed;
			type = BE16(frame + at + 2);
			at += 4;
			vlans++;
		}
		if (type == 0x0800) {
			unsigned header;

			if (at + 20 > size)
				goto malformed;
			header = (frame[at] & 15) * 4;
			if (frame[at] >> 4 != 4 || header < 20 || at + header > size)
				goto malformed;
			protocol = frame[at + 9];
			S.record[i].source = BE32(frame + at + 12);
			S.record[i].destination = BE32(frame + at + 16);
			at += header;
		} else if (type == 0x86dd) {
			if (at + 40 > size || frame[at] >> 4 != 6)
				goto malformed;
			protocol = frame[at + 6];
			S.record[i].source = BE64(frame + at + 16);
			S.record[i].destination = BE64(frame + at + 32);
			at += 40;
		} else {
			goto malformed;
		}
		if (protocol == 6) {
			if (at + 20 > size)
				goto malformed;
			S.record[i].payload = (uint16_t)(size - at - (frame[at + 12] >> 4) * 4);
		} else if (protocol == 17) {
			if (at + 8 > size)
				goto malformed;
			S.record[i].payload = (uint16_t)BE16(frame + at + 4);
		}
		if (protocol == 6 || protocol == 17) {
			S.record[i].port[0] = (uint16_t)BE16(frame + at);
			S.record[i].port[1] = (uint16_t)BE16(frame + at + 2);
		}
		S.record[i].protocol = (uint8_t)protocol;
		S.record[i].vlans = (uint8_t)vlans;
		S.packets[protocol]++;
		continue;
	malformed:
		S.malformed++;
	}
}

SETUP
{
	event->arg[0] = FRAMES;
	for (unsigned i = 0; i < FRAMES; i++) {
		uint8_t *f = setup_state->frame[i];
		unsigned at = 12;

		setup_state->size[i] = 80 + setup_random(seed) % 48;
		for (unsigned k = 0; k < ROOM; k++)
			f[k] = (uint8_t)setup_random(seed);
		if (i % 5 == 0) {
			f[at] = 0x81;
			f[at + 1] = 0;
			at += 4;
		}
		f[at] = i % 3 ? 8 : 0x86;
		f[at + 1] = i % 3 ? 0 : 0xdd;
		f[at + 2] = i % 3 ? 0x45 + (i % 7 == 1) : 0x60;
		f[at + (i % 3 ? 11 : 8)] = i % 2 ? 6 : i % 16 == 8 ? 1 : 17;
	}
}
