/* SPDX-License-Identifier: MIT */
/*
 * Memory: addresses, bounds, and what the stack holds.
 *
 * Of each byte of the stack it is known whether a number's byte was written there; of places that
 * were written at a constant offset also the value, until something overlaps it. Bytes of values
 * that are not numbers do not count as written: only whole they can be read again.
 */
#include "machine.h"

/* ---- the stack ---- */

/* The bits of s->written[i] that are of [low, high). */
static unsigned bits_at(int64_t i, int64_t low, int64_t high)
{
	int64_t first = -high - 8 * i, end = -low - 8 * i;

	return (end < 8 ? (1u << end) - 1 : 0xff) & ~(first > 0 ? (1u << first) - 1 : 0);
}

void stack_mark(struct state *s, int64_t low, int64_t high, bool written)
{
	for (int64_t i = -high / 8; low < high && i <= (-1 - low) / 8; i++) {
		unsigned bits = bits_at(i, low, high);

		s->written[i] = (uint8_t)(written ? s->written[i] | bits : s->written[i] & ~bits);
	}
}

bool stack_all_written(const struct state *s, int64_t low, int64_t high)
{
	for (int64_t i = -high / 8; low < high && i <= (-1 - low) / 8; i++)
		if (bits_at(i, low, high) & ~(unsigned)s->written[i])
			return false;
	return true;
}

bool stack_numbers(struct machine *m, int64_t low, int64_t high)
{
	const struct state *s = &m->s;

	for (unsigned i = 0; i < s->slots; i++) {
		const struct slot *slot = &s->slot[i];

		if (slot->v.kind == KIND_NUMBER || slot->v.kind == KIND_NOTHING ||
		    slot->at >= high || slot->at + slot->size <= low)
			continue;
		return slot->v.kind == KIND_RETURN
			       ? check_refuse(m, FAY_RULE_STK_RETURN,
					      "a return address on the stack is read")
			       : check_refuse(m, FAY_RULE_MEM_POINTER,
					      "part of a pointer or saved register is read");
	}
	return true;
}

bool stack_written(struct machine *m, int64_t low, int64_t high)
{
	return stack_all_written(&m->s, low, high) ||
	       (stack_numbers(m, low, high) &&
		check_refuse(m, FAY_RULE_MEM_UNINIT, "stack bytes are read that were not written"));
}

const struct slot *stack_find(const struct state *s, int64_t at, uint32_t size)
{
	const struct slot *slot = s->slot;

	for (unsigned n = s->slots; n > 1; n -= n / 2) /* as in var_find() */
		slot = slot[n / 2].at <= at ? slot + n / 2 : slot;
	return s->slots && slot->at == at && slot->size == size ? slot : NULL;
}

bool stack_forget(struct machine *m, int64_t low, int64_t high)
{
	struct state *s = &m->s;
	unsigned kept = 0, i;

	for (i = 0; i < s->slots; i++) {
		struct slot *slot = &s->slot[i];
		int64_t below = low - slot->at;

		if (slot->v.kind == KIND_NUMBER && below > 0 && below < slot->size &&
		    !(below & (below - 1))) { /* the low part of a number stays */
			slot->size = (uint8_t)below;
			if (slot->v.bits > 8 * below)
				slot->v.bits = (uint8_t)(8 * below);
		}
		if (slot->at >= high || slot->at + slot->size <= low) {
			if (kept++ != i)
				s->slot[kept - 1] = *slot;
		} else if (slot->v.kind == KIND_RETURN) {
			return check_refuse(m, FAY_RULE_STK_RETURN,
					    "a return address on the stack is written");
		}
	}
	s->slots = (uint16_t)kept;
	return true;
}

static void slot_add(struct state *s, int64_t at, uint32_t size, const struct value *v)
{
	unsigned i = s->slots++;

	for (; i > 0 && s->slot[i - 1].at > at; i--)
		s->slot[i] = s->slot[i - 1];
	s->slot[i] = (struct slot){ *v, (int32_t)at, (uint8_t)size };
}

/* What is known of values at [low, high), whose bytes count as written or not, is `v`. */
bool stack_put(struct machine *m, int64_t at, uint32_t size, const struct value *v)
{
	struct state *s = &m->s;
	bool number = v->kind == KIND_NUMBER;

	if (!stack_forget(m, at, at + size))
		return false;
	stack_mark(s, at, at + size, number);
	for (unsigned k = 0; number && k < size && v->init != 0xff; k++)
		stack_mark(s, at + k, at + k + 1, v->init >> k & 1);
	if (!number && size != 8)
		return v->kind == KIND_NOTHING ||
		       check_refuse(m, FAY_RULE_MEM_POINTER, "part of a pointer is stored");
	if (s->slots == SLOTS) /* of a number only that it is one is kept */
		return number || v->kind == KIND_NOTHING ||
		       check_refuse(m, FAY_RULE_LIM_RESOURCE, "too many values on the stack");
	slot_add(s, at, size, v);
	return true;
}

