/* SPDX-License-Identifier: MIT */
/* A join's list: what it has of each location, and its bytes. */
#include "certify_parts.h"

void fay_bytes_put(struct fay_bytes *b, const void *from, size_t size)
{
	if (b->size + size > b->room) {
		b->room = 2 * (b->size + size) + 64;
		b->at = realloc(b->at, b->room);
		if (!b->at)
			abort();
	}
	if (size)
		memcpy(b->at + b->size, from, size);
	b->size += size;
}

void fay_bytes_number(struct fay_bytes *b, uint64_t n)
{
	do {
		uint8_t byte = (n & 0x7f) | (n > 0x7f ? 0x80 : 0);

		fay_bytes_put(b, &byte, 1);
		n >>= 7;
	} while (n);
}

void fay_bytes_signed(struct fay_bytes *b, int64_t n)
{
	fay_bytes_number(b, (uint64_t)n << 1 ^ (uint64_t)(n >> 63));
}

/* ---- lists ---- */

struct rep *certify_rep_of(const struct place *p, uint64_t location)
{
	for (uint32_t i = 0; i < p->rep_count; i++)
		if (p->reps[i].location == location)
			return &p->reps[i];
	return NULL;
}

struct rep *certify_rep_add(struct place *p, uint64_t location)
{
	struct rep *r = certify_rep_of(p, location);

	if (r)
		return r;
	p->reps = realloc(p->reps, (p->rep_count + 1) * sizeof(*p->reps));
	if (!p->reps)
		abort();
	r = &p->reps[p->rep_count++];
	*r = (struct rep){ .location = location, .mult = 1, .kind = REP_KEEP, .bytes = 0xff };
	return r;
}

uint32_t certify_number_of(const struct place *p, uint64_t location)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->rep_count; i++) {
		if (p->reps[i].kind != REP_NUMBER)
			continue;
		if (p->reps[i].location == location)
			return n;
		n++;
	}
	return UINT32_MAX;
}

bool certify_names(const struct rep *r, uint64_t location)
{
	return r->k && (r->base == location || (r->also && r->base2 == location));
}

/* An entry of a list being written. */
static void begin_entry(struct place *p, unsigned kind, uint64_t location)
{
	p->entries++;
	fay_bytes_number(&p->body, kind);
	fay_bytes_number(&p->body, location);
}

static void put_range(struct place *p, wide lo, wide hi)
{
	fay_bytes_signed(&p->body, (int64_t)lo);
	fay_bytes_number(&p->body, (uint64_t)(hi - lo));
}

static void put_rep(struct place *p, const struct rep *r)
{
	switch (r->kind) {
	case REP_KEEP: break;
	case REP_FORGET: begin_entry(p, JOIN_FORGET, r->location); break;
	case REP_NUMBER:
		begin_entry(p, r->mult == 1 ? JOIN_NUMBER : JOIN_MULTIPLE, r->location);
		if (r->mult == 1) {
			fay_bytes_number(&p->body, r->bits);
		} else {
			fay_bytes_number(&p->body, (uint64_t)r->mult);
			fay_bytes_signed(&p->body, r->off);
		}
		put_range(p, r->lo, r->hi);
		break;
	case REP_RANGE:
		begin_entry(p, JOIN_RANGE, r->location);
		put_range(p, r->lo, r->hi);
		break;
	default:
		begin_entry(p, JOIN_FORM, r->location);
		fay_bytes_number(&p->body, r->bits);
		fay_bytes_signed(&p->body, r->c);
		fay_bytes_number(&p->body, (r->k ? 1 : 0) + (r->size ? 1 : 0) + (r->also ? 1 : 0));
		if (r->size) {
			fay_bytes_number(&p->body, JOIN_MOST + r->size - 1);
			fay_bytes_signed(&p->body, 1);
		}
		if (r->k) {
			fay_bytes_number(&p->body, certify_number_of(p, r->base));
			fay_bytes_signed(&p->body, r->k);
		}
		if (r->also) {
			fay_bytes_number(&p->body, certify_number_of(p, r->base2));
			fay_bytes_signed(&p->body, r->k2);
		}
	}
}

/* Numbers before the forms that name them; what of registers is forgotten comes as one entry. */
static void put_reps(struct place *p, uint64_t *forgotten)
{
	for (unsigned pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < p->rep_count; i++) {
			const struct rep *r = &p->reps[i];

			if (r->kind == REP_FORGET && r->location < 16) {
				*forgotten |= (uint64_t)1 << r->location;
				continue;
			}
			if ((r->kind == REP_FORM) != pass)
				continue;
			if (r->bytes != 0xff && r->kind != REP_FORGET) {
				begin_entry(p, JOIN_BYTES, r->location);
				fay_bytes_number(&p->body, r->bytes);
			}
			put_rep(p, r);
		}
}

static void put_relations(struct place *p)
{
	for (uint32_t i = 0; i < p->fact_count; i++) {
		const struct relation *f = &p->facts[i];
		const struct rep *a = certify_rep_of(p, f->a), *b = certify_rep_of(p, f->b);

		if ((a && a->kind == REP_FORGET) || (b && b->kind == REP_FORGET))
			continue;
		begin_entry(p, JOIN_FACT, f->a);
		fay_bytes_number(&p->body, f->b);
		fay_bytes_signed(&p->body, f->ka);
		fay_bytes_signed(&p->body, f->kb);
		put_range(p, f->lo, f->hi);
	}
	for (uint32_t i = 0; i < p->fill_count; i++) {
		const struct guessed_fill *f = &p->fills[i];

		begin_entry(p, JOIN_FILL, f->location);
		fay_bytes_number(&p->body, f->down);
		fay_bytes_signed(&p->body, f->fixed);
		fay_bytes_signed(&p->body, f->k);
		fay_bytes_signed(&p->body, f->c);
	}
}

static void put_unwritten(struct place *p)
{
	for (unsigned i = 0; i < 16; i++)
		if (p->vector[i] != UINT32_MAX) {
			begin_entry(p, JOIN_VECTOR, i);
			fay_bytes_number(&p->body, p->vector[i]);
		}
	for (uint32_t i = 0; p->unwritten && i < STACK_MOST; i++) {
		uint32_t size = 0;

		while (i + size < STACK_MOST && p->unwritten[i + size])
			size++;
		if (!size)
			continue;
		begin_entry(p, JOIN_UNWRITTEN, i + size); /* byte -1 - i is the highest */
		fay_bytes_number(&p->body, size);
		i += size;
	}
}

void certify_write_list(struct place *p)
{
	uint64_t forgotten = 0;

	p->body.size = p->entries = 0;
	put_reps(p, &forgotten);
	put_relations(p);
	if (forgotten)
		begin_entry(p, JOIN_REGISTERS, forgotten);
	if (p->undefined)
		begin_entry(p, JOIN_UNDEFINED, p->undefined);
	put_unwritten(p);
	p->list.size = 0;
	fay_bytes_number(&p->list, p->entries);
	fay_bytes_put(&p->list, p->body.at, p->body.size);
}

void certify_mark_unwritten(struct place *p, int32_t b)
{
	if (!p->unwritten)
		p->unwritten = calloc(STACK_MOST, 1);
	if (!p->unwritten)
		abort();
	p->unwritten[b] = 1;
}
