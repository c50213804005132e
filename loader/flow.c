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
#include "flow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bisect.h"
#include "flow_code.h"

#define PAGE 4096u
#define NEAR 127u      /* bytes that a short jump reaches */
#define LINE_STEPS 12u /* in front of an exit that are looked at */
#define BEHIND 64u     /* bytes behind a function's end that may be padding */

struct choice {
	struct fay_code code;
	struct fay_flow *flow;
	size_t entry_step; /* the entry's window begins here; SIZE_MAX: there is none */
	struct span {      /* windows, as steps [first, last] */
		size_t first, last;
		bool entry, hosts, leads;
		uint64_t hole;
	} *spans;
	size_t span_count, span_room;
	uint32_t *blocks; /* their first steps */
	size_t block_count, block_room, block_done;
	uint32_t *redirects; /* jumps */
	size_t redirect_count, redirect_room;
};

static unsigned long offset_of(const struct choice *choice, size_t step)
{
	return (unsigned long)(choice->code.steps[step].at - choice->code.regions[0].start);
}

static bool grow(struct choice *choice, void **items, size_t size, size_t count, size_t *room)
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

static bool is_movable(const struct fay_step *step)
{
	return step->kind != FAY_STEP_CALL && step->kind != FAY_STEP_FIXED &&
	       step->kind != FAY_STEP_FAULTING && step->kind != FAY_STEP_STOP;
}

/* Bytes of nops and int3 behind a region, `most` if there are more, up to the next place that
 * anything is known of. */
static size_t padding_of_region(const struct choice *choice, const struct fay_code_region *region,
				size_t most)
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
static size_t padding_behind(const struct choice *choice, size_t step)
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
static uint64_t hole_near(const struct choice *choice, size_t step, size_t own)
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

static void claim(struct choice *choice, uint64_t at, size_t bytes)
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

static size_t bytes_of(const struct choice *choice, size_t first, size_t last)
{
	return (size_t)(choice->code.steps[last].at + choice->code.steps[last].length -
			choice->code.steps[first].at);
}

/* Whether the bytes suffice for a jump, padding included. */
static bool suffices(const struct choice *choice, size_t first, size_t last)
{
	size_t bytes = bytes_of(choice, first, last);

	if (bytes >= FAY_JUMP_BYTES)
		return true;
	return fay_step_ends(&choice->code.steps[last]) &&
	       bytes + padding_behind(choice, last) >= FAY_JUMP_BYTES;
}

static bool block_want(struct choice *choice, size_t step)
{
	struct fay_step *to = &choice->code.steps[step];

	if (to->block)
		return true;
	if (!grow(choice, (void **)&choice->blocks, sizeof(*choice->blocks), choice->block_count,
		  &choice->block_room))
		return false;
	choice->blocks[choice->block_count++] = (uint32_t)step;
	to->block = (uint32_t)choice->block_count;
	return true;
}

static bool is_near(uint64_t from, uint64_t hole)
{
	return hole <= from + NEAR && hole + NEAR >= from && hole / PAGE == from / PAGE &&
	       (hole + FAY_JUMP_BYTES - 1) / PAGE == from / PAGE;
}

static bool may_follow(const struct choice *choice, size_t last, size_t not_this)
{
	const struct fay_step *next = &choice->code.steps[last + 1];

	return last + 1 < choice->code.step_count && last + 1 != not_this &&
	       fay_code_follows(&choice->code, last + 1) && !next->entered && !next->first_join &&
	       !next->used && is_movable(next);
}

/* The last step of a window from `first` that is at least up to `last` and has room for two jumps;
 * SIZE_MAX: there is none. */
static size_t host_end(const struct choice *choice, size_t first, size_t last, size_t not_this)
{
	while (bytes_of(choice, first, last) < 2 * FAY_JUMP_BYTES &&
	       !fay_step_ends(&choice->code.steps[last]) && may_follow(choice, last, not_this))
		last++;
	return bytes_of(choice, first, last) >= 2 * FAY_JUMP_BYTES &&
			       bytes_of(choice, first, last) <= FAY_FLOW_WINDOW_MAX
		       ? last
		       : SIZE_MAX;
}

/*
 * A window that has, or can have, room for another jump behind its own, within a short jump's reach
 * of `step`: one that is there, or instructions for which one can be made. Its first step and its
 * last one then; *span is its index, SIZE_MAX: it is new. SIZE_MAX: there is none.
 */
