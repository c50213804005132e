/* SPDX-License-Identifier: MIT */
// Threads by name: equal, prefix, suffix digits.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t workers, redis, numbered, other;
	uint32_t number[10];
};

PROBE("libc!write")
{
	unsigned length = 0;

	while (length < FAY_COMM_SIZE && event->comm[length])
		length++;
	if (length == 6 && !__builtin_memcmp(event->comm, "worker", 6))
		state->workers++;
	else if (length >= 5 && !__builtin_memcmp(event->comm, "redis", 5))
		state->redis++;
	else if (length && event->comm[length - 1] >= '0' && event->comm[length - 1] <= '9') {
		state->numbered++;
		state->number[event->comm[length - 1] - '0']++;
	} else {
		state->other++;
	}
}
