/* SPDX-License-Identifier: MIT */
// Dotted decimal addresses: valid ones by class of network.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t private_net, loopback, multicast, public_net, bad;
};

PROBE("libc!inet_pton")
{
	char t[16];
	uint32_t address = 0, part = 0;
	unsigned dots = 0, digits = 0, i;

	if (READ(t, event->arg[1]))
		return;
	for (i = 0; i < sizeof(t) && t[i] && t[i] != ' '; i++) {
		if (t[i] == '.') {
			if (!digits || dots == 3)
				goto bad;
			address = address << 8 | part;
			part = digits = 0;
			dots++;
		} else if (t[i] >= '0' && t[i] <= '9') {
			part = part * 10 + (uint32_t)(t[i] - '0');
			if (part > 255 || ++digits > 3)
				goto bad;
		} else {
			goto bad;
		}
	}
	if (dots != 3 || !digits)
		goto bad;
	address = address << 8 | part;
	if (address >> 24 == 127)
		state->loopback++;
	else if (address >> 24 == 10 || address >> 20 == 0xac1 || address >> 16 == 0xc0a8)
		state->private_net++;
	else if (address >> 28 == 14)
		state->multicast++;
	else
		state->public_net++;
	return;
bad:
	state->bad++;
}
