/* SPDX-License-Identifier: MIT */
// EtherTypes of frames, with one or two VLAN tags skipped.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t ipv4, ipv6, arp, vlan, other, cut;
};

PROBE("libpcap!pcap_handler")
{
	uint8_t frame[64];
	unsigned at = 12;
	uint16_t type;

	if (event->arg[2] < 22 || READ(frame, event->arg[1])) {
		state->cut++;
		return;
	}
	type = get_be16(frame + at);
	for (int tags = 0; tags < 2 && (type == 0x8100 || type == 0x88a8); tags++) {
		state->vlan++;
		at += 4;
		type = get_be16(frame + at);
	}
	switch (type) {
	case 0x0800:
		state->ipv4++;
		break;
	case 0x86dd:
		state->ipv6++;
		break;
	case 0x0806:
		state->arp++;
		break;
	default:
		state->other++;
	}
}
