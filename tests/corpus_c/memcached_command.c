/* SPDX-License-Identifier: MIT */
// The commands of memcached's text protocol, by comparing words of eight bytes.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t get, set, add, delete, incr, unknown;
};

static inline bool begins(const char *line, const char *word, unsigned length)
{
	for (unsigned i = 0; i < length; i++)
		if (line[i] != word[i])
			return false;
	return true;
}

PROBE("memcached!process_command")
{
	char line[8];

	if (READ(line, event->arg[1]))
		return;
	if (begins(line, "get ", 4) || begins(line, "gets ", 5))
		state->get++;
	else if (begins(line, "set ", 4))
		state->set++;
	else if (begins(line, "add ", 4))
		state->add++;
	else if (begins(line, "delete ", 7))
		state->delete++;
	else if (begins(line, "incr ", 5))
		state->incr++;
	else
		state->unknown++;
}
