/* SPDX-License-Identifier: MIT */
/*
 * The certificates of a lying prover. Of an image that must be refused the honest writer is made to
 * write down what it has when it gives up; then, before some instruction of it, a join claims what
 * is not so, in every form that the format has, or a head has another measure. What follows is made
 * to need nothing: joins forget all that they may.
 */
#include <stdlib.h>
#include <string.h>

#include "certificate_nodes.h"
#include "verifier/image/image.h"
#include "verifier/prover/certify/certify_parts.h"

#define FORMS 40 /* of a lie about one place */

/* ---- what the honest writer has ---- */

/* A certificate that gets as far as the prover does. */
static bool write_part(const struct image *of, const struct check_subject *s, struct fay_bytes *out)
{
	struct fay_arena *arena = fay_arena_create((size_t)64 << 20);
	struct fay_image image;
	struct fay_cfg cfg = { 0 };
	struct fay_graph graph = { 0 };
	struct fay_certify c = {
		.subject = s, .policy = &of->policy, .cfg = &cfg, .graph = &graph
	};
	bool ok = fay_image_parse(arena, of->bytes, of->size, &image).rule == FAY_RULE_NONE &&
		  fay_cfg_build(&cfg, arena, &image, 0).rule == FAY_RULE_NONE &&
		  find_tables(of, &cfg);

	put_header(s, of->policy.speculation_confined, out);
	for (uint32_t i = 0; ok && i < s->probe_count; i++) {
		struct check_probe probe = check_probe(s, i);

		ok = fay_graph_build(&graph, &cfg, probe.code).rule == FAY_RULE_NONE;
		for (unsigned walk = 0; ok && walk < 1u + of->policy.speculation_confined; walk++) {
			c.mispredicted = walk;
			certify_attempt(&c, EFFORT_NEEDED, true, out);
		}
		fay_graph_deinit(&graph);
		memset(&graph, 0, sizeof(graph));
	}
	fay_cfg_deinit(&cfg);
	fay_arena_destroy(arena);
	return ok;
}

/* Nodes that several ways lead to and that the writer did not come to. */
static void weaken(struct claim *c)
{
	static struct fay_bytes list;
	static unsigned entries;

	if (!list.size) {
		fay_bytes_number(&list, JOIN_REGISTERS);
		fay_bytes_number(&list, 0x0fc7);
		fay_bytes_number(&list, JOIN_UNDEFINED);
		fay_bytes_number(&list, 31);
		entries = 2;
		for (unsigned r = 0; r < 16; r++, entries++) {
			fay_bytes_number(&list, JOIN_VECTOR);
			fay_bytes_number(&list, r);
			fay_bytes_number(&list, 0);
		}
	}
	for (uint32_t i = 0; i < c->count; i++) {
		unsigned ways = 0;

		for (uint32_t j = 0; j < c->count; j++)
			for (uint32_t k = 0; k < c->nodes[j].targets; k++)
				ways += c->nodes[j].to[k] == i;
		if (ways < 2 || c->nodes[i].entries)
			continue;
		c->nodes[i].flags |= c->nodes[i].flags ? 0 : NODE_JOIN;
		c->nodes[i].entries = entries;
		c->nodes[i].list = list.at;
		c->nodes[i].list_size = list.size;
	}
}

/* ---- lies ---- */

static void number(struct fay_bytes *b, uint64_t location, unsigned bits, int64_t lo, int64_t hi)
{
	fay_bytes_number(b, JOIN_NUMBER);
	fay_bytes_number(b, location);
	fay_bytes_number(b, bits);
	fay_bytes_signed(b, lo);
	fay_bytes_number(b, (uint64_t)hi - (uint64_t)lo);
}

static void form(struct fay_bytes *b, uint64_t location, unsigned bits, int64_t c, int64_t k)
{
	fay_bytes_number(b, JOIN_FORM);
	fay_bytes_number(b, location);
	fay_bytes_number(b, bits);
	fay_bytes_signed(b, c);
	fay_bytes_number(b, k != 0);
	if (k) {
		fay_bytes_number(b, 0);
		fay_bytes_signed(b, k);
	}
}

static void fact(struct fay_bytes *b, uint64_t x, uint64_t y, int64_t kx, int64_t ky, int64_t lo,
		 uint64_t size)
{
	fay_bytes_number(b, JOIN_FACT);
	fay_bytes_number(b, x);
	fay_bytes_number(b, y);
	fay_bytes_signed(b, kx);
	fay_bytes_signed(b, ky);
	fay_bytes_signed(b, lo);
	fay_bytes_number(b, size);
}

