/* SPDX-License-Identifier: MIT */
/* The library's entry to the checker: fay/check.h. No verdict comes from here. */
#include "fay/check.h"

#include "verifier/reader/reader.h"

#define ALIGNMENT 16u

size_t fay_check_room(size_t size)
{
	return size <= FAY_IMAGE_MAX_FILE ? check_room(size) : check_room(FAY_IMAGE_MAX_FILE);
}

static struct fay_check_section section_of(const struct check_subject *s,
					   const struct check_bytes *bytes)
{
	return bytes->size ? (struct fay_check_section){ bytes->bytes,
							 (uint32_t)(bytes->start - s->base),
							 (uint32_t)bytes->size }
			   : (struct fay_check_section){ 0 };
}

static void tell(const struct check_result *checked, struct fay_check_result *result)
{
	const struct check_subject *s = &checked->subject;

	*result = (struct fay_check_result){ .rule = FAY_RULE_NONE,
					     .span = (uint32_t)s->span,
					     .local_size = s->local_size,
					     .global_size = s->global_size,
					     .text = section_of(s, &s->text),
					     .rodata = section_of(s, &s->rodata),
					     .slot_count = s->slot_count,
					     .probe_count = checked->probe_count,
					     .instructions = checked->instructions };
	for (uint32_t i = 0; i < s->slot_count; i++) {
		result->slots[i].offset = (uint32_t)(s->slots[i].address - s->base);
		result->slots[i].helper = s->slots[i].helper;
	}
}

void fay_check(const void *image, size_t size, const void *certificate, size_t certificate_size,
	       const struct fay_policy *policy, void *memory, size_t memory_size,
	       struct fay_probe_facts *probes, struct fay_check_result *result)
{
	struct check_result checked = { .refusal = { FAY_RULE_LIM_RESOURCE, 0,
						     "too little memory, or not aligned" } };
	struct fay_policy plain;

	fay_policy_default(&plain);
	/* a larger image is refused for its size, before memory is used */
	if (memory && (uintptr_t)memory % ALIGNMENT == 0 && memory_size >= fay_check_room(size) &&
	    certificate_size <= UINT32_MAX)
		check_image(image, size, certificate, certificate_size, policy ? policy : &plain,
			    memory, memory_size, probes, &checked);
	if (checked.refusal.rule == FAY_RULE_NONE)
		tell(&checked, result);
	else
		*result = (struct fay_check_result){ .rule = checked.refusal.rule,
						     .place = checked.refusal.place,
						     .what = checked.refusal.what };
}