bool machine_depth(struct machine *m, int64_t depth)
{
	struct state *s = &m->s;
	unsigned i;

	if (depth < 0)
		return check_refuse(m, FAY_RULE_STK_RETURN,
				    "the stack pointer is raised above the return address");
	if (depth % 8)
		return check_refuse(m, FAY_RULE_STK_POINTER, "rsp is not a multiple of 8");
	if (depth > STACK_MOST)
		return check_refuse(m, FAY_RULE_STK_LIMIT, "more than 8192 bytes of stack");
	if (depth > s->depth)
		stack_mark(s, -depth, -s->depth, false);
	/* what lies above a raised rsp may be overwritten by a signal's handler */
	if (depth < s->depth) {
		for (i = 0; i < s->slots && s->slot[i].at < -depth; i++)
			;
		for (unsigned k = i; i && k < s->slots; k++)
			s->slot[k - i] = s->slot[k];
		s->slots = (uint16_t)(s->slots - i);
		s->fills = 0;
	}
	s->depth = (int32_t)depth;
	s->reg[FAY_RSP] = (struct value){ form_number(-depth), KIND_POINTER, REGION_STACK, 0, 64 };
	if ((uint64_t)depth > m->facts->worst_stack)
		m->facts->worst_stack = (uint64_t)depth;
	if ((uint64_t)depth + 8 > m->policy->max_stack)
		return check_refuse(m, FAY_RULE_POL_STACK, "more stack than the policy allows");
	return true;
}

/* ---- ranges of the stack that a loop has written ---- */

/* Numbers were written at form `at` of the stack: ranges that end there grow. */
static void grow_fills(struct machine *m, const struct form *at, uint32_t size)
{
	for (unsigned i = 0; i < m->s.fills; i++) {
		struct fill *fill = &m->s.fill[i];
		struct form end = *at, by = form_number(size);

		if (fill->down && !form_plus(&end, &by, 1))
			continue;
		if (form_equal(&fill->end, &end) &&
		    !form_plus(&fill->end, &by, fill->down ? -1 : 1))
			m->s.fills = 0;
	}
}

static bool covered(struct machine *m, const struct access *a)
{
	for (unsigned i = 0; i < m->s.fills; i++) {
		const struct fill *fill = &m->s.fill[i];
		struct form apart = a->offset;

		if (!form_plus(&apart, &fill->end, -1))
			continue;
		if (fill->down ? form_range(m, &apart).lo >= 0 && a->at.hi + a->size <= fill->fixed
			       : form_range(m, &apart).hi + a->size <= 0 && a->at.lo >= fill->fixed)
			return true;
	}
	return false;
}

/* ---- accesses ---- */

uint32_t region_size(const struct machine *m, unsigned region)
{
	const struct check_subject *s = m->subject;

	if (region >= FAY_INTERFACE_REGIONS)
		return region == REGION_RODATA ? (uint32_t)s->rodata.size : 0;
	switch (s->interface->region[region].extent) {
	case FAY_EXTENT_LOCAL: return s->local_size;
	case FAY_EXTENT_GLOBAL: return s->global_size;
	default: return s->interface->region[region].size;
	}
}

bool region_passed(const struct machine *m, unsigned region)
{
	return region < FAY_INTERFACE_REGIONS &&
	       m->subject->interface->region[region].extent == FAY_EXTENT_PASSED;
}

bool region_permits(const struct machine *m, unsigned region, uint8_t permission)
{
	if (region >= FAY_INTERFACE_REGIONS)
		return region == REGION_STACK || permission == FAY_REGION_READ;
	return m->subject->interface->region[region].permission & permission;
}

/* Whether the fields of the region, if it has some, allow all that is accessed; which these are is
 * a fact. Only regions whose size is fixed have fields. */
static bool fields_permit(const struct machine *m, const struct access *a, uint8_t permission)
{
	const struct fay_interface *interface = m->subject->interface;
	wide from = a->at.lo, end = a->at.hi + a->size;
	bool any = false;

	if (a->region >= FAY_INTERFACE_REGIONS ||
	    interface->region[a->region].extent != FAY_EXTENT_FIXED)
		return true;
	for (uint32_t i = 0; i < interface->field_count; i++) {
		const struct fay_interface_field *f = &interface->field[i];

		if (f->region != a->region)
			continue;
		any = true;
		if (f->offset >= end) /* they are in order */
			break;
		if (f->offset + f->size > a->at.lo)
			m->facts->event_fields |= 1u << i;
		if (f->permission & permission && from >= f->offset && from < f->offset + f->size)
			from = f->offset + f->size;
	}
	return !any || from >= end;
}

