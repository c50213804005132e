/* SPDX-License-Identifier: MIT */
/*
 * Logical log-structured disk (Small and Seltzer, 1996): every write goes to the end of the log;
 * the map from logical to physical blocks, its inverse and each segment's count of live blocks are
 * kept. 256 requests a call, 3 of 4 are writes.
 */
#include "kernel.h"

#define BLOCKS 4096
#define SEGMENT 64
#define NONE 0xffffffffu

struct state {
	uint32_t next, checksum;
	uint32_t physical[BLOCKS]; /* by logical block */
	uint32_t logical[BLOCKS];  /* by physical block */
	uint32_t live[BLOCKS / SEGMENT];
	struct {
		uint32_t block, write;
	} request[256];
};

KERNEL
{
	uint32_t next = S.next, checksum = 0;

	for (unsigned i = 0; i < 256; i++) {
		uint32_t block = S.request[i].block, old = S.physical[block];

		if (!S.request[i].write) {
			checksum = checksum * 31 + old;
			continue;
		}
		if (old != NONE) {
			S.live[old / SEGMENT]--;
			S.logical[old] = NONE;
		}
		S.physical[block] = next;
		S.logical[next] = block;
		S.live[next / SEGMENT]++;
		next = (next + 1) % BLOCKS;
	}
	S.next = next;
	S.checksum = checksum;
}

SETUP
{
	setup_state->next = 1000;
	event->arg[0] = 256;
	for (unsigned i = 0; i < BLOCKS; i++) {
		setup_state->physical[i] = i < 2048 ? i ^ 1365 : NONE;
		setup_state->logical[i] = i < 2048 ? i ^ 1365 : NONE;
	}
	for (unsigned i = 0; i < BLOCKS / SEGMENT; i++)
		setup_state->live[i] = i < 2048 / SEGMENT ? SEGMENT : 0;
	for (unsigned i = 0; i < 256; i++) {
		setup_state->request[i].block = setup_random(seed) % BLOCKS;
		setup_state->request[i].write = setup_random(seed) % 4 != 0;
	}
}