/* Lie number `which` about what is at the location; how many entries it has. */
static unsigned write_lie(struct fay_bytes *b, unsigned which, uint64_t at)
{
	static const struct {
		int8_t lo, hi;
	} small[] = { { 0, 1 }, { 0, 7 }, { 1, 8 }, { -8, -1 }, { -1, 0 }, { -64, -8 }, { 8, 56 } };
	static const int64_t constants[] = { 0, 1, 8, -8, -16, INT64_MIN };
	static const uint8_t widths[] = { 32, 16, 8, 4, 1 };
	int64_t n;

	b->size = 0;
	if (which < 7) {
		number(b, at, 64, small[which].lo, small[which].hi);
		return 1;
	}
	which -= 7;
	if (which < 5) {
		number(b, at, widths[which], which ? 0 : -1, 1);
		return 1;
	}
	which -= 5;
	if (which < 6) {
		form(b, at, which & 1 ? 64 : 32, constants[which], 0);
		return 1;
	}
	which -= 6;
	switch (which) {
	case 0: /* of fewer bits, then of more */
	case 1:
	case 2:
		number(b, at, widths[which], -1, 0);
		form(b, at, 64, 0, 1);
		return 2;
	case 3: /* of more, then of fewer */
	case 4:
	case 5:
		number(b, at, 64, which == 3 ? INT64_MIN : 0, which == 3 ? INT64_MAX : -1);
		form(b, at, which == 5 ? 3 : 6, 0, 1);
		return 2;
	case 6: /* moved, and scaled */
	case 7:
		number(b, at, 64, INT64_MIN, INT64_MAX);
		form(b, at, 64, which == 6 ? 8 : 0, which == 6 ? 1 : 2);
		return 2;
	case 8:
	case 9:
	case 10:
		fay_bytes_number(b, JOIN_MULTIPLE);
		fay_bytes_number(b, at);
		fay_bytes_number(b, which == 8 ? 1 : which == 9 ? 8 : 64);
		fay_bytes_signed(b, which == 8 ? 8 : 0);
		fay_bytes_signed(b, 0);
		fay_bytes_number(b, which == 8 ? UINT64_MAX : 6);
		return 1;
	case 11:
	case 12:
	case 13:
		fay_bytes_number(b, JOIN_RANGE);
		fay_bytes_number(b, at);
		fay_bytes_signed(b, which == 13 ? -8 : 0);
		fay_bytes_number(b, which == 12 ? 55 : 1);
		return 1;
	case 14: /* two numbers near each other */
	case 15:
	case 16:
		n = (int64_t)below(16);
		number(b, at, 64, 0, -1);
		number(b, (uint64_t)n, 64, 0, -1);
		fact(b, at, (uint64_t)n, 1, which == 16 ? -(1ll << 60) : -1, which == 15 ? -8 : 0,
		     8);
		return 3;
	case 17: fact(b, at, below(16), 1, -1, 0, 7); return 1;
	case 18:
	case 19:
	case 20:
		fay_bytes_number(b, JOIN_FILL);
		fay_bytes_number(b, at);
		fay_bytes_number(b, which == 19);
		fay_bytes_signed(b, -8 * (int64_t)below(9));
		fay_bytes_signed(b, which == 20 ? 0 : (int64_t)below(3) - 1);
		fay_bytes_signed(b, which == 18 ? 0 : -8 * (int64_t)below(9));
		return 1;
	default: /* two at once, of two places */
		number(b, at, 64, 0, 7);
		number(b, below(16), 64, 0, 7);
		return 2;
	}
}

static uint64_t location_of_number(unsigned n)
{
	static const uint8_t sizes[] = { 8, 4, 1 };

	if (n < 16)
		return n;
	n -= 16;
	return LOCATION_STACK + 4 * (8 * (n % 6 + 1) - 1) +
	       (uint64_t)__builtin_ctz(sizes[n / 6 % 3]);
}

/* Other targets than there are, and more or fewer. */
static void mislead(struct claim *c, struct claim_node *n)
{
	uint32_t most = n->targets + (uint32_t)below(3);

	n->to = realloc(n->to, (most + 1) * sizeof(*n->to));
	for (uint32_t k = n->targets; k < most; k++)
		n->to[k] = (int64_t)below(c->count);
	n->targets = most - (uint32_t)below(most < 3 ? most + 1 : 3);
	if (n->targets)
		n->to[below(n->targets)] = n->to[below(n->targets)];
}

/* One lie before one instruction. */
static void tell(const struct image *of, const struct check_subject *s,
		 const struct fay_bytes *from)
{
	static uint32_t starts[65536];
	static struct fay_bytes lie, list, out;
	uint32_t count = sweep(s, starts, 65536), i, at, k;
	struct check_result r;
	struct claim c;
	struct claim_node *n;
	unsigned entries;

	bool second = of->policy.speculation_confined && below(3);

	if (!claim_read(&c, from->at, from->size, second) || !c.count)
		goto done;
	weaken(&c);
	i = (uint32_t)below(c.count);
	n = &c.nodes[i];
	for (at = 0; at < count && starts[at] != n->address; at++)
		;
	k = (uint32_t)below(n->count);
	if (k && at + n->count <= count) {
		claim_cut(&c, i, k, starts[at + k]);
		n = &c.nodes[++i];
	}
	if (n->flags & NODE_HEAD && below(2))
		n->measure = below(5);
	if (n->targets > 2 && below(2))
		mislead(&c, n);
	entries = write_lie(&lie, (unsigned)below(FORMS),
			    location_of_number((unsigned)below(below(3) ? 16 : 34)));
	list.size = 0;
	if (n->list_size)
		fay_bytes_put(&list, n->list, n->list_size);
	fay_bytes_put(&list, lie.at, lie.size);
	n->list = list.at;
	n->list_size = list.size;
	n->entries += entries;
	n->flags |= i && !n->flags ? NODE_JOIN : 0;
	claim_write(&c, &out);
	if (check(of->bytes, of->size, out.at, out.size, &of->policy, NULL, &r) == FAY_RULE_NONE)
		fail(of, "a lying certificate is accepted", of->bytes, of->size, out.at, out.size);
done:
	claim_free(&c);
}

void lie(const struct image *of, unsigned most)
{
	struct fay_bytes part = { 0 };
	struct check_subject s;
	struct check_result r;

	if (of->legal || of->text || fay_read_image(of->bytes, of->size, &s).rule != FAY_RULE_NONE)
		return;
	if (write_part(of, &s, &part)) {
		if (check(of->bytes, of->size, part.at, part.size, &of->policy, NULL, &r) ==
		    FAY_RULE_NONE)
			fail(of, "accepted with the writer's part", of->bytes, of->size, part.at,
			     part.size);
		for (unsigned i = 0; i < most; i++)
			tell(of, &s, &part);
	}
	free(part.at);
}
