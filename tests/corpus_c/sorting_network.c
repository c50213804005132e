/* SPDX-License-Identifier: MIT */
// Batcher's odd-even network for eight values: 19 comparators.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t smallest, largest, middle;
};

#define ORDER(a, b)                             \
	do {                                    \
		uint64_t x_ = v[a], y_ = v[b];  \
		v[a] = x_ < y_ ? x_ : y_;       \
		v[b] = x_ < y_ ? y_ : x_;       \
	} while (0)

PROBE("libc!write")
{
	uint64_t v[8];

	if (READ(v, event->arg[1]))
		return;
	ORDER(0, 1); ORDER(2, 3); ORDER(4, 5); ORDER(6, 7);
	ORDER(0, 2); ORDER(1, 3); ORDER(4, 6); ORDER(5, 7);
	ORDER(1, 2); ORDER(5, 6); ORDER(0, 4); ORDER(3, 7);
	ORDER(1, 5); ORDER(2, 6);
	ORDER(1, 4); ORDER(3, 6);
	ORDER(2, 4); ORDER(3, 5);
	ORDER(3, 4);
	state->smallest = v[0];
	state->largest = v[7];
	state->middle = v[3] / 2 + v[4] / 2;
}
