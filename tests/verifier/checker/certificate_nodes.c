/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "certificate_nodes.h"
#include "verifier/checker/walk.h"

static bool read_node(struct claim_node *n, struct reader *r, uint32_t i, int64_t *address)
{
	uint64_t first = read_number(r), ends;

	n->count = first >> 2;
	n->flags = first & 3;
	n->address = *address = (int64_t)((uint64_t)*address + (uint64_t)read_signed(r));
	ends = read_number(r);
	n->kind = ends & 3;
	if (r->bad || ends >> 2 > r->size)
		return false;
	n->targets = (uint32_t)(ends >> 2);
	if (n->kind)
		n->a = read_number(r);
	n->to = calloc(n->targets + 1, sizeof(*n->to));
	for (uint32_t k = 0; k < n->targets; k++)
		n->to[k] = (int64_t)(i + (uint64_t)read_signed(r));
	if (n->flags & NODE_HEAD) {
		n->body = read_number(r);
		n->measure = read_number(r);
	}
	if (!n->flags)
		return !r->bad;
	n->entries = read_number(r);
	n->list = r->bytes + r->at;
	n->list_size = r->at;
	for (uint64_t k = 0; k < n->entries && !r->bad; k++) {
		struct entry e;

		walk_entry(r, &e);
	}
	n->list_size = r->at - n->list_size;
	return !r->bad;
}

static bool read_walk(struct claim *c, struct reader *r)
{
	uint64_t count;
	int64_t address = 0;

	*c = (struct claim){ .before = r->bytes, .before_size = r->at };
	count = read_number(r);
	if (r->bad || count > r->size)
		return false;
	c->nodes = calloc(count + 2, sizeof(*c->nodes));
	for (; c->count < count; c->count++)
		if (!read_node(&c->nodes[c->count], r, c->count, &address))
			break;
	c->rest = r->bytes + r->at;
	c->rest_size = r->size - r->at;
	return c->count == count;
}

bool claim_read(struct claim *c, const uint8_t *bytes, size_t size, bool second)
{
	struct reader r = { .bytes = bytes, .at = HEADER_SIZE, .size = (uint32_t)size };

	if (!second || !read_walk(c, &r))
		return read_walk(c, &r);
	claim_free(c);
	return read_walk(c, &r);
}

void claim_write(const struct claim *c, struct fay_bytes *out)
{
	int64_t address = 0;

	out->size = 0;
	fay_bytes_put(out, c->before, c->before_size);
	fay_bytes_number(out, c->count);
	for (uint32_t i = 0; i < c->count; i++) {
		const struct claim_node *n = &c->nodes[i];

		fay_bytes_number(out, n->count << 2 | n->flags);
		fay_bytes_signed(out, (int64_t)((uint64_t)n->address - (uint64_t)address));
		address = n->address;
		fay_bytes_number(out, (uint64_t)n->targets << 2 | n->kind);
		if (n->kind)
			fay_bytes_number(out, n->a);
		for (uint32_t k = 0; k < n->targets; k++)
			fay_bytes_signed(out, (int64_t)((uint64_t)n->to[k] - i));
		if (n->flags & NODE_HEAD) {
			fay_bytes_number(out, n->body);
			fay_bytes_number(out, n->measure);
		}
		if (n->flags)
			fay_bytes_number(out, n->entries);
		if (n->flags && n->list_size)
			fay_bytes_put(out, n->list, n->list_size);
	}
	if (c->rest_size)
		fay_bytes_put(out, c->rest, c->rest_size);
}

/* Room for one node more behind node i; its own end goes there. */
void claim_cut(struct claim *c, uint32_t i, uint64_t at, int64_t address)
{
	struct claim_node *n;

	c->nodes = realloc(c->nodes, (c->count + 2) * sizeof(*c->nodes));
	n = &c->nodes[i];
	memmove(n + 2, n + 1, (c->count - i - 1) * sizeof(*n));
	c->count++;
	n[1] = *n;
	n[1].address = address;
	n[1].count = n->count - at;
	n[1].flags = 0;
	n[1].body = n[1].measure = n[1].entries = 0;
	n[1].list_size = 0;
	n->count = at;
	n->kind = END_NATURAL;
	n->targets = 1;
	n->to = calloc(1, sizeof(*n->to));
	for (uint32_t j = 0; j < c->count; j++) {
		for (uint32_t k = 0; j != i && k < c->nodes[j].targets; k++)
			c->nodes[j].to[k] += c->nodes[j].to[k] > i;
		if (c->nodes[j].body && j <= i && j + c->nodes[j].body > i)
			c->nodes[j].body++;
	}
	n->to[0] = i + 1;
}

void claim_free(struct claim *c)
{
	for (uint32_t i = 0; i < c->count; i++)
		free(c->nodes[i].to);
	free(c->nodes);
}
