/* SPDX-License-Identifier: MIT */
// UTF-16: pairs and lone halves.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t units, pairs, lone;
};

PROBE("libicuuc!u_strlen")
{
	uint16_t u[32];

	if (READ(u, event->arg[1]))
		return;
	for (unsigned i = 0; i < 32; i++) {
		state->units++;
		if ((u[i] & 0xfc00) == 0xd800 && i + 1 < 32 && (u[i + 1] & 0xfc00) == 0xdc00) {
			state->pairs++;
			i++;
		} else if ((u[i] & 0xf800) == 0xd800) {
			state->lone++;
		}
	}
}
