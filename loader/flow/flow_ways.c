/* SPDX-License-Identifier: MIT */
/* Where a function's instructions may be entered, what is reached from there and with what on the
 * stack, and which of them leave the function. */
#include "flow_private.h"

#include <stdlib.h>
#include <string.h>

#define INSTRUCTION_MAX 15u
#define PADDING_MOST 64u /* bytes between two functions */
#define LOCK_PREFIX 0xf0u

static bool is_behind_call(const struct fay_code *code, size_t step)
{
	return fay_code_follows(code, step) && code->steps[step - 1].kind == FAY_STEP_CALL;
}

/* By the call in front of it, which returns. */
static void enter_by_return(struct fay_step *step)
{
	step->returned |= !step->entered;
	step->entered = true;
}

/*
 * Data may look like an address in the midst of an instruction. If it is one, the instruction may
 * be overwritten no more than one that begins there.
 */
static void mark_taken(struct fay_code *code, uint64_t address, enum fay_taken_kind kind)
{
	size_t step = SIZE_MAX;

	for (unsigned back = 0; back < INSTRUCTION_MAX && step == SIZE_MAX; back++) {
		step = fay_code_find(code, address - back);
		if (step == SIZE_MAX)
			continue;
		/* Where calls return to is known to collectors of garbage. */
		if (kind == FAY_TAKEN_WORD && is_behind_call(code, step)) {
			enter_by_return(&code->steps[step]);
		} else {
			fay_step_enter(&code->steps[step]);
			code->steps[step].label |= kind == FAY_TAKEN_WORD;
		}
		code->steps[step].handler |= kind == FAY_TAKEN_HANDLER;
		if (back && code->steps[step].kind == FAY_STEP_PLAIN)
			code->steps[step].kind = FAY_STEP_FIXED;
	}
}

/* Marks what others tell, and instructions behind calls. */
static bool mark_entered(struct fay_code *code)
{
	for (size_t r = 0; r < code->region_count; r++)
		for (enum fay_taken_kind kind = 0; kind < FAY_TAKEN_KINDS; kind++) {
			size_t count;
			const uint64_t *taken = code->program->taken(code->program->context, kind,
								     code->regions[r].start,
								     code->regions[r].end, &count);

			if (!taken || (kind == FAY_TAKEN_DOUBT && count))
				return fay_code_refuse(code, "is in a file whose relocations or "
							     "unwind tables are not understood");
			for (size_t i = 0; i < count; i++) {
				if (kind == FAY_TAKEN_ENTRY && taken[i] != code->regions[r].start)
					return fay_code_refuse(code, "has another entry at +%#lx",
							       fay_code_offset(code, taken[i]));
				mark_taken(code, taken[i], kind);
			}
		}
	for (size_t i = 1; i < code->step_count; i++) {
		const struct fay_step *call = &code->steps[i - 1];

		if (!fay_code_follows(code, i) ||
		    (call->kind != FAY_STEP_CALL && call->kind != FAY_STEP_FIXED))
			continue;
		if (call->kind == FAY_STEP_CALL)
			enter_by_return(&code->steps[i]);
		else
			fay_step_enter(&code->steps[i]);
		/* A call needs the stack aligned, and a return the stack of the function's begin:
		 * next to each other they are __morestack's. */
		if (!code->splits || !call->target || code->steps[i].kind != FAY_STEP_RETURN ||
		    i + 1 == code->step_count || !fay_code_follows(code, i + 1))
			continue;
		code->steps[i].passed = true;
		fay_step_enter(&code->steps[i + 1]);
	}
	return true;
}

static bool begins_with_lock(const struct fay_code *code, size_t step)
{
	uint8_t byte = 0;

	return code->program->read(code->program->context, code->steps[step].at, &byte, 1) == 1 &&
	       byte == LOCK_PREFIX;
}

static bool join_jumps(struct fay_code *code)
{
	for (size_t i = 0; i < code->step_count; i++) {
		struct fay_step *step = &code->steps[i];
		size_t to;

		if (!step->target || step->exit)
			continue;
		to = fay_code_find(code, step->target);
		/* of a part of itself: which of its exits are whose is not known */
		if (step->kind == FAY_STEP_CALL) {
			if (to != SIZE_MAX && to != code->regions[0].first)
				return fay_code_refuse(code, "calls a part of itself at +%#lx",
						       fay_code_offset(code, step->at));
			continue;
		}
		if (to == SIZE_MAX) { /* past a lock prefix */
			to = fay_code_find(code, step->target - 1);
			if (to == SIZE_MAX || !begins_with_lock(code, to))
				return fay_code_refuse(
					code,
					"has a jump at +%#lx into the middle of an instruction",
					fay_code_offset(code, step->at));
			fay_step_enter(&code->steps[to]);
			code->steps[to].kind = code->steps[to].kind == FAY_STEP_PLAIN
						       ? FAY_STEP_FIXED
						       : code->steps[to].kind;
			continue;
		}
		if (step->kind == FAY_STEP_FIXED) {
			fay_step_enter(&code->steps[to]);
			continue;
		}
		step->next_join = code->steps[to].first_join;
		code->steps[to].first_join = (uint32_t)i + 1;
	}
	return true;
}

/* Code that nothing known leads to. */
static bool is_unled(const struct fay_step *step)
{
	return step->kind != FAY_STEP_PADDING && step->kind != FAY_STEP_STOP;
}

/* Ways in that are known: from the function's begin, and from all that is entered; then what is
 * left, wherever ways to it come from. Depths of the stack on the way. */
