/* SPDX-License-Identifier: MIT */
/*
 * Choosing windows, blocks and redirects for a function's exits. flow_code.c has read where
 * instructions may be entered:
 *
 *	entered	   by others than direct jumps of the function, or perhaps: such an instruction may
 *		   only be a window's first
 *	joined	   by direct jumps, all of which are known: such an instruction may be inside a
 *		   window if its jumps are led to a copy (a block)
 *
 * A window is made for each exit by going back from it until there are bytes for a jump, with the
 * padding behind it where the flow ends there.
 */
#include "flow_private.h"

#include <stdlib.h>
#include <string.h>

static bool block_want(struct fay_choice *choice, size_t step)
{
	struct fay_step *to = &choice->code.steps[step];

	if (to->block)
		return true;
	if (!fay_choice_grow(choice, (void **)&choice->blocks, sizeof(*choice->blocks),
			     choice->block_count, &choice->block_room))
		return false;
	choice->blocks[choice->block_count++] = (uint32_t)step;
	to->block = (uint32_t)choice->block_count;
	return true;
}

static bool span_add(struct fay_choice *choice, size_t first, size_t last, bool entry)
{
	struct fay_code *code = &choice->code;
	bool room = fay_room_suffices(choice, first, last);
	uint64_t hole = 0;

	if (fay_choice_bytes(choice, first, last) > FAY_FLOW_WINDOW_MAX)
		return fay_code_refuse(code, "has too many instructions to move at +%#lx",
				       fay_choice_offset(choice, first));
	for (size_t i = first; i <= last; i++) {
		code->steps[i].used = true;
		if (i > first && code->steps[i].first_join && !block_want(choice, i))
			return false;
	}
	if (room)
		fay_room_claim(choice, code->steps[first].at, FAY_JUMP_BYTES);
	else
		hole = fay_hole_take(choice, first, last);
	if (!room && !hole)
		return fay_code_refuse(code, "has no room for a jump at +%#lx",
				       fay_choice_offset(choice, first));
	return fay_span_push(
		choice,
		&(struct fay_span){ .first = first, .last = last, .entry = entry, .hole = hole });
}

static struct fay_span *span_ending_before(struct fay_choice *choice, size_t step)
{
	for (size_t i = choice->span_count; i-- > 0;)
		if (choice->spans[i].last + 1 == step)
			return &choice->spans[i];
	return NULL;
}

/* Whether the flow may fall from the step before into this one. */
static bool falls_into(const struct fay_choice *choice, size_t step)
{
	return fay_code_follows(&choice->code, step) &&
	       !fay_step_ends(&choice->code.steps[step - 1]) &&
	       choice->code.steps[step - 1].reached;
}

/* A jump that nobody falls past its end: from `step` an end of the flow is reached in a straight
 * line, which a block's copy needs. */
bool fay_block_end(const struct fay_choice *choice, size_t step, size_t *last)
{
	for (size_t i = step; i < choice->code.step_count; i++) {
		if (i > step && (!fay_code_follows(&choice->code, i)))
			return false;
		if (!fay_step_moves(&choice->code.steps[i]) ||
		    fay_choice_bytes(choice, step, i) > FAY_FLOW_WINDOW_MAX)
			return false;
		if (fay_step_ends(&choice->code.steps[i])) {
			*last = i;
			return choice->code.steps[i].exit;
		}
		if (choice->code.steps[i].exit)
			return false; /* a conditional one in between */
	}
	return false;
}

/* The exit's window, or blocks instead of it. */
static bool cover_exit(struct fay_choice *choice, size_t exit)
{
	struct fay_code *code = &choice->code;
	struct fay_span *before;
	size_t first = exit, last = exit;

	if (code->steps[exit].used)
		return true;
	while (!fay_room_suffices(choice, first, last)) {
		if (code->steps[first].entered || !falls_into(choice, first)) {
			/* Forward, where the flow goes on. */
			if (!fay_room_grows(choice, last, SIZE_MAX))
				break;
			last++;
			continue;
		}
		if (code->steps[first - 1].used) {
			before = span_ending_before(choice, first);
			if (!before)
				return fay_code_refuse(code,
						       "has exits too close to each other at +%#lx",
						       fay_choice_offset(choice, exit));
			/* They become one. */
			for (size_t i = first; i <= last; i++) {
				code->steps[i].used = true;
				if (code->steps[i].first_join && !block_want(choice, i))
					return false;
			}
			before->last = last;
			return fay_choice_bytes(choice, before->first, last) <=
				       FAY_FLOW_WINDOW_MAX ||
			       fay_code_refuse(code, "has too many instructions to move at +%#lx",
					       fay_choice_offset(choice, first));
		}
		if (!fay_step_moves(&code->steps[first - 1]))
			break;
		first--;
	}
	if (fay_room_suffices(choice, first, last) ||
	    ((code->steps[first].entered || falls_into(choice, first)) &&
	     fay_room_hops(choice, first, last)))
		return span_add(choice, first, last, false);
	if (code->steps[first].entered)
		return fay_code_refuse(code,
				       "has no room for a jump at +%#lx, which may be entered by "
				       "more than its own jumps",
				       fay_choice_offset(choice, exit));
	if (falls_into(choice, first))
		return fay_code_refuse(
			code,
			"has no room for a jump at +%#lx after an instruction that cannot be moved",
			fay_choice_offset(choice, exit));
	for (size_t i = first; i <= last; i++)
		if (code->steps[i].first_join && !block_want(choice, i))
			return false;
	return true;
}

