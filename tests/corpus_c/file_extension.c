/* SPDX-License-Identifier: MIT */
// Files by extension: the last dot after the last slash.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t c, h, o, so, none, other;
};

PROBE("libc!open")
{
	char path[64];
	unsigned dot = 0, end;

	if (READ(path, event->arg[1]))
		return;
	for (end = 0; end < sizeof(path) - 4 && path[end]; end++) {
		if (path[end] == '/')
			dot = 0;
		else if (path[end] == '.')
			dot = end;
	}
	if (!dot)
		state->none++;
	else if (end - dot == 3 && path[dot + 1] == 's' && path[dot + 2] == 'o')
		state->so++;
	else if (end - dot != 2)
		state->other++;
	else if (path[dot + 1] == 'c')
		state->c++;
	else if (path[dot + 1] == 'h')
		state->h++;
	else if (path[dot + 1] == 'o')
		state->o++;
	else
		state->other++;
}
