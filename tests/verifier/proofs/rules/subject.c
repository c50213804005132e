/* SPDX-License-Identifier: MIT */
/* What a reader says of an image's places. */
#include "verifier/checker/subject/subject.c"
#include "rule.h"

/* A part of no, few or any bytes. */
static struct check_bytes any_part(uint64_t base)
{
	struct check_bytes part = { .start = any64("start"), .size = any64("size") };

	if (!symbolic() && part.start % 4) { /* near each other */
		part.start = base + part.start % 64;
		part.size %= 64;
	}
	return part;
}

/* Address `at` lies in it. */
static bool holds(const struct check_bytes *part, uint64_t at)
{
	return at - part->start < part->size;
}

RUN_RULE(are_apart)
{
	static struct check_subject s;
	const struct check_bytes *const parts[] = { &s.text, &s.rodata, &s.got };
	unsigned i = choose("part", 3), other = (i + 1 + choose("other", 2)) % 3;
	uint64_t at;

	s.base = any64("base");
	s.span = any64("span");
	if (!symbolic()) {
		s.base &= ~(uint64_t)4095 & (MAX_ADDRESS - 1);
		s.span %= s.span % 4 ? 256 : 2 * FAY_IMAGE_MAX_SPAN;
	}
	s.text = any_part(s.base);
	s.rodata = any_part(s.base);
	s.got = any_part(s.base);
	assume(are_apart(&s));
	at = symbolic() ? any64("at") : parts[i]->start + any64("at") % (parts[i]->size | 1);
	assume(holds(parts[i], at));
	prove(at >= s.base && at - s.base < s.span && s.span <= FAY_IMAGE_MAX_SPAN,
	      "what runs lies in the span");
	prove(!holds(parts[other], at), "no byte is of two parts");
}