static size_t host_near(const struct choice *choice, size_t step, size_t *last, size_t *span)
{
	const struct fay_step *steps = choice->code.steps;
	uint64_t from = steps[step].at + FAY_HOP_BYTES;

	for (*span = 0; *span < choice->span_count; ++*span) {
		const struct span *host = &choice->spans[*span];

		if (!host->hosts && !host->hole &&
		    is_near(from, steps[host->first].at + FAY_JUMP_BYTES) &&
		    (*last = host_end(choice, host->first, host->last, step)) != SIZE_MAX)
			return host->first;
	}
	*span = SIZE_MAX;
	for (size_t i = step > NEAR + FAY_HOP_BYTES ? step - NEAR - FAY_HOP_BYTES : 0;
	     i < choice->code.step_count && i <= step + NEAR; i++)
		if (i != step && !steps[i].used && steps[i].reached && is_movable(&steps[i]) &&
		    is_near(from, steps[i].at + FAY_JUMP_BYTES) &&
		    (*last = host_end(choice, i, i, step)) != SIZE_MAX)
			return i;
	return SIZE_MAX;
}

static bool span_push(struct choice *choice, const struct span *span)
{
	if (!grow(choice, (void **)&choice->spans, sizeof(*choice->spans), choice->span_count,
		  &choice->span_room))
		return false;
	choice->spans[choice->span_count++] = *span;
	for (size_t i = span->first; i <= span->last; i++)
		choice->code.steps[i].used = true;
	return true;
}

static uint64_t hole_take(struct choice *choice, size_t first, size_t last)
{
	uint64_t hole = hole_near(choice, first, last);
	size_t until, span, host;

	if (hole) {
		claim(choice, hole, FAY_JUMP_BYTES);
		return hole;
	}
	host = host_near(choice, first, &until, &span);
	if (host == SIZE_MAX)
		return 0;
	if (span == SIZE_MAX) {
		span = choice->span_count;
		if (!span_push(choice, &(struct span){ .first = host, .last = until }))
			return 0;
	}
	for (size_t i = choice->spans[span].last; i <= until; i++)
		choice->code.steps[i].used = true;
	choice->spans[span].last = until;
	choice->spans[span].hosts = true;
	return choice->code.steps[host].at + FAY_JUMP_BYTES;
}

static bool span_add(struct choice *choice, size_t first, size_t last, bool entry)
{
	struct fay_code *code = &choice->code;
	bool room = suffices(choice, first, last);
	uint64_t hole = 0;

	if (bytes_of(choice, first, last) > FAY_FLOW_WINDOW_MAX)
		return fay_code_refuse(code, "has too many instructions to move at +%#lx",
				       offset_of(choice, first));
	for (size_t i = first; i <= last; i++) {
		code->steps[i].used = true;
		if (i > first && code->steps[i].first_join && !block_want(choice, i))
			return false;
	}
	if (room)
		claim(choice, code->steps[first].at, FAY_JUMP_BYTES);
	else
		hole = hole_take(choice, first, last);
	if (!room && !hole)
		return fay_code_refuse(code, "has no room for a jump at +%#lx",
				       offset_of(choice, first));
	return span_push(
		choice,
		&(struct span){ .first = first, .last = last, .entry = entry, .hole = hole });
}

/* Whether a short jump has room, and a hole to lead to. */
static bool hops(const struct choice *choice, size_t first, size_t last)
{
	size_t until, span;

	return bytes_of(choice, first, last) >= FAY_HOP_BYTES &&
	       (hole_near(choice, first, last) ||
		host_near(choice, first, &until, &span) != SIZE_MAX);
}

static struct span *span_ending_before(struct choice *choice, size_t step)
{
	for (size_t i = choice->span_count; i-- > 0;)
		if (choice->spans[i].last + 1 == step)
			return &choice->spans[i];
	return NULL;
}

/* Whether the flow may fall from the step before into this one. */
static bool falls_into(const struct choice *choice, size_t step)
{
	return fay_code_follows(&choice->code, step) &&
	       !fay_step_ends(&choice->code.steps[step - 1]) &&
	       choice->code.steps[step - 1].reached;
}

/* A jump that nobody falls past its end: from `step` an end of the flow is reached in a straight
 * line, which a block's copy needs. */
