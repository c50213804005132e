/* SPDX-License-Identifier: MIT */
/*
 * Whether code that nothing known leads to may be data instead, where a trap would change it. Data
 * in a function is there for some instruction to read, by its distance or, in a program that is not
 * position-independent, by its address. So the text of the module is searched, at every byte, for
 * four bytes that lead there: a distance behind the byte that announces it (mod 0, r/m 5: Intel SDM
 * volume 2, table 2-2), or an address. What looks like one by chance is a doubt as well.
 */
#include "plan_private.h"

#include <stdlib.h>
#include <string.h>

#include "loader/names/target.h"

#define CHUNK (1u << 20)
#define DISTANCE 4u
#define BEFORE 1u
#define IMMEDIATE_MAX 4u /* bytes of an instruction behind a distance */

/* Whether an address from `low` to `high` is in what nothing known leads to. */
static bool leads_to(const struct fay_flow *flow, uint64_t low, uint64_t high)
{
	for (size_t i = 0; i < flow->exit_count; i++) {
		const struct fay_exit *exit = &flow->exits[i];

		if (exit->unled && high >= exit->unled && low < exit->at + exit->length)
			return true;
	}
	return false;
}

/* In `size` bytes of text from `at` on. */
static bool is_mentioned(const struct fay_flow *flow, const uint8_t *bytes, size_t size,
			 uint64_t at, bool addresses)
{
	for (size_t i = BEFORE; i + DISTANCE <= size; i++) {
		uint64_t behind = at + i + DISTANCE, to;
		uint32_t word;

		memcpy(&word, bytes + i, sizeof(word));
		to = behind + (uint64_t)(int64_t)(int32_t)word;
		if ((bytes[i - BEFORE] & 0xc7) == 5 && leads_to(flow, to, to + IMMEDIATE_MAX))
			return true;
		if (addresses && leads_to(flow, word, word))
			return true;
	}
	return false;
}

bool fay_unled_is_code(const struct fay_plan *plan, struct fay_program_text *text,
		       const struct fay_flow *flow)
{
	const struct fay_module *module;
	uint64_t unled = 0;
	uint8_t *bytes;
	bool is;

	for (size_t i = 0; i < flow->exit_count; i++)
		unled = flow->exits[i].unled ? flow->exits[i].unled : unled;
	if (!unled)
		return true;
	module = fay_target_module_at(plan->target, unled);
	bytes = malloc(CHUNK + BEFORE + DISTANCE);
	is = module && bytes;
	for (size_t r = 0; is && r < module->range_count; r++) {
		const struct fay_range *range = &module->ranges[r];

		for (uint64_t at = range->start; is && range->placed && at < range->end;
		     at += CHUNK) {
			uint64_t left = range->end - at;
			size_t size = left < CHUNK + BEFORE + DISTANCE ? (size_t)left
								       : CHUNK + BEFORE + DISTANCE;

			is = fay_text_program(text, at, bytes, size) == size &&
			     !is_mentioned(flow, bytes, size, at, !range->bias);
		}
	}
	free(bytes);
	return is;
}