static bool redirect_add(struct fay_choice *choice, size_t jump)
{
	if (!fay_choice_grow(choice, (void **)&choice->redirects, sizeof(*choice->redirects),
			     choice->redirect_count, &choice->redirect_room))
		return false;
	choice->redirects[choice->redirect_count++] = (uint32_t)jump;
	choice->code.steps[jump].used = true;
	return true;
}

/* A window around a short jump. */
static bool window_around(struct fay_choice *choice, size_t jump)
{
	struct fay_code *code = &choice->code;
	size_t first = jump, last = jump;

	for (;;) {
		if (fay_room_suffices(choice, first, last))
			return span_add(choice, first, last, false);
		if (fay_room_grows(choice, last, SIZE_MAX)) {
			last++;
			continue;
		}
		if (code->steps[first].entered || code->steps[first].first_join ||
		    !falls_into(choice, first) || code->steps[first - 1].used ||
		    !fay_step_moves(&code->steps[first - 1]))
			return fay_room_hops(choice, first, last) &&
			       span_add(choice, first, last, false);
		first--;
	}
}

/* All jumps to a place lead to its copy from now on. */
static bool redirect_all(struct fay_choice *choice, size_t to)
{
	struct fay_code *code = &choice->code;

	for (uint32_t join = code->steps[to].first_join; join;
	     join = code->steps[join - 1].next_join) {
		struct fay_step *jump = &code->steps[join - 1];

		if (jump->used) {
			bool redirected = false;

			for (size_t i = 0; i < choice->span_count && !redirected; i++) {
				redirected = join - 1 >= choice->spans[i].first &&
					     join - 1 <= choice->spans[i].last;
				choice->spans[i].leads |= redirected;
			}
			if (redirected)
				continue;
			return fay_code_refuse(code, "has jumps too close to each other at +%#lx",
					       fay_choice_offset(choice, join - 1));
		}
		if (!jump->is_short) {
			if (!redirect_add(choice, join - 1))
				return false;
			continue;
		}
		if (!window_around(choice, join - 1))
			return !code->no_memory && !*code->reason
				       ? fay_code_refuse(code,
							 "has no room for a jump at +%#lx, nor at "
							 "+%#lx, which leads there",
							 fay_choice_offset(choice, to),
							 fay_choice_offset(choice, join - 1))
				       : false;
	}
	return true;
}

/* As fay_place_judge() and fay_displace() would do it, but that exits may be in it, too. */
static bool cover_entry(struct fay_choice *choice)
{
	struct fay_code *code = &choice->code;
	size_t first = code->regions[0].first, last;
	uint8_t bytes[4];

	if (code->steps[first].length == 4 &&
	    code->program->read(code->program->context, code->steps[first].at, bytes, 4) == 4 &&
	    !memcmp(bytes, "\xf3\x0f\x1e\xfa", 4))
		first++;
	if (first >= code->step_count ||
	    (first != code->regions[0].first && !fay_code_follows(code, first)))
		return fay_code_refuse(code, "has no instruction");
	for (last = first;; last++) {
		const struct fay_step *step = &code->steps[last], *next;
		size_t size = fay_choice_bytes(choice, first, last);

		if (step->kind == FAY_STEP_STOP ||
		    (step->kind == FAY_STEP_CALL && size < FAY_JUMP_BYTES))
			return fay_code_refuse(code,
					       "has a call or a stop within its first %u bytes",
					       FAY_JUMP_BYTES);
		if (step->kind == FAY_STEP_FIXED || step->kind == FAY_STEP_FAULTING)
			return fay_code_refuse(
				code,
				"has an instruction within its first %u bytes that cannot be moved",
				FAY_JUMP_BYTES);
		if (fay_room_suffices(choice, first, last))
			break;
		next = !fay_step_ends(step) && last + 1 < code->step_count &&
				       fay_code_follows(code, last + 1)
			       ? &code->steps[last + 1]
			       : NULL;
		if ((!next || next->entered) && fay_room_hops(choice, first, last))
			break;
		if (!next)
			return fay_code_refuse(code, "is %zu bytes long, a jump needs %u", size,
					       FAY_JUMP_BYTES);
		if (next->entered)
			return fay_code_refuse(code, "may be entered within its first %u bytes",
					       FAY_JUMP_BYTES);
		if (next->first_join) {
			size_t end;

			if (!fay_block_end(choice, last + 1, &end))
				return fay_code_refuse(code, "has a jump into its first %u bytes",
						       FAY_JUMP_BYTES);
		}
	}
	choice->entry_step = first;
	return span_add(choice, first, last, true);
}

static bool entry_joins(struct fay_choice *choice)
{
	size_t first = choice->code.regions[0].first;

	return redirect_all(choice, choice->entry_step) &&
	       (first == choice->entry_step || redirect_all(choice, first));
}

/* Blocks lead to an end in a straight line; making them may want more windows, which may want more
 * blocks. */
static bool cover_blocks(struct fay_choice *choice)
{
	while (choice->block_done < choice->block_count) {
		size_t step = choice->blocks[choice->block_done++], end;

		if (!fay_block_end(choice, step, &end))
			return fay_code_refuse(&choice->code,
					       "has no room for a jump at +%#lx, and what follows "
					       "cannot be copied",
					       fay_choice_offset(choice, step));
		if (!redirect_all(choice, step))
			return false;
	}
	return true;
}

bool fay_cover_all(struct fay_choice *choice, bool entry)
{
	choice->entry_step = SIZE_MAX;
	if (entry && !cover_entry(choice))
		return false;
	for (size_t i = 0; i < choice->code.step_count; i++)
		if ((choice->code.steps[i].exit || choice->code.steps[i].runs_on) &&
		    !cover_exit(choice, i))
			return false;
	return (!entry || entry_joins(choice)) && cover_blocks(choice);
}
