/* SPDX-License-Identifier: MIT */
/* Open addressing with linear probing: 256 keys are inserted or found and counted. */
#include "kernel.h"

#define ROWS 1024

struct state {
	uint64_t used, lost;
	struct {
		uint64_t key, count, sum;
	} row[ROWS];
	uint64_t key[256];
};

KERNEL
{
	for (unsigned i = 0; i < 256; i++) {
		uint64_t key = S.key[i], at = key * UINT64_C(0x9e3779b97f4a7c15) >> 32;
		unsigned n;

		for (n = 0; n < 16; n++, at++) {
			at %= ROWS;
			if (!S.row[at].key) {
				S.row[at].key = key;
				S.used++;
			}
			if (S.row[at].key == key)
				break;
		}
		if (n == 16) {
			S.lost++;
			continue;
		}
		S.row[at].count++;
		S.row[at].sum += key;
	}
}

SETUP
{
	event->arg[0] = 256;
	for (unsigned i = 0; i < ROWS; i++)
		setup_state->row[i].key = setup_state->row[i].count = setup_state->row[i].sum = 0;
	for (unsigned i = 0; i < 600; i++) { /* 58% full */
		uint64_t key = i + 1, at = key * UINT64_C(0x9e3779b97f4a7c15) >> 32;

		while (setup_state->row[at %= ROWS].key)
			at++;
		setup_state->row[at].key = key;
	}
	for (unsigned i = 0; i < 256; i++)
		setup_state->key[i] = 1 + setup_random(seed) % 700;
}
