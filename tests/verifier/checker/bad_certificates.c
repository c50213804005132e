/* SPDX-License-Identifier: MIT */
/*
 * Malformed certificates: each is refused by a rule of its own, and looks at no more instructions
 * than what is linear in its size and the image's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "certificate_nodes.h"
#include "verifier/checker/walk.h"

/* The long code of hostile.s.txt: instructions without a jump, then so many ways to its end. */
#define LONG_CODE 60001u
#define WAYS 64u

static struct fay_bytes made;

static bool about_certificates(enum fay_rule rule)
{
	return rule == FAY_RULE_CRT_FORMAT || rule == FAY_RULE_CRT_NODE ||
	       rule == FAY_RULE_CRT_JOIN || rule == FAY_RULE_LIM_RESOURCE;
}

/* May be refused only, and by a rule about certificates if `own`. */
static void refuse(const struct image *of, const char *what, bool own)
{
	struct check_result r;
	enum fay_rule rule = check(of->bytes, of->size, made.at, made.size, &of->policy, NULL, &r);

	if (rule == FAY_RULE_NONE || (own && !about_certificates(rule)))
		fail(of, what, of->bytes, of->size, made.at, made.size);
	if (r.instructions > 16 * (of->size + made.size))
		fail(of, "more instructions are looked at than is linear", of->bytes, of->size,
		     made.at, made.size);
}

static void start(const struct image *of)
{
	made.size = 0;
	fay_bytes_put(&made, of->certificate, of->certificate_size);
}

/* ---- bytes ---- */

static void damaged_bytes(const struct image *of)
{
	start(of);
	for (size_t n = of->certificate_size; n-- > 0;) {
		made.size = n;
		refuse(of, "cut off", n > HEADER_SIZE);
	}
	start(of);
	fay_bytes_number(&made, 0);
	refuse(of, "something behind it", true);
	start(of);
	fay_bytes_put(&made, of->certificate, of->certificate_size);
	refuse(of, "twice", true);
	for (unsigned i = 0; i < HEADER_SIZE; i++) {
		start(of);
		made.at[i] ^= i == 5 ? 2 : 1;
		refuse(of, "another header", true);
	}
	for (unsigned i = 0; i < image_count; i++)
		if (images[i].certificate &&
		    memcmp(images[i].certificate + 6, of->certificate + 6, FAY_CERTIFICATE_HASH)) {
			made.size = 0;
			fay_bytes_put(&made, images[i].certificate, images[i].certificate_size);
			refuse(of, "another image's", true);
			break;
		}
}

