/* SPDX-License-Identifier: MIT */
// Addresses seen in ARP answers, and how many changed their hardware address.
// needs: nothing
#include "corpus.h"

enum { ROWS = 32 };

STATE {
	struct { uint32_t ip; uint8_t mac[6]; uint16_t changes; } host[ROWS];
	uint64_t answers;
};

PROBE("libpcap!pcap_handler")
{
	uint8_t p[28];
	uint32_t ip;
	unsigned at;
	bool same = true;

	if (READ(p, event->arg[1]) || get_be16(p + 6) != 2)
		return;
	state->answers++;
	ip = get_be32(p + 14);
	at = (ip * 0x9e3779b1u) >> 27;
	for (int i = 0; i < 6; i++)
		if (state->host[at].mac[i] != p[8 + i])
			same = false;
	if (state->host[at].ip == ip && !same)
		state->host[at].changes++;
	state->host[at].ip = ip;
	for (int i = 0; i < 6; i++)
		state->host[at].mac[i] = p[8 + i];
}