bool machine_address(struct machine *m, const struct fay_operand *mem, struct value *v)
{
	struct value part;

	if (mem->rip) {
		*v = (struct value){ .kind = KIND_POINTER, .tag = REGION_RODATA, .bits = 64 };
		v->f.c = (int64_t)((uint64_t)mem->disp - m->subject->rodata.start);
		return true;
	}
	*v = value_number((uint64_t)mem->disp);
	if (mem->base != FAY_NO_REG) {
		if (!register_read(m, mem->base, 64, &part) || !value_add(m, &part, v, 1, 64, v))
			return false;
	}
	if (mem->index == FAY_NO_REG)
		return true;
	if (!register_read(m, mem->index, 64, &part))
		return false;
	if (mem->scale == 1 && part.kind == KIND_POINTER)
		return value_add(m, &part, v, 1, 64, v);
	return value_add(m, v, &part, mem->scale, 64, v);
}

/* The access does not begin before the region whose size is passed, nor end behind its end. */
static bool within_passed(struct machine *m, const struct access *a)
{
	const struct var *size = var_pinned(&m->s, PIN_SIZES + a->region, 0);
	struct form apart = a->offset, end = { .k[0] = 1, .v[0] = size ? size->id : 0 };

	if (!size || a->at.lo < 0)
		return false;
	return a->at.hi + a->size <= var_range(size).lo ||
	       (form_plus(&apart, &end, -1) && form_range(m, &apart).hi + a->size <= 0);
}

bool machine_access(struct machine *m, const struct value *address, uint32_t size, bool write,
		    struct access *a)
{
	uint8_t permission = write ? FAY_REGION_WRITE : FAY_REGION_READ;
	int64_t low = 0, high = -(int64_t)size;

	if (address->kind != KIND_POINTER)
		return check_refuse(m, FAY_RULE_MEM_REGION,
				    "the address is not made from a pointer to a region");
	*a = (struct access){ address->f, form_range(m, &address->f), address->tag, size };
	if (!region_permits(m, a->region, permission))
		return check_refuse(m, FAY_RULE_MEM_PERMISSION, "the region may not be written");
	if (a->region == REGION_STACK)
		low = -m->s.depth;
	else
		high += region_size(m, a->region);
	if (region_passed(m, a->region) ? within_passed(m, a) : a->at.lo >= low && a->at.hi <= high)
		return fields_permit(m, a, permission) ||
		       check_refuse(m, FAY_RULE_MEM_PERMISSION,
				    "bytes are accessed that the interface does not allow");
	if (a->region != REGION_STACK)
		return check_refuse(m, FAY_RULE_MEM_BOUNDS, "the access may lie out of bounds");
	if (a->at.lo < low)
		return check_refuse(m, FAY_RULE_MEM_BELOW_SP,
				    "the access may lie below the stack pointer");
	return check_refuse(m, FAY_RULE_STK_RETURN, "the access may touch the return address");
}

bool machine_locate(struct machine *m, const struct fay_operand *mem, uint32_t size, bool write,
		    uint32_t alignment, struct access *a)
{
	struct value address;
	uint64_t odd;
	uint32_t start; /* what the region's first byte is a multiple of; the stack's is 8 off */

	bool lenient = m->lenient;

	m->lenient = false; /* of an address every byte counts */
	if (!machine_address(m, mem, &address) || !machine_access(m, &address, size, write, a))
		return false;
	m->lenient = lenient;
	odd = (uint64_t)a->offset.c + (a->region == REGION_STACK    ? 8
				       : a->region == REGION_RODATA ? m->subject->rodata.start & 63
								    : 0);
	start = a->region == REGION_STACK    ? 16
		: a->region == REGION_RODATA ? 64
					     : m->subject->interface->region[a->region].alignment;
	odd = (odd | (uint64_t)a->offset.k[0] | (uint64_t)a->offset.k[1]) & (alignment - 1);
	if (odd || alignment > start)
		return check_refuse(m, FAY_RULE_MEM_ALIGN,
				    "the access is not proved to be aligned");
	if (alignment > 1 && a->region == REGION_STACK)
		m->facts->aligned_stack = true;
	return true;
}

/* What constants a read of read-only data may give, if they are few. */
static struct range constants(struct machine *m, const struct access *a)
{
	const struct form *f = &a->offset;
	uint64_t step = f->v[0] && !f->v[1] && f->k[0] > 0 ? (uint64_t)f->k[0] : 1;
	struct range r = { (wide)1 << 64, 0 };

