/* SPDX-License-Identifier: MIT */
/* Room for a jump: in a window's own bytes, in padding behind them, or in a hole nearby that a
 * short jump reaches. */
#include "flow_private.h"

#include <stdlib.h>

#define PAGE 4096u
#define NEAR 127u  /* bytes that a short jump reaches */
#define BEHIND 64u /* bytes behind a function's end that may be padding */

unsigned long fay_choice_offset(const struct fay_choice *choice, size_t step)
{
	return (unsigned long)(choice->code.steps[step].at - choice->code.regions[0].start);
}

bool fay_choice_grow(struct fay_choice *choice, void **items, size_t size, size_t count,
		     size_t *room)
{
	size_t more = *room ? 2 * *room : 16;
	void *grown;

	if (count < *room)
		return true;
	grown = realloc(*items, more * size);
	if (!grown)
		return choice->code.no_memory = true, false;
	*items = grown;
	*room = more;
	return true;
}

bool fay_step_moves(const struct fay_step *step)
{
	return step->kind != FAY_STEP_CALL && step->kind != FAY_STEP_FIXED &&
	       step->kind != FAY_STEP_FAULTING && step->kind != FAY_STEP_STOP;
}

/* Bytes of nops and int3 behind a region, `most` if there are more, up to the next place that
 * anything is known of. */
static size_t padding_of_region(const struct fay_choice *choice,
				const struct fay_code_region *region, size_t most)
{
	const struct fay_flow_program *program = choice->code.program;
	uint8_t bytes[BEHIND + 16];
	size_t size = program->read(program->context, region->end, bytes, most + 16), padding = 0;
	uint64_t start, end;

	while (padding < most) {
		size_t length = fay_padding_length(bytes + padding, size - padding);

		if (!length)
			break;
		padding += length;
	}
	/* What the last of them covers may begin something else. */
	for (size_t i = 0; i < padding; i++)
		if (program->place(program->context, region->end + i, &start, &end) !=
		    FAY_PLACE_UNKNOWN)
			return i;
	return padding;
}

static bool is_free_padding(const struct fay_step *step)
{
	return step->kind == FAY_STEP_PADDING && !step->entered && !step->reached &&
	       !step->first_join && !step->used;
}

/* Padding that nothing enters, behind a step at which the flow ends. */
static size_t padding_behind(const struct fay_choice *choice, size_t step)
{
	const struct fay_code *code = &choice->code;
	uint64_t at = code->steps[step].at + code->steps[step].length;
	size_t bytes = 0;

	for (size_t i = step + 1;
	     i < code->step_count && fay_code_follows(code, i) && bytes < FAY_JUMP_BYTES; i++) {
		if (!is_free_padding(&code->steps[i]))
			return bytes;
		bytes += code->steps[i].length;
	}
	for (size_t r = 0; r < code->region_count && bytes < FAY_JUMP_BYTES; r++)
		if (at + bytes == code->regions[r].end && !code->regions[r].claimed)
			bytes += padding_of_region(choice, &code->regions[r],
						   FAY_JUMP_BYTES - bytes);
	return bytes;
}

/* A hole for a jump in padding that a short jump at the step reaches. In the same page: both are
 * written at once. 0: there is none. */
static uint64_t hole_near(const struct fay_choice *choice, size_t step, size_t own)
{
	const struct fay_code *code = &choice->code;
	uint64_t from = code->steps[step].at + FAY_HOP_BYTES, page = code->steps[step].at / PAGE;

	for (size_t i = 0; i < code->step_count; i++) {
		uint64_t at = code->steps[i].at;
		size_t bytes = 0;

		if (at + NEAR < from || at > from + NEAR || (i >= step && i <= own))
			continue;
		for (size_t k = i;
		     k < code->step_count && bytes < FAY_JUMP_BYTES &&
		     is_free_padding(&code->steps[k]) && (k == i || fay_code_follows(code, k));
		     k++)
			bytes += code->steps[k].length;
		if (bytes >= FAY_JUMP_BYTES && at / PAGE == page &&
		    (at + FAY_JUMP_BYTES - 1) / PAGE == page)
			return at;
	}
	for (size_t r = 0; r < code->region_count; r++) {
		uint64_t begin =
			code->regions[r].claimed ? code->regions[r].claimed : code->regions[r].end;
		uint64_t end =
			code->regions[r].end + padding_of_region(choice, &code->regions[r], BEHIND);

		if (begin + FAY_JUMP_BYTES <= end && begin <= from + NEAR && begin + NEAR >= from &&
		    begin / PAGE == page && (begin + FAY_JUMP_BYTES - 1) / PAGE == page)
			return begin;
	}
	return 0;
}

void fay_room_claim(struct fay_choice *choice, uint64_t at, size_t bytes)
{
	struct fay_code *code = &choice->code;

	for (size_t i = fay_code_find(code, at);
	     i < code->step_count && code->steps[i].at - at < bytes; i++)
		code->steps[i].used = true;
	for (size_t r = 0; r < code->region_count; r++)
		if (at + bytes > code->regions[r].end && at <= code->regions[r].end + BEHIND &&
		    at >= code->regions[r].start)
			code->regions[r].claimed = at + bytes;
}

