/* SPDX-License-Identifier: MIT */
/* The states that wait at nodes, each with as much of its lists as is used. */
#include "walk.h"

/* What stands in front of each. */
struct stored {
	uint32_t size, node;
	int32_t depth;
	uint16_t slots, vars, facts, fills;
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

/* The lists of a state and its parts that are stored, one behind the other. */
struct parts {
	uint32_t count;
	struct {
		void *at;
		uint32_t size;
	} list[40];
};

static void part(struct parts *p, const void *at, size_t size)
{
	p->list[p->count].at = (void *)at;
	p->list[p->count++].size = (uint32_t)size;
}

static uint32_t find_parts(struct parts *p, const struct stored *head, const struct state *s)
{
	uint32_t size = (uint32_t)sizeof(*head);

	p->count = 0;
	for (unsigned i = 0; i < 16; i++) {
		if (head->registers >> i & 1)
			part(p, &s->reg[i], sizeof(s->reg[i]));
		if (head->vectors >> i & 1)
			part(p, &s->vector[i], sizeof(s->vector[i]));
	}
	part(p, &s->flags, sizeof(s->flags));
	part(p, s->var, head->vars * sizeof(s->var[0]));
	part(p, s->slot, head->slots * sizeof(s->slot[0]));
	part(p, s->fact, head->facts * sizeof(s->fact[0]));
	part(p, s->fill, head->fills * sizeof(s->fill[0]));
	part(p, s->written, ((uint32_t)head->depth + 7) / 8);
	for (unsigned i = 0; i < p->count; i++)
		size += p->list[i].size;
	return (size + 7) & ~7u;
}

void walk_copy(struct state *to, const struct state *from)
{
	memcpy(to, from, offsetof(struct state, written));
	memcpy(to->written, from->written, ((uint32_t)from->depth + 7) / 8);
	memcpy(to->fact, from->fact, from->facts * sizeof(from->fact[0]));
	memcpy(to->fill, from->fill, from->fills * sizeof(from->fill[0]));
	memcpy(to->slot, from->slot, from->slots * sizeof(from->slot[0]));
	memcpy(to->var, from->var, from->vars * sizeof(from->var[0]));
}

bool walk_keep(struct walk *w, uint32_t node, const struct state *s)
{
	struct stored head = { 0, node, s->depth, s->slots, s->vars, s->facts, s->fills, 0, 0 };
	struct parts p;
	uint8_t *to;

	for (unsigned i = 0; i < 16; i++) {
		if (s->reg[i].kind != KIND_NOTHING || s->reg[i].tag != NO_TAG)
			head.registers |= (uint16_t)(1u << i);
		if (s->vector[i])
			head.vectors |= (uint16_t)(1u << i);
	}
	head.size = find_parts(&p, &head, s);
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
	for (unsigned i = 0; i < p.count; i++) {
		memcpy(to, p.list[i].at, p.list[i].size);
		to += p.list[i].size;
	}
	return true;
}

void walk_fetch(const struct walk *w, uint32_t node, struct state *s)
{
	const uint8_t *from = w->store.bytes + w->nodes[node].state - 1;
	struct stored head;
	struct parts p;

	memcpy(&head, from, sizeof(head));
	from += sizeof(head);
	memset(s, 0, offsetof(struct state, written));
	s->depth = head.depth;
	s->slots = head.slots;
	s->vars = head.vars;
	s->facts = head.facts;
	s->fills = head.fills;
	for (unsigned i = 0; i < 16; i++)
		s->reg[i] = value_nothing();
	find_parts(&p, &head, s);
	for (unsigned i = 0; i < p.count; i++) {
		memcpy(p.list[i].at, from, p.list[i].size);
		from += p.list[i].size;
	}
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
