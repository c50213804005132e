/* SPDX-License-Identifier: MIT */
/*
 * hotlist (Small and Seltzer, 1996): a page-eviction graft searches a linked list for a page. 1024
 * nodes, links are indices, in random order in memory; one search that walks most of the list.
 */
#include "kernel.h"

#define NODES 1024
#define END 0xffffffffu

struct state {
	uint32_t head, found;
	struct {
		uint64_t page;
		uint32_t next, age;
	} node[NODES];
};

KERNEL
{
	uint64_t page = event->arg[0];
	uint32_t at = S.head;

	while (at != END && S.node[at].page != page)
		at = S.node[at].next;
	S.found = at;
}

SETUP
{
	uint16_t order[NODES];

	for (unsigned i = 0; i < NODES; i++)
		order[i] = (uint16_t)i;
	for (unsigned i = NODES - 1; i; i--) {
		unsigned k = setup_random(seed) % (i + 1);
		uint16_t t = order[i];

		order[i] = order[k];
		order[k] = t;
	}
	setup_state->head = order[0];
	for (unsigned i = 0; i < NODES; i++) {
		setup_state->node[order[i]].page = 0x7f0000000000u + 4096u * i;
		setup_state->node[order[i]].next = i + 1 < NODES ? order[i + 1] : END;
		setup_state->node[order[i]].age = i;
	}
	event->arg[0] = 0x7f0000000000u + 4096u * 1000;
}