size_t fay_choice_bytes(const struct fay_choice *choice, size_t first, size_t last)
{
	return (size_t)(choice->code.steps[last].at + choice->code.steps[last].length -
			choice->code.steps[first].at);
}

/* Whether the bytes suffice for a jump, padding included. */
bool fay_room_suffices(const struct fay_choice *choice, size_t first, size_t last)
{
	size_t bytes = fay_choice_bytes(choice, first, last);

	if (bytes >= FAY_JUMP_BYTES)
		return true;
	return fay_step_ends(&choice->code.steps[last]) &&
	       bytes + padding_behind(choice, last) >= FAY_JUMP_BYTES;
}

static bool is_near(uint64_t from, uint64_t hole)
{
	return hole <= from + NEAR && hole + NEAR >= from && hole / PAGE == from / PAGE &&
	       (hole + FAY_JUMP_BYTES - 1) / PAGE == from / PAGE;
}

bool fay_room_grows(const struct fay_choice *choice, size_t last, size_t not_this)
{
	const struct fay_step *next = &choice->code.steps[last + 1];

	return !fay_step_ends(&choice->code.steps[last]) && last + 1 < choice->code.step_count &&
	       last + 1 != not_this && fay_code_follows(&choice->code, last + 1) &&
	       !next->entered && !next->first_join && !next->used && fay_step_moves(next);
}

/* The last step of a window from `first` that is at least up to `last` and has room for two jumps;
 * SIZE_MAX: there is none. */
static size_t host_end(const struct fay_choice *choice, size_t first, size_t last, size_t not_this)
{
	while (fay_choice_bytes(choice, first, last) < 2 * FAY_JUMP_BYTES &&
	       fay_room_grows(choice, last, not_this))
		last++;
	return fay_choice_bytes(choice, first, last) >= 2 * FAY_JUMP_BYTES &&
			       fay_choice_bytes(choice, first, last) <= FAY_FLOW_WINDOW_MAX
		       ? last
		       : SIZE_MAX;
}

/*
 * A window that has, or can have, room for another jump behind its own, within a short jump's reach
 * of `step`: one that is there, or instructions for which one can be made. Its first step and its
 * last one then; *span is its index, SIZE_MAX: it is new. SIZE_MAX: there is none.
 */
static size_t host_near(const struct fay_choice *choice, size_t step, size_t *last, size_t *span)
{
	const struct fay_step *steps = choice->code.steps;
	uint64_t from = steps[step].at + FAY_HOP_BYTES;

	for (*span = 0; *span < choice->span_count; ++*span) {
		const struct fay_span *host = &choice->spans[*span];

		if (!host->hosts && !host->hole &&
		    is_near(from, steps[host->first].at + FAY_JUMP_BYTES) &&
		    (*last = host_end(choice, host->first, host->last, step)) != SIZE_MAX)
			return host->first;
	}
	*span = SIZE_MAX;
	for (size_t i = step > NEAR + FAY_HOP_BYTES ? step - NEAR - FAY_HOP_BYTES : 0;
	     i < choice->code.step_count && i <= step + NEAR; i++)
		if (i != step && !steps[i].used && steps[i].reached && fay_step_moves(&steps[i]) &&
		    is_near(from, steps[i].at + FAY_JUMP_BYTES) &&
		    (*last = host_end(choice, i, i, step)) != SIZE_MAX)
			return i;
	return SIZE_MAX;
}

bool fay_span_push(struct fay_choice *choice, const struct fay_span *span)
{
	if (!fay_choice_grow(choice, (void **)&choice->spans, sizeof(*choice->spans),
			     choice->span_count, &choice->span_room))
		return false;
	choice->spans[choice->span_count++] = *span;
	for (size_t i = span->first; i <= span->last; i++)
		choice->code.steps[i].used = true;
	return true;
}

uint64_t fay_hole_take(struct fay_choice *choice, size_t first, size_t last)
{
	uint64_t hole = hole_near(choice, first, last);
	size_t until, span, host;

	if (hole) {
		fay_room_claim(choice, hole, FAY_JUMP_BYTES);
		return hole;
	}
	host = host_near(choice, first, &until, &span);
	if (host == SIZE_MAX)
		return 0;
	if (span == SIZE_MAX) {
		span = choice->span_count;
		if (!fay_span_push(choice, &(struct fay_span){ .first = host, .last = until }))
			return 0;
	}
	for (size_t i = choice->spans[span].last; i <= until; i++)
		choice->code.steps[i].used = true;
	choice->spans[span].last = until;
	choice->spans[span].hosts = true;
	return choice->code.steps[host].at + FAY_JUMP_BYTES;
}

/* Whether a short jump has room, and a hole to lead to. */
bool fay_room_hops(const struct fay_choice *choice, size_t first, size_t last)
{
	size_t until, span;

	return fay_choice_bytes(choice, first, last) >= FAY_HOP_BYTES &&
	       (hole_near(choice, first, last) ||
		host_near(choice, first, &until, &span) != SIZE_MAX);
}
