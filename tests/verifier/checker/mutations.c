/* SPDX-License-Identifier: MIT */
/*
 * Changed certificates, and changed code under honest ones. Whatever is still accepted is executed,
 * each step looked at, and must keep the promises of the facts that the checker gives. What has
 * been executed with the same promises before is so only now and then, with other inputs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "certificate_nodes.h"
#include "verifier/checker/walk.h"

#define NUMBERS 65536

struct trial {
	uint8_t *file, *certificate;
	size_t size, certificate_size;
};

/* ---- the certificate's numbers ---- */

static uint64_t telling(void)
{
	static const uint64_t few[] = {
		0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 64, 127, 128, 255
	};
	uint64_t n;

	switch (below(6)) {
	case 0:
	case 1: return few[below(16)];
	case 2: n = (uint64_t)1 << below(64); break;
	case 3: n = ((uint64_t)1 << below(64)) - 1; break;
	case 4: n = -((uint64_t)1 << below(64)); break;
	default: return below(64);
	}
	return below(2) ? n : n << 1 ^ (uint64_t)((int64_t)n >> 63); /* as signed */
}

static void change_numbers(struct trial *t)
{
	static uint64_t numbers[NUMBERS];
	struct reader r = { .bytes = t->certificate,
			    .at = HEADER_SIZE,
			    .size = (uint32_t)t->certificate_size };
	struct fay_bytes out = { 0 };
	unsigned n = 0, times = 1 + (unsigned)below(3);
	int64_t off;

	while (r.at < r.size && n + 8 < NUMBERS)
		numbers[n++] = read_number(&r);
	while (times-- && n > 1) {
		unsigned i = (unsigned)below(n), j = (unsigned)below(n);

		switch (below(8)) {
		case 0:
		case 1: numbers[i] = telling(); break;
		case 2:
		case 3: numbers[i] += below(2) ? 1 : -1ull; break;
		case 4:
			off = (int64_t)below(33) - 16;
			numbers[i] += (uint64_t)off;
			break;
		case 5: numbers[i] = numbers[j]; break;
		case 6: /* one more */
			memmove(numbers + i + 1, numbers + i, (n - i) * sizeof(*numbers));
			numbers[i] = telling();
			n++;
			break;
		default: n--; memmove(numbers + i, numbers + i + 1, (n - i) * sizeof(*numbers));
		}
	}
	fay_bytes_put(&out, t->certificate, HEADER_SIZE);
	for (unsigned i = 0; i < n; i++)
		fay_bytes_number(&out, numbers[i]);
	memcpy(t->certificate, out.at, out.size);
	t->certificate_size = out.size;
	free(out.at);
}

/* ---- its nodes ---- */

static void add_entry(struct claim_node *n, const struct fay_bytes *entry, bool first)
{
	struct fay_bytes list = { 0 };

	if (first)
		fay_bytes_put(&list, entry->at, entry->size);
	if (n->list_size)
		fay_bytes_put(&list, n->list, n->list_size);
	if (!first)
		fay_bytes_put(&list, entry->at, entry->size);
	n->list = list.at; /* kept until the end: few bytes */
	n->list_size = list.size;
	n->entries++;
	n->flags |= n->flags ? 0 : NODE_JOIN;
}

static void random_entry(struct fay_bytes *out)
{
	static const uint8_t numbers[] = { 0, 0, 3, 4, 2, 2, 5, 4, 0, 1, 1, 1 };
	unsigned kind = (unsigned)below(12);

	out->size = 0;
	fay_bytes_number(out, kind);
	fay_bytes_number(out,
			 below(3) ? below(16) : LOCATION_STACK + 4 * (8 * (1 + below(6)) - 1) + 3);
	for (unsigned i = 0; i < numbers[kind]; i++)
		fay_bytes_number(out, kind == JOIN_NUMBER && !i && below(2) ? 64 : telling());
}

static void change_nodes(struct trial *t, const struct check_subject *s)
{
	static uint32_t starts[65536];
	uint32_t count = sweep(s, starts, 65536), i, at;
	struct fay_bytes out = { 0 }, entry = { 0 };
	struct claim c;

	if (claim_read(&c, t->certificate, t->certificate_size, below(2)) && c.count) {
		i = (uint32_t)below(c.count);
		for (at = 0; at < count && starts[at] != c.nodes[i].address; at++)
			;
		switch (below(5)) {
		case 0: /* a join in the middle, that claims something */
			if (c.nodes[i].count > 1 && at + c.nodes[i].count <= count) {
				uint64_t k = 1 + below(c.nodes[i].count - 1);

				claim_cut(&c, i, k, starts[at + k]);
				i++;
			}
			/* fall through */
		case 1:
		case 2:
			random_entry(&entry);
			add_entry(&c.nodes[i], &entry, below(2));
			break;
		case 3:
			if (c.nodes[i].targets)
				c.nodes[i].to[below(c.nodes[i].targets)] = (int64_t)below(c.count);
			break;
		default:
			c.nodes[i].flags ^= 1u << below(2);
			c.nodes[i].body = 1 + below(c.count - i);
			c.nodes[i].measure = below(4);
		}
		claim_write(&c, &out);
		memcpy(t->certificate, out.at, out.size);
		t->certificate_size = out.size;
	}
	claim_free(&c);
	free(out.at);
	free(entry.at);
}

/* ---- bytes ---- */

