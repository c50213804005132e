/* SPDX-License-Identifier: MIT */
// The first part of the path of a request, hashed; the query string is cut off.
// needs: nothing
#include "corpus.h"

STATE {
	uint32_t by_path[128];
	uint64_t longest, no_path;
};

PROBE("libc!recv")
{
	char line[128];
	unsigned at = 0, start;
	uint32_t hash = 5381;

	if (READ(line, event->arg[1]))
		return;
	while (at < 16 && line[at] != ' ')
		at++;
	if (at == 16 || line[at + 1] != '/') {
		state->no_path++;
		return;
	}
	start = ++at;
	while (at < sizeof(line) && line[at] != ' ' && line[at] != '?')
		hash = hash * 33 ^ (uint8_t)line[at++];
	state->by_path[hash % 128]++;
	if (at - start > state->longest)
		state->longest = at - start;
}
