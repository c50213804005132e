/* SPDX-License-Identifier: MIT */
/*
 * Whether a host's interface says what interface.h and docs/internals/host-interface.md allow. The
 * checker takes a host at its word; this finds what cannot be meant. Work: constant.
 */
#include <string.h>

#include "reader.h"

static bool all_zero(const void *from, size_t size)
{
	const uint8_t *bytes = from;
	uint8_t any = 0;

	for (size_t i = 0; i < size; i++)
		any |= bytes[i];
	return !any;
}

#define REST_IS_ZERO(list, count)                                                                  \
	all_zero(&(list)[count], sizeof(list) - (count) * sizeof((list)[0]))

#define KIND(kind) (1u << FAY_VALUE_##kind)

/* Whether a value is one of these kinds, and says what its kind may say. `h`: whose argument a
 * pointer is. */
static bool is_value(const struct fay_interface *i, const struct fay_interface_helper *h,
		     const struct fay_interface_value *v, unsigned kinds)
{
	const struct fay_interface_region *r = &i->region[v->of % FAY_INTERFACE_REGIONS];
	const struct fay_interface_value *n;

	if (v->kind > FAY_VALUE_WRITE || !(kinds >> v->kind & 1) ||
	    !all_zero(v->reserved, sizeof(v->reserved)))
		return false;
	switch (v->kind) {
	case FAY_VALUE_NONE: return all_zero(v, sizeof(*v));
	case FAY_VALUE_NUMBER: /* integers of 64 bits: some, and in order */
		return !v->of && !v->count &&
		       (v->lo < 0 ? v->hi <= INT64_MAX || (int64_t)v->hi >= v->lo
				  : v->hi >= (uint64_t)v->lo);
	case FAY_VALUE_START: return v->of < i->region_count && !v->count && !v->lo && !v->hi;
	case FAY_VALUE_SIZE: /* of a region whose size is passed; is_region() counts them */
		return v->of < i->region_count && !v->count && r->extent == FAY_EXTENT_PASSED &&
		       v->lo >= 0 && (uint64_t)v->lo < v->hi && v->hi == r->size;
	default: /* a pointer to a constant number of bytes, or to as many as a number says */
		if (v->of || v->lo || v->count > FAY_INTERFACE_PARAMETERS)
			return false;
		n = &h->argument[v->count ? v->count - 1 : 0];
		return v->count ? !v->hi && n->kind == FAY_VALUE_NUMBER && n->lo >= 0 &&
					  n->hi <= FAY_INTERFACE_SIZE
				: v->hi && v->hi <= FAY_INTERFACE_SIZE;
	}
}

static bool is_region(const struct fay_interface *i, uint32_t at)
{
	const struct fay_interface_region *r = &i->region[at];
	uint32_t sizes = 0, locals = 0;

	for (uint32_t k = 0; k < i->parameter_count; k++)
		sizes += i->parameter[k].kind == FAY_VALUE_SIZE && i->parameter[k].of == at;
	for (uint32_t k = 0; k <= at; k++)
		locals += i->region[k].extent == FAY_EXTENT_LOCAL;
	return r->size && r->size <= FAY_INTERFACE_SIZE && r->alignment &&
	       r->alignment <= FAY_INTERFACE_ALIGNMENT && !(r->alignment & (r->alignment - 1)) &&
	       r->permission & FAY_REGION_READ && r->permission <= 15 &&
	       !(r->permission & FAY_REGION_FILLED && !(r->permission & FAY_REGION_WRITE)) &&
	       !(r->permission & FAY_REGION_CONSTANT && r->permission & FAY_REGION_WRITE) &&
	       r->extent >= FAY_EXTENT_FIXED && r->extent <= FAY_EXTENT_LOCAL &&
	       sizes == (r->extent == FAY_EXTENT_PASSED) && locals <= 1 &&
	       all_zero(r->reserved, sizeof(r->reserved));
}

/* In order, apart from each other, with no more permission than the region. */
static bool is_field(const struct fay_interface *i, uint32_t at)
{
	const struct fay_interface_field *f = &i->field[at], *before = f - (at > 0);
	const struct fay_interface_region *r = &i->region[f->region % FAY_INTERFACE_REGIONS];

	return f->region < i->region_count && r->extent == FAY_EXTENT_FIXED && f->size &&
	       f->size <= r->size && f->offset <= r->size - f->size &&
	       f->permission & FAY_REGION_READ &&
	       !(f->permission & ~(r->permission & (FAY_REGION_READ | FAY_REGION_WRITE))) &&
	       all_zero(f->reserved, sizeof(f->reserved)) &&
	       (!at || before->region < f->region ||
		(before->region == f->region && before->offset + before->size <= f->offset));
}

static bool is_helper(const struct fay_interface *i, uint32_t at)
{
	const struct fay_interface_helper *h = &i->helper[at];
	uint32_t size = 0, count = 0, may_end = 0;

	for (uint32_t k = 0; k < i->region_count; k++)
		may_end |= (uint32_t)(i->region[k].extent != FAY_EXTENT_LOCAL) << k;
	for (; size < sizeof(h->name) - 1 && h->name[size]; size++)
		if (h->name[size] != '_' && (uint8_t)((h->name[size] | 32) - 'a') > 25 &&
		    (uint8_t)(h->name[size] - '0') > 9)
			return false;
	for (uint32_t k = 0; k < at; k++)
		if (!memcmp(h->name, i->helper[k].name, sizeof(h->name)))
			return false;
	while (count < FAY_INTERFACE_PARAMETERS && h->argument[count].kind)
		if (!is_value(i, h, &h->argument[count++],
			      KIND(NUMBER) | KIND(START) | KIND(READ) | KIND(WRITE)))
			return false;
	return size && REST_IS_ZERO(h->name, size) && REST_IS_ZERO(h->argument, count) &&
	       is_value(i, h, &h->result, KIND(NONE) | KIND(NUMBER)) &&
	       h->cost <= FAY_INTERFACE_COST && !(h->ends & ~may_end);
}

bool fay_read_interface(const struct fay_interface *i)
{
	bool fine = !memcmp(i->magic, FAY_INTERFACE_MAGIC, sizeof(i->magic)) &&
		    i->parameter_count <= FAY_INTERFACE_PARAMETERS &&
		    i->region_count <= FAY_INTERFACE_REGIONS &&
		    i->field_count <= FAY_INTERFACE_FIELDS &&
		    i->helper_count <= FAY_INTERFACE_HELPERS && i->confined <= 1 &&
		    REST_IS_ZERO(i->parameter, i->parameter_count) &&
		    REST_IS_ZERO(i->region, i->region_count) &&
		    REST_IS_ZERO(i->field, i->field_count) &&
		    REST_IS_ZERO(i->helper, i->helper_count) &&
		    is_value(i, NULL, &i->result, KIND(NONE) | KIND(NUMBER));

	for (uint32_t k = 0; fine && k < i->parameter_count; k++)
		fine = is_value(i, NULL, &i->parameter[k], KIND(NUMBER) | KIND(START) | KIND(SIZE));
	for (uint32_t k = 0; fine && k < i->region_count; k++)
		fine = is_region(i, k);
	for (uint32_t k = 0; fine && k < i->field_count; k++)
		fine = is_field(i, k);
	for (uint32_t k = 0; fine && k < i->helper_count; k++)
		fine = is_helper(i, k);
	return fine;
}