static void change_bytes(struct trial *t)
{
	uint8_t *c = t->certificate;
	size_t at = HEADER_SIZE + below(t->certificate_size - HEADER_SIZE), n, from;
	const struct image *other = &images[below(image_count)];

	switch (below(6)) {
	case 0: c[at] ^= (uint8_t)(1u << below(8)); break;
	case 1: c[at] = (uint8_t)telling(); break;
	case 2: t->certificate_size = at; break;
	case 3:
		n = 1 + below(4);
		memmove(c + at + n, c + at, t->certificate_size - at);
		t->certificate_size += n;
		break;
	case 4:
		n = 1 + below(4);
		n = n < t->certificate_size - at ? n : t->certificate_size - at;
		memmove(c + at, c + at + n, t->certificate_size - at - n);
		t->certificate_size -= n;
		break;
	default: /* a part of another one */
		if (!other->certificate)
			return;
		from = HEADER_SIZE + below(other->certificate_size - HEADER_SIZE);
		n = 1 + below(other->certificate_size - from);
		if (at + n > FILE_MOST)
			return;
		memcpy(c + at, other->certificate + from, n);
		if (at + n > t->certificate_size)
			t->certificate_size = at + n;
	}
}

/* ---- the code ---- */

static void change_code(struct trial *t, const struct check_subject *s)
{
	static const uint8_t bytes[] = { 0,    1,    7,    8,    0x7f, 0x80, 0xff, 0xf8,
					 0x40, 0x48, 0x66, 0xf0, 0xc3, 0x90, 0x0f, 0xc0 };
	static uint32_t starts[65536];
	uint32_t n = sweep(s, starts, 65535), i = n ? (uint32_t)below(n) : 0;
	uint8_t *code = t->file + (s->text.bytes - t->file);
	uint64_t at = n ? starts[i] : 0, end = i + 1 < n ? starts[i + 1] : s->text.size;
	uint64_t last = end - 1;

	if (!n || end > s->text.size)
		return;
	switch (below(6)) {
	case 0: code[at + below(end - at)] ^= (uint8_t)(1u << below(8)); break;
	case 1: code[at + below(end - at)] = bytes[below(sizeof(bytes))]; break;
	case 2: code[last] = (uint8_t)(code[last] + below(17) - 8); break;
	case 3: code[last] ^= (uint8_t)(below(8) << (below(2) ? 3 : 0)); break;
	case 4:
		if (end - at > 2)
			code[at + 2] ^= (uint8_t)(below(8) << (below(2) ? 3 : 0));
		break;
	default: memset(code + at, 0x90, end - at);
	}
}

/* ---- all together ---- */

struct mutation_counts mutation_counts[MUTATION_KINDS];

/*
 * Whether the image's code has been executed with these promises: a table of hashes, for one image
 * at a time. It forgets where it is full.
 */
#define RUN_MOST (1u << 20)

static uint64_t mix(uint64_t hash, const void *from, size_t size)
{
	const uint8_t *bytes = from;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3u; /* FNV-1a */
	return hash;
}

static bool was_run(uint64_t *run, const struct check_subject *s, const struct check_result *r,
		    const struct fay_probe_facts *facts)
{
	uint64_t hash = mix(0xcbf29ce484222325u, s->text.bytes, s->text.size);
	uint64_t *at;
	bool known;

	for (uint32_t i = 0; i < s->probe_count && i < 4; i++) {
		struct fay_probe_facts f;

		memcpy(&f, &facts[i], sizeof(f));
		f.pattern = NULL; /* where it lies */
		hash = mix(hash, &f, sizeof(f));
	}
	hash = mix(hash, r->jumps, r->jump_count * sizeof(*r->jumps));
	at = &run[hash % RUN_MOST];
	known = *at == hash;
	*at = hash;
	return known;
}

/* The image and its certificate, one of them changed. */
static void change(struct trial *t, const struct check_subject *s, enum mutation kind)
{
	if (kind == MUTATION_CODE) {
		change_code(t, s);
		fay_read_fingerprint(s, t->certificate + 6);
		return;
	}
	switch (below(6)) {
	case 0:
	case 1:
	case 2: change_numbers(t); break;
	case 3:
	case 4: change_nodes(t, s); break;
	default: change_bytes(t);
	}
}

void mutate(const struct image *of, enum mutation kind, unsigned n)
{
	static uint8_t file[FILE_MOST], certificate[4 * FILE_MOST];
	static uint64_t run[RUN_MOST];
	struct mutation_counts *count = &mutation_counts[kind];
	struct fay_probe_facts facts[4];
	struct check_subject s;
	struct check_result r;
	const char *wrong;

	if (of->size > 1 << 16)
		n = (n + 19) / 20;
	memset(run, 0, sizeof(run));
	memcpy(file, of->bytes, of->size);
	if (fay_read_extension(file, of->size, of->interface, &s).rule != FAY_RULE_NONE)
		return;
	for (unsigned i = 0; i < n; i++) {
		struct trial t = { file, certificate, of->size, of->certificate_size };

		memcpy(file, of->bytes, of->size);
		memcpy(certificate, of->certificate, of->certificate_size);
		change(&t, &s, kind);
		count->tried++;
		if (check(file, t.size, certificate, t.certificate_size, &of->policy, facts, &r) !=
		    FAY_RULE_NONE)
			continue;
		count->accepted++;
		if (of->policy.allow_rdtsc || /* runs differ */
		    (was_run(run, &s, &r, facts) && below(64)))
			continue;
		count->executed++;
		wrong = execute(file, t.size, certificate, t.certificate_size, &r, facts);
		if (wrong)
			fail(of, wrong, file, t.size, certificate, t.certificate_size);
	}
}