/* Numbers that are longer than they need be, or do not end. */
static void long_numbers(const struct image *of)
{
	static const uint8_t endless[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
					   0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

	for (unsigned n = 1; n < 12; n++) {
		made.size = 0;
		fay_bytes_put(&made, of->certificate, HEADER_SIZE);
		fay_bytes_put(&made, endless, n);
		refuse(of, "a number without an end", true);
		fay_bytes_number(&made, 0);
		refuse(of, "a number of many bytes", true);
	}
}

/* ---- nodes ---- */

static void with(const struct image *of, const struct claim *c, const char *what, bool own)
{
	claim_write(c, &made);
	refuse(of, what, own);
}

static void counts(const struct image *of)
{
	static const uint64_t many[] = { 0,          256,        65535,     65536,     1u << 24,
					 UINT32_MAX, 1ull << 32, INT64_MAX, UINT64_MAX };

	for (unsigned i = 0; i < sizeof(many) / sizeof(many[0]); i++) {
		struct reader r = { .bytes = of->certificate,
				    .at = HEADER_SIZE,
				    .size = (uint32_t)of->certificate_size };

		read_number(&r);
		made.size = 0;
		fay_bytes_put(&made, of->certificate, HEADER_SIZE);
		fay_bytes_number(&made, many[i]);
		fay_bytes_put(&made, r.bytes + r.at, r.size - r.at);
		refuse(of, "another number of nodes", true);
	}
}

/* Whether node `to` is no node of the code of node `of`, which does as well where no way leads. */
static bool elsewhere(const struct claim *c, int64_t to, int64_t of)
{
	return to < 0 || to >= c->count || c->nodes[to].address != c->nodes[of].address;
}

/* Another variable may count the loop as well, as each of two loops' own: what is accepted then is
 * executed, and keeps its promises. */
static void measured(const struct image *of, const struct claim *c)
{
	static struct fay_probe_facts facts[FAY_IMAGE_MAX_PROBES];
	struct check_result r;
	const char *wrong = NULL;

	claim_write(c, &made);
	if (check(of->bytes, of->size, made.at, made.size, &of->policy, facts, &r) == FAY_RULE_NONE)
		wrong = execute(of->bytes, of->size, made.at, made.size, &r, facts);
	if (wrong && !of->policy.allow_rdtsc)
		fail(of, wrong, of->bytes, of->size, made.at, made.size);
}

static void fields(const struct image *of)
{
	static const uint64_t many[] = {
		0, 2, 3, 63, 64, 255, 65535, 65536, 1u << 31, UINT32_MAX, 1ull << 61, INT64_MAX
	};
	struct claim c, whole;

	if (!claim_read(&whole, of->certificate, of->certificate_size, false))
		abort();
	for (unsigned i = 0; i < whole.count * 12; i++) {
		struct claim_node *n;

		if (!claim_read(&c, of->certificate, of->certificate_size, false))
			abort();
		n = &c.nodes[i / 12];
		if (n->count != many[i % 12] && (!many[i % 12] || many[i % 12] > 64)) {
			n->count = many[i % 12];
			with(of, &c, "a node of another length", false);
			n->count = whole.nodes[i / 12].count;
		}
		n->address = (int64_t)((uint64_t)n->address + many[i % 12]);
		if (many[i % 12])
			with(of, &c, "a node elsewhere", false);
		n->address = whole.nodes[i / 12].address;
		if (n->targets) {
			n->to[0] = (int64_t)many[i % 12] - (i & 1 ? 1 : 1000);
			if (elsewhere(&whole, n->to[0], whole.nodes[i / 12].to[0]))
				with(of, &c, "another target", true);
			n->to[0] = i / 12;
			if (elsewhere(&whole, n->to[0], whole.nodes[i / 12].to[0]))
				with(of, &c, "a node that leads to itself", true);
			n->to[0] = 0;
			if (elsewhere(&whole, n->to[0], whole.nodes[i / 12].to[0]))
				with(of, &c, "a node that leads to the first", true);
			n->to[0] = whole.nodes[i / 12].to[0];
		}
		if (n->flags & NODE_HEAD && n->body > 1) {
			n->measure = 0;
			with(of, &c, "a loop without a measure", false);
			n->measure = many[i % 12] > 1 ? many[i % 12] : 60;
			if (n->measure <= n->entries) /* a variable that there may be */
				measured(of, &c);
			else
				with(of, &c, "a loop with another measure", false);
			n->measure = whole.nodes[i / 12].measure;
			n->body = c.count - i / 12 + 1 + many[i % 12];
			with(of, &c, "a loop beyond the last node", true);
			n->body = 0;
			with(of, &c, "a loop of no nodes", true);
		}
		claim_free(&c);
	}
	claim_free(&whole);
}

/* Two loops that lie across one another: heads at 0.., with ends in the wrong order. */
static void overlapping(const struct image *of)
{
	struct claim c;

	for (unsigned at = 1;; at++) {
		if (!claim_read(&c, of->certificate, of->certificate_size, false))
			abort();
		if (at + 2 >= c.count) {
			claim_free(&c);
			return;
		}
		for (unsigned i = 0; i < 2; i++) {
			c.nodes[at + i].flags |= NODE_HEAD;
			c.nodes[at + i].body = 2;
			c.nodes[at + i].measure = 1;
		}
		with(of, &c, "loops that overlap", true);
		claim_free(&c);
	}
}

/* ---- too much of it ---- */

static void begin(const struct image *of, unsigned nodes)
{
	struct check_subject s;

	fay_read_image(of->bytes, of->size, &s);
	made.size = 0;
	put_header(&s, false, &made);
	fay_bytes_number(&made, nodes);
}

static void linear(const struct image *of, const char *what)
{
	struct check_result r;

	check(of->bytes, of->size, made.at, made.size, &of->policy, NULL, &r);
	if (r.instructions > 16 * (of->size + made.size))
		fail(of, what, of->bytes, of->size, made.at, made.size);
}

/* All of long code over and over, in nodes that no way leads to. */
static void over_and_over(const struct image *of, unsigned nodes)
{
	begin(of, nodes);
	for (unsigned i = 0; i < nodes; i++) {
		fay_bytes_number(&made, LONG_CODE << 2);
		fay_bytes_signed(&made, 0);
		fay_bytes_number(&made, 0);
	}
	linear(of, "the same code over and over");
}

/* A list whose variable comes last, read again for each of the 64 ways to the end of the code. */
static void long_list(const struct image *of, unsigned entries)
{
	static uint32_t starts[65536];
	struct check_subject s;
	uint32_t before = 0;

	fay_read_image(of->bytes, of->size, &s);
	sweep(&s, starts, 65536);
	begin(of, WAYS + 1);
	for (unsigned i = 0; i < WAYS; i++) {
		uint32_t first = i ? LONG_CODE + 2 * i : 0;

		fay_bytes_number(&made, (i ? 2 : LONG_CODE + 2) << 2);
		fay_bytes_signed(&made, (int64_t)starts[first] - before);
		before = starts[first];
		fay_bytes_number(&made, 2 << 2);
		fay_bytes_signed(&made, WAYS - i);
		fay_bytes_signed(&made, 1);
	}
	fay_bytes_number(&made, 1 << 2 | NODE_JOIN);
	fay_bytes_signed(&made, (int64_t)starts[LONG_CODE + 2 * WAYS] - before);
	fay_bytes_number(&made, 0);
	fay_bytes_number(&made, entries + 1);
	for (unsigned i = 0; i < entries; i++) {
		fay_bytes_number(&made, JOIN_UNDEFINED);
		fay_bytes_number(&made, 0);
	}
	fay_bytes_number(&made, JOIN_NUMBER);
	fay_bytes_number(&made, 0);
	fay_bytes_number(&made, 64);
	fay_bytes_signed(&made, 0);
	fay_bytes_number(&made, 255);
}

void bad_certificates(const struct image *of)
{
	struct check_subject s;
	struct check_result r;

	if (fay_read_image(of->bytes, of->size, &s).rule != FAY_RULE_NONE)
		return;
	if (s.text.size > 50000) {
		over_and_over(of, 200);
		long_list(of, 0);
		if (check(of->bytes, of->size, made.at, made.size, &of->policy, NULL, &r) !=
		    FAY_RULE_NONE)
			fail(of, r.refusal.what, of->bytes, of->size, made.at, made.size);
		long_list(of, 20000);
		refuse(of, "a list without an end", true);
	} else if (of->certificate) {
		damaged_bytes(of);
		long_numbers(of);
		counts(of);
		fields(of);
		overlapping(of);
	}
}
