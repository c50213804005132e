/* SPDX-License-Identifier: MIT */
/*
 * The stack's slots in a state: loads and stores of 1 to 8 bytes at a constant offset, whole slots
 * where they fit, bytes where not, and what an unknown write leaves.
 */
#include "state.h"
#include "state_parts.h"

/* Slot of the 4 bytes at `offset` (a negative multiple of 4). */
static uint32_t slot_at(int64_t offset)
{
	return LOC_SLOTS + (uint32_t)(-offset / 4) - 1;
}

static int64_t floor4(int64_t x)
{
	return x & ~(int64_t)3;
}

static struct fay_value half(const struct fay_value *v, bool upper)
{
	struct fay_value r;
	struct fay_scalar by = fay_scalar_const(32);

	if (v->kind != KIND_SCALAR)
		return uninit_slot();
	r = fay_value_scalar(upper ? fay_scalar_shr(&v->s, &by) : fay_scalar_zext(&v->s, 32));
	r.size = 4;
	r.init = upper ? v->init >> 4 : v->init & 0xf;
	if (!r.init)
		return uninit_slot();
	r.init |= 0xf0;
	if (!upper && v->s.umax <= UINT32_MAX) {
		r.id = v->id;
		r.delta = v->delta;
		r.origin = v->origin;
		r.dlo = v->dlo;
		r.dhi = v->dhi;
	}
	return r;
}

void fay_state_split_slot(struct fay_state *s, uint32_t upper)
{
	struct fay_value v;

	if (upper + 1 >= s->count) {
		s->loc[upper] = uninit_slot();
		return;
	}
	v = s->loc[upper + 1];
	s->loc[upper] = half(&v, true);
	s->loc[upper + 1] = half(&v, false);
}

/* Makes slot i a 4-byte one. */
static void split_around(struct fay_state *s, uint32_t i)
{
	if (s->loc[i].kind == KIND_UPPER)
		fay_state_split_slot(s, i);
	else if (s->loc[i].size == 8 && i > LOC_SLOTS && s->loc[i - 1].kind == KIND_UPPER)
		fay_state_split_slot(s, i - 1);
	else if (s->loc[i].size == 8)
		s->loc[i].size = 4;
}

/* The slot that describes byte `offset`, and which of its bytes that is. */
static const struct fay_value *describing(const struct fay_state *s, int64_t offset, unsigned *byte)
{
	uint32_t i = slot_at(floor4(offset));

	*byte = (unsigned)(offset & 3);
	if (s->loc[i].kind == KIND_UPPER && i + 1 < s->count) {
		*byte += 4;
		return &s->loc[i + 1];
	}
	return &s->loc[i];
}

static enum fay_slot_status status_of(const struct fay_value *v, unsigned byte)
{
	switch (v->kind) {
	case KIND_SCALAR: return v->init >> byte & 1 ? SLOT_OK : SLOT_UNINIT;
	case KIND_UNINIT: return SLOT_UNINIT;
	case KIND_RETURN: return SLOT_RETURN;
	default: return SLOT_KIND;
	}
}

enum fay_slot_status fay_stack_check(const struct fay_state *s, int64_t low, int64_t high)
{
	for (int64_t offset = low; offset < high; offset++) {
		unsigned byte;
		const struct fay_value *v = describing(s, offset, &byte);
		enum fay_slot_status status = status_of(v, byte);

		if (status != SLOT_OK)
			return status;
	}
	return SLOT_OK;
}

enum fay_slot_status fay_stack_load(struct fay_state *s, int64_t offset, unsigned size,
				    struct fay_value *value)
{
	uint32_t i = slot_at(floor4(offset));
	enum fay_slot_status status;
	struct fay_scalar bits = fay_scalar_top();