	if (a->size > 8 || (uint64_t)(a->at.hi - a->at.lo) / step >= 64)
		return (struct range){ 0, ((wide)1 << 8 * a->size) - 1 };
	for (uint64_t at = (uint64_t)a->at.lo; at <= (uint64_t)a->at.hi; at += step) {
		uint64_t n = 0;

		memcpy(&n, m->subject->rodata.bytes + at, a->size);
		r.lo = n < r.lo ? n : r.lo;
		r.hi = n > r.hi ? n : r.hi;
	}
	return r;
}

/* *known: *v is what is there; else only that it was written. */
static bool load_stack(struct machine *m, const struct access *a, struct value *v, bool *known)
{
	int64_t at = (int64_t)a->at.lo, end = (int64_t)a->at.hi + a->size;
	const struct slot *slot = NULL;

	for (uint32_t size = a->size; a->at.lo == a->at.hi && !slot && size <= 8; size *= 2)
		slot = stack_find(&m->s, at, size);
	*known = slot && !value_unknown(&slot->v) &&
		 (slot->v.kind == KIND_NUMBER || slot->size == a->size);
	if (*known) {
		*v = slot->v;
		if (v->kind == KIND_POINTER || v->kind == KIND_SAVED || v->kind == KIND_HELPER)
			return true;
		v->init = 0xff;
	}
	return stack_all_written(&m->s, at, end) || covered(m, a) || stack_written(m, at, end);
}

/* A load of bytes that several numbers were stored to, each of them wholly within. */
static bool load_parts(struct machine *m, const struct access *a, struct value *v)
{
	int64_t at = (int64_t)a->at.lo, end = at + a->size;
	struct value sum = value_number(0);

	for (unsigned i = 0; a->at.lo == a->at.hi && i < m->s.slots; i++) {
		const struct slot *slot = &m->s.slot[i];
		struct form f;

		if (slot->at < at)
			continue;
		if (slot->at != at || slot->v.kind != KIND_NUMBER || slot->size > end - at ||
		    !value_form(m, &slot->v, 8u * slot->size, false, &f) ||
		    !form_add(&sum.f, &f, (int64_t)((uint64_t)1 << 8 * (at - (end - a->size)))))
			return false;
		at += slot->size;
		if (at == end) {
			*v = sum;
			return true;
		}
	}
	return false;
}

bool machine_load(struct machine *m, const struct access *a, struct value *v)
{
	unsigned bits = a->size * 8;
	struct range r = { 0, ((wide)1 << bits) - 1 };
	const struct slot *slot;
	bool known = false, remembered = !a->region && a->at.lo == a->at.hi && a->size <= 8 &&
					 region_permits(m, 0, FAY_REGION_CONSTANT);

	if (a->region == REGION_STACK && !load_stack(m, a, v, &known))
		return false;
	if (known) {
		if (v->kind == KIND_NUMBER && v->bits > bits) {
			v->bits = (uint8_t)bits;
			form_reduce(&v->f, bits);
		}
		return true;
	}
	if (a->region == REGION_STACK && load_parts(m, a, v))
		return true;
	slot = remembered ? stack_find(&m->s, (int64_t)a->at.lo, a->size) : NULL;
	if (slot) {
		*v = slot->v;
		return true;
	}
	if (a->region == REGION_RODATA)
		r = constants(m, a);
	*v = value_fresh(m, r.lo, r.hi, 64);
	if (remembered && stack_forget(m, (int64_t)a->at.lo, (int64_t)a->at.lo + a->size) &&
	    m->s.slots < SLOTS)
		slot_add(&m->s, (int64_t)a->at.lo, a->size, v);
	if (a->region == REGION_RODATA && a->size == 4)
		check_define(m, v, (struct def){ .kind = DEF_TABLE, .f = a->offset });
	return true;
}

bool machine_store(struct machine *m, const struct access *a, const struct value *v)
{
	int64_t low = (int64_t)a->at.lo, high = (int64_t)a->at.hi + a->size;
	struct value number;

	if (a->region != REGION_STACK)
		return v->kind == KIND_NUMBER ||
		       check_refuse(m, FAY_RULE_MEM_LEAK, "what is written is not a number");
	if (v->kind != KIND_NUMBER || v->init != 0xff)
		m->s.fills = 0; /* something else than a written number may lie there now */
	if (a->at.lo == a->at.hi) {
		number = *v;
		number.bits = v->bits < a->size * 8 ? v->bits : (uint8_t)(a->size * 8);
		if (!stack_put(m, low, a->size, &number))
			return false;
	} else if (v->kind != KIND_NUMBER || v->init != 0xff) {
		return check_refuse(m, FAY_RULE_MEM_POINTER,
				    "a pointer is stored at an offset that is not constant");
	} else if (!stack_forget(m, low, high)) {
		return false;
	}
	if (v->kind == KIND_NUMBER && v->init == 0xff)
		grow_fills(m, &a->offset, a->size);
	return true;
}
