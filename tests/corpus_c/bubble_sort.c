/* SPDX-License-Identifier: MIT */
// Sorts eight numbers of a buffer and keeps the quartiles.
// needs: nothing
#include "corpus.h"

STATE {
	uint32_t quartile[3];
};

PROBE("libc!write")
{
	uint32_t v[8];

	if (READ(v, event->arg[1]))
		return;
	for (unsigned end = 7; end > 0; end--)
		for (unsigned i = 0; i < end; i++)
			if (v[i] > v[i + 1]) {
				uint32_t t = v[i];

				v[i] = v[i + 1];
				v[i + 1] = t;
			}
	state->quartile[0] = v[1];
	state->quartile[1] = v[3];
	state->quartile[2] = v[5];
}
