/* SPDX-License-Identifier: MIT */
/* The states that wait at nodes, each with as much of its lists as is used. */
#include "walk.h"

/* What stands in front of each. */
struct stored {
	uint32_t size, node;
};

static uint32_t stack_bytes(const struct state *s)
{
	return ((uint32_t)s->depth + 7) / 8;
}

/* Moves what is in use together. */
static void compact(struct walk *w)
{
	struct store *store = &w->store;
	uint32_t to = 0;

	for (uint32_t at = 0; at < store->used;) {
		struct stored head;

		memcpy(&head, store->bytes + at, sizeof(head));
		if (head.node != UINT32_MAX) {
			w->nodes[head.node].state = to + 1;
			for (uint32_t i = 0; i < head.size && to != at; i++)
				store->bytes[to + i] = store->bytes[at + i];
			to += head.size;
		}
		at += head.size;
	}
	store->used = to;
	store->free = 0;
}

bool walk_keep(struct walk *w, uint32_t node, const struct state *s)
{
	uint32_t fixed = offsetof(struct state, written), stack = stack_bytes(s),
		 slots = s->slots * (uint32_t)sizeof(s->slot[0]),
		 vars = s->vars * (uint32_t)sizeof(s->var[0]);
	struct stored head = { (uint32_t)sizeof(head) + fixed + stack + slots + vars, node };
	uint8_t *to;

	head.size = (head.size + 7) & ~7u;
	/* no more often than a quarter of the room was freed: linear in what is stored */
	if (head.size > w->store.size - w->store.used && w->store.free > w->store.size / 4)
		compact(w);
	if (head.size > w->store.size - w->store.used)
		return walk_refuse(w, FAY_RULE_LIM_RESOURCE, w->nodes[node].address,
				   "too many states wait at once");
	to = w->store.bytes + w->store.used;
	w->nodes[node].state = w->store.used + 1;
	w->store.used += head.size;
	memcpy(to, &head, sizeof(head));
	to += sizeof(head);
	memcpy(to, s, fixed);
	memcpy(to + fixed, s->written, stack);
	memcpy(to + fixed + stack, s->slot, slots);
	memcpy(to + fixed + stack + slots, s->var, vars);
	return true;
}

void walk_fetch(const struct walk *w, uint32_t node, struct state *s)
{
	const uint8_t *from = w->store.bytes + w->nodes[node].state - 1 + sizeof(struct stored);
	uint32_t fixed = offsetof(struct state, written), stack, slots;

	memcpy(s, from, fixed);
	stack = stack_bytes(s);
	slots = s->slots * (uint32_t)sizeof(s->slot[0]);
	memcpy(s->written, from + fixed, stack);
	for (uint32_t i = stack; i < sizeof(s->written); i++)
		s->written[i] = 0;
	memcpy(s->slot, from + fixed + stack, slots);
	memcpy(s->var, from + fixed + stack + slots, s->vars * sizeof(s->var[0]));
}

void walk_drop(struct walk *w, uint32_t node)
{
	struct stored head;

	if (!w->nodes[node].state)
		return;
	memcpy(&head, w->store.bytes + w->nodes[node].state - 1, sizeof(head));
	head.node = UINT32_MAX;
	memcpy(w->store.bytes + w->nodes[node].state - 1, &head, sizeof(head));
	w->store.free += head.size;
}
