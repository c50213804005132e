/* SPDX-License-Identifier: MIT */
/* The nodes of a certificate as they are written, and how their loops lie. */
#include "walk.h"

uint64_t read_number(struct reader *r)
{
	uint64_t n = 0;

	if (r->at < r->size && r->bytes[r->at] < 0x80) /* as mostly */
		return r->bytes[r->at++];
	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint8_t byte = r->at < r->size ? r->bytes[r->at++] : 0xff;

		n |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			/* the shortest form only */
			r->bad |= (shift && !byte) || (shift == 63 && byte > 1);
			return n;
		}
	}
	r->bad = true;
	return 0;
}

int64_t as_signed(uint64_t n)
{
	return (int64_t)(n >> 1) ^ -(int64_t)(n & 1);
}

int64_t read_signed(struct reader *r)
{
	return as_signed(read_number(r));
}

bool walk_bad(struct walk *w, const char *what)
{
	return walk_refuse(w, FAY_RULE_CRT_NODE, w->certificate.at, what);
}

void walk_entry(struct reader *r, struct entry *e)
{
	static const uint8_t numbers[JOIN_KINDS] = {
		[JOIN_NUMBER] = 3, [JOIN_MULTIPLE] = 4, [JOIN_FORM] = 3,
		[JOIN_RANGE] = 2,  [JOIN_FACT] = 5,     [JOIN_FILL] = 4,
		[JOIN_VECTOR] = 1, [JOIN_BYTES] = 1,    [JOIN_UNWRITTEN] = 1
	};
	unsigned count;

	e->kind = read_number(r);
	e->location = read_number(r);
	r->bad |= e->kind >= JOIN_KINDS;
	count = e->kind < JOIN_KINDS ? numbers[e->kind] : 0;
	for (unsigned i = 0; i < count; i++) {
		e->n[i] = read_number(r);
		if (e->kind == JOIN_FORM && i == 2)
			count += 2 * (e->n[2] & 3); /* its terms */
	}
}

static void skip_list(struct reader *r)
{
	uint64_t entries = read_number(r);
	struct entry e;

	r->bad |= entries > JOIN_ENTRIES;
	for (uint64_t i = 0; i < entries && !r->bad; i++)
		walk_entry(r, &e);
}

/* Node i, and where its parts are. `address`: of the node before it. */
static bool parse_node(struct walk *w, uint32_t i, int64_t *address)
{
	struct reader *r = &w->certificate;
	uint64_t first = read_number(r), ends, condition;
	struct node *node = &w->nodes[i];

	*node = (struct node){ .flags = first & (NODE_JOIN | NODE_HEAD) };
	*address = (int64_t)((uint64_t)*address + (uint64_t)read_signed(r));
	if (*address < 0 || (uint64_t)*address >= w->subject->text.size || first >> 2 > UINT32_MAX)
		return walk_bad(w, "a node outside of the code");
	node->address = (uint32_t)*address;
	node->count = (uint32_t)(first >> 2);
	ends = read_number(r);
	condition = (ends & 3) == END_CONDITION ? read_number(r) : 0;
	if ((ends & 3) > END_CONDITION || condition > 15 || ends >> 2 > UINT16_MAX)
		return walk_bad(w, "a node whose end is of no kind");
	node->kind = ends & 3;
	node->condition = (uint8_t)condition;
	node->targets = (uint16_t)(ends >> 2);
	node->end = r->at;
	for (unsigned k = 0; k < node->targets && !r->bad; k++)
		read_number(r);
	if (node->flags & NODE_HEAD) {
		uint64_t body = read_number(r), measure = read_number(r);

		if (!body || body > w->node_count - i || measure > JOIN_MOST * (JOIN_MOST + 1))
			return walk_bad(w, "a loop beyond the last node");
		node->body = (uint32_t)body;
		node->measure = (uint16_t)measure;
		node->bound = 1;
	}
	if (node->flags) {
		node->list = r->at;
		skip_list(r);
	}
	return !r->bad || walk_bad(w, "the certificate is cut off");
}

/* Each node's innermost loop; loops lie within each other or apart. */
static bool nest(struct walk *w)
{
	uint32_t inner = 0; /* 1 + the head of the loop that the last node lies in, or 0 */
	uint32_t depth = 0;

	for (uint32_t i = 0; i < w->node_count; i++) {
		for (; inner && i >= inner - 1 + w->nodes[inner - 1].body; depth--)
			inner = w->nodes[inner - 1].head;
		w->nodes[i].head = inner;
		if (!w->nodes[i].body)
			continue;
		if (inner && i + w->nodes[i].body > inner - 1 + w->nodes[inner - 1].body)
			return walk_bad(w, "two loops overlap");
		if (++depth > NEST_MOST)
			return walk_refuse(w, FAY_RULE_LIM_RESOURCE, w->nodes[i].address,
					   "loops are nested too deeply");
		inner = i + 1;
	}
	return true;
}

bool walk_parse(struct walk *w, uint32_t *behind)
{
	int64_t address = 0;

	for (uint32_t i = 0; i < w->node_count; i++)
		if (!parse_node(w, i, &address))
			return false;
	*behind = w->certificate.at;
	return nest(w);
}
