/* SPDX-License-Identifier: MIT */
/* A refusal with its message, in the arena. */
#include <stdarg.h>
#include <stdio.h>

#include "rules.h"

/* What a refusal says when even its message found no memory. */
static const char no_memory[] = "out of the verifier's memory";

struct fay_refusal fay_refuse(struct fay_arena *arena, enum fay_rule rule, uint64_t address,
			      const char *format, ...)
{
	struct fay_refusal refusal = { .rule = rule,
				       .outcome = fay_rule_outcome(rule),
				       .address = address };
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	refusal.what = fay_arena_printf(arena, "%s", text);
	if (!refusal.what)
		refusal.what = no_memory;
	return refusal;
}
