/* SPDX-License-Identifier: MIT */
/* From what was chosen for a function to what the loader is told of it: exits, windows, blocks and
 * redirects. */
#include "flow.h"

#include <stdlib.h>
#include <string.h>

#include "flow_private.h"
#include "loader/bisect.h"

#define LINE_STEPS 12u /* in front of an exit that are looked at */

static int by_first(const void *a, const void *b, void *context)
{
	const struct fay_step *steps = context;
	const struct fay_span *x = a, *y = b;

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

/* It is left by jumps, and addresses inside it are known elsewhere: who has one may come back
 * there, as programs in continuation-passing style do. Such a call has more exits than one. */
static bool comes_back(const struct fay_code *code)
{
	bool labels = false, jumps = false;

	for (size_t i = 0; i < code->step_count; i++) {
		labels |= code->steps[i].label && i != code->regions[0].first;
		jumps |= code->steps[i].exit && code->steps[i].kind != FAY_STEP_RETURN;
	}
	return labels && jumps;
}

static bool write_exits(struct fay_choice *choice)
{
	struct fay_flow *flow = choice->flow;
	bool unsure = comes_back(&choice->code);
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
			.doubt = step->doubt,
			.unsure = unsure ||
				  (step->kind == FAY_STEP_RETURN && is_unsure(&choice->code, i)),
			.careful = step->careful || carries_flags(&choice->code, i),
			.unled = step->unled,
		};
	}
	qsort(flow->exits, flow->exit_count, sizeof(*flow->exits), by_at);
	return true;
}

/* What is known of the function, whatever was chosen of it. */
static bool write_known(struct fay_choice *choice)
{
	struct fay_flow *flow = choice->flow;

	flow->parts = calloc(choice->code.region_count, sizeof(*flow->parts));
	for (size_t i = 0; flow->parts && i < choice->code.region_count; i++)
		flow->parts[flow->part_count++] =
			(struct fay_flow_part){ choice->code.regions[i].start,
						choice->code.regions[i].end,
						choice->code.regions[i].hash };
	return flow->parts && write_exits(choice);
}

static bool write_flow(struct fay_choice *choice)
{
	struct fay_flow *flow = choice->flow;
	const struct fay_step *steps = choice->code.steps;

	flow->windows = calloc(choice->span_count + 1, sizeof(*flow->windows));
	flow->blocks = calloc(choice->block_count + 1, sizeof(*flow->blocks));
	flow->redirects = calloc(choice->redirect_count + 1, sizeof(*flow->redirects));
	if (!flow->windows || !flow->blocks || !flow->redirects)
		return false;
	if (choice->span_count)
		qsort_r(choice->spans, choice->span_count, sizeof(*choice->spans), by_first,
			choice->code.steps);
	for (size_t i = 0; i < choice->span_count; i++) {
		const struct fay_span *span = &choice->spans[i];
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

		if (!fay_block_end(choice, choice->blocks[i], &end))
			return false;
		flow->blocks[flow->block_count++] =
			(struct fay_block){ steps[choice->blocks[i]].at,
					    (uint32_t)fay_choice_bytes(choice, choice->blocks[i],
								       end),
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
static bool check_moves(struct fay_choice *choice)
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

static void choice_deinit(struct fay_choice *choice)
{
	free(choice->spans);
	free(choice->blocks);
	free(choice->redirects);
	fay_code_deinit(&choice->code);
}

static void forget_chosen(struct fay_flow *flow)
{
	free(flow->windows);
	free(flow->blocks);
	free(flow->redirects);
	flow->windows = NULL;
	flow->blocks = NULL;
	flow->redirects = NULL;
	flow->window_count = flow->block_count = flow->redirect_count = 0;
}

static void forget(struct fay_flow *flow)
{
	forget_chosen(flow);
	free(flow->parts);
	free(flow->exits);
	flow->parts = NULL;
	flow->exits = NULL;
	flow->part_count = flow->exit_count = 0;
}

static void *copy_of(const void *items, size_t count, size_t size)
{
	void *copy = malloc(count * size + 1);

	if (copy && count)
		memcpy(copy, items, count * size);
	return copy;
}

bool fay_flow_move(const struct fay_flow *flow, uint64_t by, struct fay_flow *moved)
{
	*moved = *flow;
	moved->parts = copy_of(flow->parts, flow->part_count, sizeof(*flow->parts));
	moved->exits = copy_of(flow->exits, flow->exit_count, sizeof(*flow->exits));
	moved->windows = copy_of(flow->windows, flow->window_count, sizeof(*flow->windows));
	moved->blocks = copy_of(flow->blocks, flow->block_count, sizeof(*flow->blocks));
	moved->redirects = copy_of(flow->redirects, flow->redirect_count, sizeof(*flow->redirects));
	if (!moved->parts || !moved->exits || !moved->windows || !moved->blocks ||
	    !moved->redirects) {
		forget(moved);
		return false;
	}
	for (size_t i = 0; i < moved->part_count; i++) {
		moved->parts[i].start += by;
		moved->parts[i].end += by;
	}
	for (size_t i = 0; i < moved->exit_count; i++) {
		moved->exits[i].at += by;
		moved->exits[i].target += moved->exits[i].kind == FAY_EXIT_JUMP ? by : 0;
		moved->exits[i].unled += moved->exits[i].unled ? by : 0;
	}
	for (size_t i = 0; i < moved->window_count; i++) {
		moved->windows[i].site += by;
		moved->windows[i].hole += moved->windows[i].hole ? by : 0;
	}
	for (size_t i = 0; i < moved->block_count; i++)
		moved->blocks[i].at += by;
	for (size_t i = 0; i < moved->redirect_count; i++)
		moved->redirects[i].site += by;
	return true;
}

static bool never_returns(const struct fay_code *code)
{
	for (size_t i = 0; i < code->step_count; i++) {
		const struct fay_step *step = &code->steps[i];

		if (step->exit || step->runs_on || step->kind == FAY_STEP_INDIRECT)
			return false;
	}
	return true;
}

bool fay_flow_read(const struct fay_flow_program *program, uint64_t start, uint64_t end, bool entry,
		   struct fay_flow *flow)
{
	struct fay_choice choice = { .code = { .program = program, .reason = flow->reason },
				     .flow = flow };
	bool read, done;

	memset(flow, 0, sizeof(*flow));
	read = fay_code_read(&choice.code, start, end);
	done = read && !*flow->reason && fay_cover_all(&choice, entry);
	if ((read && !write_known(&choice)) || (done && !write_flow(&choice)))
		choice.code.no_memory = true;
	else if (done && !check_moves(&choice))
		forget_chosen(flow);
	if (read && *flow->reason && never_returns(&choice.code))
		fay_code_refuse(&choice.code, "has no exit: it never returns");
	flow->splits = choice.code.splits;
	choice_deinit(&choice);
	return !choice.code.no_memory;
}

void fay_flow_deinit(struct fay_flow *flow)
{
	forget(flow);
}

bool fay_flow_unchanged(const struct fay_flow_program *program, const struct fay_flow *flow)
{
	bool same = true, unreadable;

	for (size_t i = 0; i < flow->part_count && same; i++) {
		const struct fay_flow_part *part = &flow->parts[i];
		uint64_t hash;
		uint8_t *bytes =
			fay_code_bytes(program, part->start, part->end, &hash, &unreadable);

		same = bytes && hash == part->hash;
		free(bytes);
	}
	return same;
}
