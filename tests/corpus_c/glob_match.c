/* SPDX-License-Identifier: MIT */
// Matches a name against a pattern with * and ?, without recursion.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t matched, other;
};

PROBE("libc!open")
{
	static const char pattern[] = "*a?e*";
	char name[32];
	unsigned n = 0, p = 0, star = sizeof(pattern), mark = 0;

	if (READ(name, event->arg[1]))
		return;
	name[31] = 0;
	for (unsigned steps = 0; steps < 512 && n < 31 && name[n]; steps++) {
		if (p < 5 && (pattern[p] == '?' || pattern[p] == name[n])) {
			p++;
			n++;
		} else if (p < 5 && pattern[p] == '*') {
			star = p++;
			mark = n;
		} else if (star < 5) {
			p = star + 1;
			n = ++mark;
		} else {
			state->other++;
			return;
		}
	}
	while (p < 5 && pattern[p] == '*')
		p++;
	if (p == 5)
		state->matched++;
	else
		state->other++;
}
