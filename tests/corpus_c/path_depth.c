/* SPDX-License-Identifier: MIT */
// Depth of paths, hidden parts, and the longest part.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t depth[16], hidden, longest, absolute;
};

PROBE("libc!open")
{
	char path[64];
	unsigned depth = 0, length = 0;
	char before = '/';

	if (READ(path, event->arg[1]))
		return;
	if (path[0] == '/')
		state->absolute++;
	for (unsigned i = 0; i < sizeof(path) && path[i]; i++) {
		if (path[i] == '/') {
			length = 0;
		} else {
			if (before == '/') {
				depth++;
				if (path[i] == '.')
					state->hidden++;
			}
			if (++length > state->longest)
				state->longest = length;
		}
		before = path[i];
	}
	state->depth[depth < 16 ? depth : 15]++;
}
