/* SPDX-License-Identifier: MIT */
// A packed status word, taken apart by bitfields and put together again.
// needs: nothing
#include "corpus.h"

struct status {
	unsigned ready : 1, error : 3, queue : 5;
	int balance : 7;
	unsigned generation : 12;
	unsigned last : 4;
};

STATE {
	struct status last;
	uint64_t errors[8];
	int64_t balance;
	uint64_t queued;
};

PROBE("libc!ioctl")
{
	struct status s;
	uint32_t word = (uint32_t)event->arg[3];

	__builtin_memcpy(&s, &word, sizeof(s));
	state->errors[s.error]++;
	state->balance += s.balance;
	state->queued += s.queue;
	if (s.ready) {
		s.generation++;
		s.last = s.queue >> 1;
	}
	state->last = s;
}
