/* SPDX-License-Identifier: MIT */
/* The states that wait at nodes, each with as much of its lists as is used. */
#include "walk.h"

/* What stands in front of each. */
struct stored {
	uint32_t size, node;
	uint16_t registers, vectors; /* masks of those that something is known of */
};

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

/* The next part of a state goes to where it is stored, or comes from there. */
static void move(uint8_t **at, void *part, size_t size, bool out)
{
	memcpy(out ? *at : part, out ? part : *at, size);
	*at += size;
}

/* All parts of a state, the lists' lengths first; what is behind them. */
static uint8_t *move_parts(const struct stored *head, struct state *s, uint8_t *at, bool out)
{
	move(&at, s, offsetof(struct state, reg), out);
	for (unsigned left = head->registers; left; left &= left - 1)
		move(&at, &s->reg[__builtin_ctz(left)], sizeof(s->reg[0]), out);
	for (unsigned left = head->vectors; left; left &= left - 1)
		move(&at, &s->vector[__builtin_ctz(left)], sizeof(s->vector[0]), out);
	move(&at, &s->flags, sizeof(s->flags), out);
	move(&at, s->var, s->vars * sizeof(s->var[0]), out);
	move(&at, s->slot, s->slots * sizeof(s->slot[0]), out);
	move(&at, s->fact, s->facts * sizeof(s->fact[0]), out);
	move(&at, s->fill, s->fills * sizeof(s->fill[0]), out);
	move(&at, s->written, ((uint32_t)s->depth + 7) / 8, out);
	return at;
}

bool walk_keep(struct walk *w, uint32_t node, struct state *s)
{
	struct stored head = { .node = node };
	size_t most = sizeof(head) + 8 + offsetof(struct state, written) +
		      s->slots * sizeof(s->slot[0]) + s->vars * sizeof(s->var[0]) +
		      s->facts * sizeof(s->fact[0]) + s->fills * sizeof(s->fill[0]) +
		      ((uint32_t)s->depth + 7) / 8;
	uint8_t *to;

	/* no more often than a quarter of the room was freed: linear in what is stored */
	if (most > w->store.size - w->store.used && w->store.free > w->store.size / 4)
		compact(w);
	if (most > w->store.size - w->store.used)
		return walk_refuse(w, FAY_RULE_LIM_RESOURCE, w->nodes[node].address,
				   "too many states wait at once");
	for (unsigned i = 0; i < 16; i++) {
		head.registers |= (uint16_t)(!value_unknown(&s->reg[i]) << i);
		head.vectors |= (uint16_t)((s->vector[i] != 0) << i);
	}
	to = w->store.bytes + w->store.used;
	head.size = (uint32_t)(move_parts(&head, s, to + sizeof(head), true) - to + 7) & ~7u;
	memcpy(to, &head, sizeof(head));
	w->nodes[node].state = w->store.used + 1;
	w->store.used += head.size;
	return true;
}

void walk_fetch(const struct walk *w, uint32_t node, struct state *s)
{
	uint8_t *from = w->store.bytes + w->nodes[node].state - 1;
	struct stored head;

	memcpy(&head, from, sizeof(head));
	for (unsigned i = 0; i < 16; i++)
		s->reg[i] = value_nothing();
	memset(s->vector, 0, sizeof(s->vector));
	move_parts(&head, s, from + sizeof(head), false);
}

void walk_drop(struct walk *w, uint32_t node)
{
	struct stored head;

	if (!w->nodes[node].state || w->nodes[node].state == NODE_IN_HAND)
		return;
	memcpy(&head, w->store.bytes + w->nodes[node].state - 1, sizeof(head));
	head.node = UINT32_MAX;
	memcpy(w->store.bytes + w->nodes[node].state - 1, &head, sizeof(head));
	w->store.free += head.size;
}
