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

void certify_write_list(struct place *p)
{
	struct fay_bytes body = { 0 };
	uint32_t entries = 0;
	uint64_t forgotten = 0;

	for (unsigned pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < p->rep_count; i++) {
			const struct rep *r = &p->reps[i];

			if (r->kind == REP_FORGET && r->location < 16) {
				forgotten |= (uint64_t)!pass << r->location;
				continue;
			}
			if ((r->kind == REP_FORM) != pass)
				continue;
			if (r->bytes != 0xff && r->kind != REP_FORGET) {
				entries++;
				fay_bytes_number(&body, JOIN_BYTES);
				fay_bytes_number(&body, r->location);
				fay_bytes_number(&body, r->bytes);
			}
			if (r->kind == REP_KEEP)
				continue;
			entries++;
			switch (r->kind) {
			case REP_FORGET:
				fay_bytes_number(&body, JOIN_FORGET);
				fay_bytes_number(&body, r->location);
				break;
			case REP_NUMBER:
				fay_bytes_number(&body, r->mult == 1 ? JOIN_NUMBER : JOIN_MULTIPLE);
				fay_bytes_number(&body, r->location);
				if (r->mult == 1) {
					fay_bytes_number(&body, r->bits);
				} else {
					fay_bytes_number(&body, (uint64_t)r->mult);
					fay_bytes_signed(&body, r->off);
				}
				fay_bytes_signed(&body, (int64_t)r->lo);
				fay_bytes_number(&body, (uint64_t)(r->hi - r->lo));
				break;
			case REP_RANGE:
				fay_bytes_number(&body, JOIN_RANGE);
				fay_bytes_number(&body, r->location);
				fay_bytes_signed(&body, (int64_t)r->lo);
				fay_bytes_number(&body, (uint64_t)(r->hi - r->lo));
				break;
			default:
				fay_bytes_number(&body, JOIN_FORM);
				fay_bytes_number(&body, r->location);
				fay_bytes_number(&body, r->bits);
				fay_bytes_signed(&body, r->c);
				fay_bytes_number(&body, r->k ? 1 : 0);
				if (r->k) {
					fay_bytes_number(&body, certify_number_of(p, r->base));
					fay_bytes_signed(&body, r->k);
				}
			}
		}
	for (uint32_t i = 0; i < p->fact_count; i++) {
		const struct relation *f = &p->facts[i];
		const struct rep *a = certify_rep_of(p, f->a), *b = certify_rep_of(p, f->b);

		if ((a && a->kind == REP_FORGET) || (b && b->kind == REP_FORGET))
			continue;
		entries++;
		fay_bytes_number(&body, JOIN_FACT);
		fay_bytes_number(&body, f->a);
		fay_bytes_number(&body, f->b);
		fay_bytes_signed(&body, -1);
		fay_bytes_signed(&body, 1);
		fay_bytes_signed(&body, (int64_t)f->lo);
		fay_bytes_number(&body, (uint64_t)(f->hi - f->lo));
	}
	for (uint32_t i = 0; i < p->fill_count; i++) {
		const struct guessed_fill *f = &p->fills[i];

		entries++;
		fay_bytes_number(&body, JOIN_FILL);
		fay_bytes_number(&body, f->location);
		fay_bytes_number(&body, f->down);
		fay_bytes_signed(&body, f->fixed);
		fay_bytes_signed(&body, f->k);
		fay_bytes_signed(&body, f->c);
	}
	if (forgotten) {
		fay_bytes_number(&body, JOIN_REGISTERS);
		fay_bytes_number(&body, forgotten);
		entries++;
	}
	if (p->undefined) {
		fay_bytes_number(&body, JOIN_UNDEFINED);
		fay_bytes_number(&body, p->undefined);
		entries++;
	}
	for (unsigned i = 0; i < 16; i++)
		if (p->vector[i] != UINT32_MAX) {
			fay_bytes_number(&body, JOIN_VECTOR);
			fay_bytes_number(&body, i);
			fay_bytes_number(&body, p->vector[i]);
			entries++;
		}
	for (uint32_t i = 0; p->unwritten && i < STACK_MOST; i++) {
		uint32_t size = 0;

		while (i + size < STACK_MOST && p->unwritten[i + size])
			size++;
		if (!size)
			continue;
		fay_bytes_number(&body, JOIN_UNWRITTEN);
		fay_bytes_number(&body, i + size); /* byte -1 - i is the highest */
		fay_bytes_number(&body, size);
		entries++;
		i += size;
	}
	p->list.size = 0;
	fay_bytes_number(&p->list, entries);
	fay_bytes_put(&p->list, body.at, body.size);
	free(body.at);
}