static bool block_end(const struct choice *choice, size_t step, size_t *last)
{
	for (size_t i = step; i < choice->code.step_count; i++) {
		if (i > step && (!fay_code_follows(&choice->code, i)))
			return false;
		if (!is_movable(&choice->code.steps[i]) ||
		    bytes_of(choice, step, i) > FAY_FLOW_WINDOW_MAX)
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
static bool cover_exit(struct choice *choice, size_t exit)
{
	struct fay_code *code = &choice->code;
	struct span *before;
	size_t first = exit, last = exit;

	if (code->steps[exit].used)
		return true;
	while (!suffices(choice, first, last)) {
		if (code->steps[first].entered || !falls_into(choice, first)) {
			/* Forward, where the flow goes on. */
			if (!fay_step_ends(&code->steps[last]) && last + 1 < code->step_count &&
			    fay_code_follows(code, last + 1) && !code->steps[last + 1].entered &&
			    !code->steps[last + 1].first_join && !code->steps[last + 1].used &&
			    is_movable(&code->steps[last + 1])) {
				last++;
				continue;
			}
			break;
		}
		if (code->steps[first - 1].used) {
			before = span_ending_before(choice, first);
			if (!before)
				return fay_code_refuse(code,
						       "has exits too close to each other at +%#lx",
						       offset_of(choice, exit));
			/* They become one. */
			for (size_t i = first; i <= last; i++) {
				code->steps[i].used = true;
				if (code->steps[i].first_join && !block_want(choice, i))
					return false;
			}
			before->last = last;
			return bytes_of(choice, before->first, last) <= FAY_FLOW_WINDOW_MAX ||
			       fay_code_refuse(code, "has too many instructions to move at +%#lx",
					       offset_of(choice, first));
		}
		if (!is_movable(&code->steps[first - 1]))
			break;
		first--;
	}
	if (suffices(choice, first, last) ||
	    ((code->steps[first].entered || falls_into(choice, first)) &&
	     hops(choice, first, last)))
		return span_add(choice, first, last, false);
	if (code->steps[first].entered)
		return fay_code_refuse(code,
				       "has no room for a jump at +%#lx, which may be entered by "
				       "more than its own jumps",
				       offset_of(choice, exit));
	if (falls_into(choice, first))
		return fay_code_refuse(code,
				       "has no room for a jump at +%#lx behind an instruction that "
				       "cannot be moved",
				       offset_of(choice, exit));
	for (size_t i = first; i <= last; i++)
		if (code->steps[i].first_join && !block_want(choice, i))
			return false;
	return true;
}

static bool redirect_add(struct choice *choice, size_t jump)
{
	if (!grow(choice, (void **)&choice->redirects, sizeof(*choice->redirects),
		  choice->redirect_count, &choice->redirect_room))
		return false;
	choice->redirects[choice->redirect_count++] = (uint32_t)jump;
	choice->code.steps[jump].used = true;
	return true;
}

/* A window around a short jump. */
static bool window_around(struct choice *choice, size_t jump)
{
	struct fay_code *code = &choice->code;
	size_t first = jump, last = jump;

	for (;;) {
		const struct fay_step *next =
			last + 1 < code->step_count && fay_code_follows(code, last + 1)
				? &code->steps[last + 1]
				: NULL;

		if (suffices(choice, first, last))
			return span_add(choice, first, last, false);
		if (!fay_step_ends(&code->steps[last]) && next && !next->entered &&
		    !next->first_join && !next->used && is_movable(next)) {
			last++;
			continue;
		}
		if (code->steps[first].entered || code->steps[first].first_join ||
		    !falls_into(choice, first) || code->steps[first - 1].used ||
		    !is_movable(&code->steps[first - 1]))
			return hops(choice, first, last) && span_add(choice, first, last, false);
		first--;
	}
}

/* All jumps to a place lead to its copy from now on. */
static bool redirect_all(struct choice *choice, size_t to)
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
					       offset_of(choice, join - 1));
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
							 offset_of(choice, to),
							 offset_of(choice, join - 1))
				       : false;
	}
	return true;
}

/* As fay_patchable() and fay_displace() would do it, but that exits may be in it, too. */
static bool cover_entry(struct choice *choice)
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
		size_t size = bytes_of(choice, first, last);

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
		if (suffices(choice, first, last))
			break;
		next = !fay_step_ends(step) && last + 1 < code->step_count &&
				       fay_code_follows(code, last + 1)
			       ? &code->steps[last + 1]
			       : NULL;
		if ((!next || next->entered) && hops(choice, first, last))
			break;
		if (fay_step_ends(step))
			return fay_code_refuse(code, "is %zu bytes long, a jump needs %u", size,
					       FAY_JUMP_BYTES);
		if (!next)
			return fay_code_refuse(code, "is %zu bytes long, a jump needs %u", size,
					       FAY_JUMP_BYTES);
		if (next->entered)
			return fay_code_refuse(code, "may be entered within its first %u bytes",
					       FAY_JUMP_BYTES);
		if (next->first_join) {
			size_t end;

			if (!block_end(choice, last + 1, &end))
				return fay_code_refuse(code, "has a jump into its first %u bytes",
						       FAY_JUMP_BYTES);
		}
	}
	choice->entry_step = first;
	return span_add(choice, first, last, true);
}

