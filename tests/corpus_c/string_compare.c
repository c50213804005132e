/* SPDX-License-Identifier: MIT */
// Whether a name begins with one of four words, longest common prefix of each.
// needs: nothing
#include "corpus.h"

static const char words[4][8] = {"/etc/", "/usr/", "/proc/", "/tmp/"};
static const uint8_t lengths[4] = {5, 5, 6, 5};

STATE {
	uint64_t in[4], elsewhere, prefix;
};

PROBE("libc!open")
{
	char name[8];

	if (READ(name, event->arg[1]))
		return;
	for (unsigned w = 0; w < 4; w++) {
		unsigned i = 0;

		while (i < lengths[w] && i < 8 && name[i] == words[w][i])
			i++;
		if (i == lengths[w]) {
			state->in[w]++;
			return;
		}
		state->prefix += i;
	}
	state->elsewhere++;
}