	if (!(offset & 3) && size == 8 && s->loc[i].size == 8 && s->loc[i].kind != KIND_UPPER) {
		*value = s->loc[i];
		if (value->kind == KIND_RETURN)
			return SLOT_RETURN;
		return value->kind == KIND_UNINIT || value->init != 0xff ? SLOT_UNINIT : SLOT_OK;
	}
	if (!(offset & 3) && size == 4 && s->loc[i].size == 4 && s->loc[i].kind == KIND_SCALAR &&
	    s->loc[i].init == 0xff) {
		*value = s->loc[i];
		value->size = 8;
		return SLOT_OK;
	}
	*value = fay_value_uninit();
	status = fay_stack_check(s, offset, offset + size);
	if (status != SLOT_OK)
		return status;
	bits.unknown = 0;
	for (unsigned k = 0; k < size; k++) {
		unsigned byte;
		const struct fay_value *v = describing(s, offset + k, &byte);

		bits.value |= (v->s.value >> 8 * byte & 0xff) << 8 * k;
		bits.unknown |= (v->s.unknown >> 8 * byte & 0xff) << 8 * k;
	}
	fay_scalar_normalise(&bits);
	if (!(offset & 3) && size == 4 && s->loc[i].size == 8 && s->loc[i].kind == KIND_SCALAR) {
		struct fay_scalar low = fay_scalar_zext(&s->loc[i].s, 32);

		fay_scalar_meet(&bits, &low);
		*value = fay_value_scalar(bits);
		if (s->loc[i].s.umax <= UINT32_MAX) {
			value->id = s->loc[i].id;
			value->delta = s->loc[i].delta;
		}
		return SLOT_OK;
	}
	*value = fay_value_scalar(bits);
	return SLOT_OK;
}

/* Replaces byte `byte` of 4-byte slot i by unknown or the given bits. */
static void put_byte(struct fay_value *slot, unsigned byte, uint64_t value, uint64_t unknown)
{
	uint64_t mask = (uint64_t)0xff << 8 * byte;
	struct fay_scalar s = fay_scalar_top();

	if (slot->kind != KIND_SCALAR) {
		*slot = fay_value_scalar(fay_scalar_range(0, UINT32_MAX));
		slot->size = 4;
		slot->init = 0xf0;
	}
	s.value = (slot->s.value & ~mask) | value << 8 * byte;
	s.unknown = (slot->s.unknown & ~mask & UINT32_MAX) | unknown << 8 * byte;
	fay_scalar_normalise(&s);
	slot->s = s;
	slot->init |= (uint8_t)(1u << byte);
	slot->id = 0;
	slot->origin = 0;
}

static bool covers_return(const struct fay_state *s, int64_t low, int64_t high)
{
	for (int64_t offset = floor4(low); offset < high; offset += 4) {
		unsigned byte;

		if (describing(s, offset, &byte)->kind == KIND_RETURN)
			return true;
	}
	return false;
}

enum fay_slot_status fay_stack_store(struct fay_state *s, int64_t offset, unsigned size,
				     const struct fay_value *value)
{
	uint32_t i = slot_at(floor4(offset));

	if (covers_return(s, offset, offset + size))
		return SLOT_RETURN;
	if (s->fill_count && (value->kind != KIND_SCALAR || value->init != 0xff))
		fay_fills_forget(s, offset, offset + size);
	for (int64_t o = floor4(offset); o < offset + size; o += 4)
		split_around(s, slot_at(o));
	if (size == 8 && !(offset & 3)) {
		s->loc[i] = *value;
		s->loc[i].size = 8;
		s->loc[i - 1] = uninit_slot();
		s->loc[i - 1].kind = KIND_UPPER;
		return SLOT_OK;
	}
	if (size == 4 && !(offset & 3)) {
		s->loc[i] = half(value, false);
		return SLOT_OK;
	}
	for (unsigned k = 0; k < size; k++) {
		uint32_t at = slot_at(floor4(offset + k));

		if (value->kind == KIND_SCALAR && (value->init >> k & 1))
			put_byte(&s->loc[at], (unsigned)((offset + k) & 3),
				 value->s.value >> 8 * k & 0xff, value->s.unknown >> 8 * k & 0xff);
		else
			s->loc[at] = uninit_slot();
	}
	return SLOT_OK;
}

enum fay_slot_status fay_stack_havoc(struct fay_state *s, int64_t low, int64_t high, bool fill)
{
	if (low >= high)
		return SLOT_OK;
	if (covers_return(s, low, high))
		return SLOT_RETURN;
	for (int64_t o = floor4(low); o < high; o += 4)
		split_around(s, slot_at(o));
	for (int64_t offset = low; offset < high; offset++) {
		struct fay_value *slot = &s->loc[slot_at(floor4(offset))];
		unsigned byte = (unsigned)(offset & 3);

		if (fill || (slot->kind == KIND_SCALAR && (slot->init >> byte & 1)))
			put_byte(slot, byte, 0, 0xff);
	}
	return SLOT_OK;
}