static bool entry_joins(struct choice *choice)
{
	size_t first = choice->code.regions[0].first;

	return redirect_all(choice, choice->entry_step) &&
	       (first == choice->entry_step || redirect_all(choice, first));
}

/* Blocks lead to an end in a straight line; making them may want more windows, which may want more
 * blocks. */
static bool cover_blocks(struct choice *choice)
{
	while (choice->block_done < choice->block_count) {
		size_t step = choice->blocks[choice->block_done++], end;

		if (!block_end(choice, step, &end))
			return fay_code_refuse(&choice->code,
					       "has no room for a jump at +%#lx, and what follows "
					       "cannot be copied",
					       offset_of(choice, step));
		if (!redirect_all(choice, step))
			return false;
	}
	return true;
}

static bool cover_all(struct choice *choice, bool entry)
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

static int by_first(const void *a, const void *b, void *context)
{
	const struct fay_step *steps = context;
	const struct span *x = a, *y = b;

	if (x->entry != y->entry)
		return x->entry ? -1 : 1;
	return steps[x->first].at < steps[y->first].at ? -1
						       : steps[x->first].at > steps[y->first].at;
}

static int by_at(const void *a, const void *b)
{
	const struct fay_exit *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

static uint32_t exit_index(const struct fay_flow *flow, uint64_t at)
{
	return (uint32_t)FAY_COUNT_BELOW(flow->exits, flow->exit_count, at, at);
}

/* Whether flags that were set in front of an exit are for what comes behind it: assembly may return
 * them. */
static bool carries_flags(const struct fay_code *code, size_t exit)
{
	for (size_t i = exit; i > 0 && i + LINE_STEPS > exit && fay_code_follows(code, i); i--) {
		const struct fay_step *step = &code->steps[i - 1];

		if (step->kind == FAY_STEP_PADDING)
			continue;
		if (step->kind != FAY_STEP_PLAIN || step->flags == FAY_FLAGS_USED)
			return false;
		if (step->flags == FAY_FLAGS_SET)
			return true;
	}
	return false;
}

static bool is_unsure(const struct fay_code *code, size_t exit)
{
	for (size_t i = exit; i > 0 && i + LINE_STEPS > exit && fay_code_follows(code, i); i--)
		if (code->steps[i - 1].moves_stack)
			return true;
	return false;
}

static bool write_exits(struct choice *choice)
{
	struct fay_flow *flow = choice->flow;
	size_t count = 0;

	for (size_t i = 0; i < choice->code.step_count; i++)
		count += choice->code.steps[i].exit + (choice->code.steps[i].runs_on != 0);
	flow->exits = calloc(count + 1, sizeof(*flow->exits));
	if (!flow->exits)
		return false;
	for (size_t i = 0; i < choice->code.step_count; i++) {
		const struct fay_step *step = &choice->code.steps[i];

		if (step->runs_on)
			flow->exits[flow->exit_count++] =
				(struct fay_exit){ .at = step->at + step->length,
						   .target = step->runs_on,
						   .kind = FAY_EXIT_JUMP,
						   .careful = true };
		if (!step->exit)
			continue;
		flow->exits[flow->exit_count++] = (struct fay_exit){
			.at = step->at,
			.target = step->target,
			.length = step->length,
			.kind = step->kind == FAY_STEP_RETURN     ? FAY_EXIT_RETURN
				: step->kind == FAY_STEP_INDIRECT ? FAY_EXIT_INDIRECT
								  : FAY_EXIT_JUMP,
			.conditional = step->kind == FAY_STEP_BRANCH,
			.unsure = step->kind == FAY_STEP_RETURN && is_unsure(&choice->code, i),
			.careful = step->careful || carries_flags(&choice->code, i),
		};
	}
	qsort(flow->exits, flow->exit_count, sizeof(*flow->exits), by_at);
	return true;
}

static bool write_flow(struct choice *choice)
{
	struct fay_flow *flow = choice->flow;
	const struct fay_step *steps = choice->code.steps;

	flow->parts = calloc(choice->code.region_count, sizeof(*flow->parts));
	for (size_t i = 0; flow->parts && i < choice->code.region_count; i++)
		flow->parts[flow->part_count++] =
			(struct fay_flow_part){ choice->code.regions[i].start,
						choice->code.regions[i].end };
	flow->windows = calloc(choice->span_count + 1, sizeof(*flow->windows));
	flow->blocks = calloc(choice->block_count + 1, sizeof(*flow->blocks));
	flow->redirects = calloc(choice->redirect_count + 1, sizeof(*flow->redirects));
	if (!flow->parts || !flow->windows || !flow->blocks || !flow->redirects ||
	    !write_exits(choice))
		return false;
	if (choice->span_count)
		qsort_r(choice->spans, choice->span_count, sizeof(*choice->spans), by_first,
			choice->code.steps);
	for (size_t i = 0; i < choice->span_count; i++) {
		const struct span *span = &choice->spans[i];
		uint64_t site = steps[span->first].at,
			 end = steps[span->last].at + steps[span->last].length;
		uint32_t first = exit_index(flow, site);
		bool runs_on = steps[span->last].runs_on != 0;

		flow->windows[flow->window_count++] =
			(struct fay_window){ .site = site,
					     .length = (uint32_t)(end - site),
					     .first = first,
					     .count = exit_index(flow, end) + runs_on - first,
					     .entry = span->entry,
					     .ends = fay_step_ends(&steps[span->last]),
					     .hosts = span->hosts,
					     .leads = span->leads,
					     .hole = span->hole };
	}
	for (size_t i = 0; i < choice->block_count; i++) {
		size_t end = 0;

		if (!block_end(choice, choice->blocks[i], &end))
			return false;
		flow->blocks[flow->block_count++] =
			(struct fay_block){ steps[choice->blocks[i]].at,
					    (uint32_t)bytes_of(choice, choice->blocks[i], end),
					    exit_index(flow, steps[end].at) };
	}
	for (size_t i = 0; i < choice->redirect_count; i++) {
		const struct fay_step *jump = &steps[choice->redirects[i]];
		size_t to = fay_code_find(&choice->code, jump->target);

		flow->redirects[flow->redirect_count++] =
			(struct fay_redirect){ jump->at + jump->length - FAY_JUMP_BYTES,
					       steps[to].block ? steps[to].block - 1
							       : FAY_FLOW_ENTRY };
	}
	return true;
}

/* What is moved can be: as the loader will do it, to a place nearby. */
static bool check_moves(struct choice *choice)
{
	const struct fay_flow *flow = choice->flow;

	for (size_t i = 0; i < flow->window_count; i++) {
		const struct fay_window *window = &flow->windows[i];
		uint8_t bytes[FAY_FLOW_WINDOW_MAX];

		if (choice->code.program->read(choice->code.program->context, window->site, bytes,
					       window->length) != window->length)
			return fay_code_refuse(&choice->code, "is not readable in the process");
		for (size_t at = 0; at < window->length;) {
			struct fay_displaced displaced;

			if (!fay_displace(bytes + at, window->length - at, 1, window->site + at,
					  window->site + at, &displaced, choice->code.reason))
				return false;
			at += displaced.length;
		}
	}
	return true;
}

static void choice_deinit(struct choice *choice)
{
	free(choice->spans);
	free(choice->blocks);
	free(choice->redirects);
	fay_code_deinit(&choice->code);
}

static void forget(struct fay_flow *flow)
{
	free(flow->parts);
	free(flow->exits);
	free(flow->windows);
	free(flow->blocks);
	free(flow->redirects);
	flow->parts = NULL;
	flow->exits = NULL;
	flow->windows = NULL;
	flow->blocks = NULL;
	flow->redirects = NULL;
	flow->part_count = flow->exit_count = flow->window_count = flow->block_count =
		flow->redirect_count = 0;
}

bool fay_flow_read(const struct fay_flow_program *program, uint64_t start, uint64_t end, bool entry,
		   struct fay_flow *flow)
{
	struct choice choice = { .code = { .program = program, .reason = flow->reason },
				 .flow = flow };
	bool done;

	memset(flow, 0, sizeof(*flow));
	done = fay_code_read(&choice.code, start, end) && cover_all(&choice, entry);
	if (done && !write_flow(&choice))
		choice.code.no_memory = true;
	else if (done && !check_moves(&choice))
		forget(flow);
	choice_deinit(&choice);
	return !choice.code.no_memory;
}

void fay_flow_deinit(struct fay_flow *flow)
{
	forget(flow);
}