static bool reach(struct fay_code *code)
{
	uint32_t *waiting = malloc((2 * code->step_count + 1) * sizeof(*waiting));
	int32_t *change = malloc((code->step_count + 1) * sizeof(*change));
	size_t count = 0;

	if (!waiting || !change) {
		free(waiting);
		free(change);
		return code->no_memory = true, false;
	}
	for (size_t i = 0; i < code->step_count; i++) {
		change[i] = code->steps[i].depth;
		code->steps[i].depth = -1;
	}
	for (unsigned round = 0; round < 3; round++) {
		for (size_t i = 0; i < code->step_count; i++) {
			bool begins = i == code->regions[0].first;
			uint64_t unled = round == 2 ? code->steps[i].at : 0;

			if (code->steps[i].reached || (round == 0   ? !begins
						       : round == 1 ? !code->steps[i].entered
								    : !is_unled(&code->steps[i])))
				continue;
			code->steps[i].reached = true;
			code->steps[i].unled = unled;
			code->steps[i].depth = begins ? 0 : -1;
			waiting[count++] = (uint32_t)i;
			while (count) {
				size_t at = waiting[--count], next[2], ways = 0;
				const struct fay_step *step = &code->steps[at];
				int32_t depth = change[at] == INT32_MAX ? 0
						: step->depth < 0 || change[at] == INT32_MIN
							? -1
							: step->depth + change[at];

				if (!fay_step_ends(step) && at + 1 < code->step_count &&
				    fay_code_follows(code, at + 1))
					next[ways++] = at + 1;
				if (step->target && !step->exit && step->kind != FAY_STEP_CALL &&
				    fay_code_find(code, step->target) != SIZE_MAX)
					next[ways++] = fay_code_find(code, step->target);
				for (size_t k = 0; k < ways; k++) {
					struct fay_step *to = &code->steps[next[k]];

					/* Where two ways disagree, behind a call that does not
					 * return, nothing is known. */
					if (to->reached && (to->depth == depth || to->depth < 0))
						continue;
					to->depth = to->reached ? -1 : depth;
					to->unled = to->reached ? to->unled : unled;
					to->reached = true;
					waiting[count++] = (uint32_t)next[k];
				}
			}
		}
	}
	free(waiting);
	free(change);
	return true;
}

/* The function that begins behind an address, with nothing but padding in between; 0: none does. */
static uint64_t function_behind(const struct fay_code *code, uint64_t address)
{
	uint8_t bytes[PADDING_MOST + INSTRUCTION_MAX];
	size_t size = code->program->read(code->program->context, address, bytes, sizeof(bytes));
	uint64_t start, end;

	for (size_t at = 0; at < PADDING_MOST && at < size;) {
		enum fay_flow_place place =
			code->program->place(code->program->context, address + at, &start, &end);
		size_t length = fay_padding_length(bytes + at, size - at);

		if (place == FAY_PLACE_FUNCTION)
			return address + at;
		if (place != FAY_PLACE_UNKNOWN || !length || bytes[at] == 0xcc)
			return 0;
		at += length;
	}
	return 0;
}

/* Behind a region's last instruction nothing of it follows, unless it runs on into another
 * function, which is an exit, too. */
static bool check_ends(struct fay_code *code)
{
	for (size_t r = 0; r < code->region_count; r++) {
		size_t last = code->regions[r].first + code->regions[r].count;

		while (last-- > code->regions[r].first &&
		       code->steps[last].kind == FAY_STEP_PADDING)
			;
		if (last + 1 == code->regions[r].first)
			return fay_code_refuse(code, "has no instruction");
		if (fay_step_ends(&code->steps[last]) || code->steps[last].kind == FAY_STEP_CALL ||
		    !code->steps[last].reached)
			continue;
		code->steps[last].runs_on = function_behind(code, code->regions[r].end);
		if (!code->steps[last].runs_on || (code->steps[last].kind != FAY_STEP_PLAIN &&
						   code->steps[last].kind != FAY_STEP_BRANCH))
			return fay_code_refuse(code, "runs on past its end");
	}
	return true;
}

/*
 * What nothing known leads to was found by no table that was read: then there may be others.
 * Padding is no code; behind a call that does not return there may be anything, which counts as
 * entered. The ways out from there are the function's, too, but for those that are not understood.
 */
static bool check_reached(struct fay_code *code)
{
	const struct fay_flow_program *program = code->program;
	bool leaves = false;

	for (size_t i = 0; i < code->step_count; i++) {
		const struct fay_step *step = &code->steps[i];
		bool padding = step->kind == FAY_STEP_PADDING;

		if (step->unled) {
			leaves |= step->away;
			if (!*code->reason)
				fay_code_refuse(code,
						"has code at +%#lx that nothing known leads to",
						fay_code_offset(code, step->at));
		}
		/* it may hide an exit */
		if (padding && step->reached && program->trapped &&
		    program->trapped(program->context, step->at))
			return fay_code_refuse(code, "has another tracer's trap at +%#lx",
					       fay_code_offset(code, step->at));
	}
	return !leaves;
}

static bool find_returns(struct fay_code *code)
{
	for (size_t i = 0; i < code->step_count; i++) {
		if (code->steps[i].kind != FAY_STEP_RETURN)
			continue;
		if (code->steps[i].depth > 0)
			return fay_code_refuse(code,
					       "returns at +%#lx to what it has put on the stack",
					       fay_code_offset(code, code->steps[i].at));
		code->steps[i].exit = !code->steps[i].passed;
	}
	return true;
}

bool fay_code_find_ways(struct fay_code *code)
{
	return mark_entered(code) && join_jumps(code) && fay_code_read_labels(code) &&
	       reach(code) && check_reached(code) && check_ends(code) &&
	       fay_code_resolve_indirect(code) && find_returns(code);
}
