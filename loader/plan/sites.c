/* SPDX-License-Identifier: MIT */
/*
 * From points to the places where their jumps are written. Each is read and judged before anything
 * is stopped; a point that cannot be patched is set aside with its reason and the others go on.
 * Where only its exits cannot be, its entry is still patched.
 *
 * Two sites must not overlap, neither of one session nor of two, but that several sessions may have
 * theirs at the same address: then the trampolines are run one after the other (zone.c). For an
 * exit that holds if the windows are the same and have no other exit.
 */
#include "plan_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/bisect.h"
#include "loader/flow/flow.h"
#include "loader/names/target.h"

bool fay_point_enters(const struct fay_plan *plan, const struct fay_point *point)
{
	for (uint32_t i = 0; i < point->probe_count; i++)
		if (!fay_trampoline_watches(&plan->verdict->probes[fay_point_probe(point, i)]))
			return true;
	return point->hook != FAY_HOOK_NONE;
}

/* A single place: the function's entry, or one inside it. */
static bool place_plan(struct fay_planner *planner, size_t index, enum fay_place_kind kind,
		       struct fay_place *place, char reason[FAY_REASON_MAX])
{
	const struct fay_point *point = &planner->plan->points[index];
	const struct fay_flow_program program = { .context = &planner->text,
						  .read = fay_text_reader };
	struct fay_site site = { .kind = FAY_SITE_PLACE };
	struct fay_displaced displaced;
	uint8_t bytes[FAY_SITE_BYTES];
	size_t got;

	if (!point->function.size && point->inside)
		return snprintf(reason, FAY_REASON_MAX, "has no byte +%#lx",
				(unsigned long)point->offset) < 0;
	if (!point->function.size)
		return snprintf(reason, FAY_REASON_MAX, "has no known size") < 0;
	if (!fay_place_judge(&program, point->function.address - point->offset,
			     point->function.address + point->function.size,
			     point->function.address, kind, place, reason))
		return false;
	got = fay_text_program(&planner->text, place->site, bytes, sizeof(bytes));
	if (!fay_displace(bytes, got, place->back ? place->back + 1u : FAY_JUMP_BYTES, place->site,
			  place->site, &displaced, reason))
		return false;
	/* Go's handler goes by what lies on the stack. */
	if (point->keeps_faults && !point->stack_moves && fay_code_faults(bytes, displaced.length))
		return snprintf(reason, FAY_REASON_MAX,
				"has an instruction within its first %u bytes whose fault is an "
				"exception",
				displaced.length) < 0;
	site.site = place->site;
	site.back = place->back;
	site.length = (uint8_t)displaced.length;
	return fay_site_add(planner, index, &site, reason);
}

static bool inside_plan(struct fay_planner *planner, size_t index, char reason[FAY_REASON_MAX])
{
	const struct fay_point *point = &planner->plan->points[index];
	struct fay_place place;

	if (point->marker && *point->marker->reason)
		return snprintf(reason, FAY_REASON_MAX, "%s", point->marker->reason) < 0;
	return place_plan(planner, index,
			  point->marker   ? FAY_PLACE_AT_MARKER
			  : point->offset ? FAY_PLACE_INSIDE_AT
					  : FAY_PLACE_AT_FIRST,
			  &place, reason);
}

static bool may_patch_entry(const struct fay_plan *plan, const struct fay_point *point,
			    bool endbr64, char reason[FAY_REASON_MAX])
{
	if (plan->jumps_followed && point->probe_count && !endbr64)
		return snprintf(reason, FAY_REASON_MAX,
				"begins without endbr64 in a program with PyPy, whose compiler "
				"follows a jump at a function's first byte and would call a "
				"trampoline that is gone") < 0;
	return true;
}

/* The entry alone. The jumps back to it are redirected, too. */
static bool entry_plan(struct fay_planner *planner, size_t index, char reason[FAY_REASON_MAX])
{
	const struct fay_point *point = &planner->plan->points[index];
	struct fay_place place;

	if (!place_plan(planner, index, FAY_PLACE_AT_ENTRY, &place, reason) ||
	    !may_patch_entry(planner->plan, point, place.site != point->function.address, reason))
		return false;
	for (unsigned i = 0; i < place.redirect_count; i++) {
		struct fay_site back = { .kind = FAY_SITE_REDIRECT,
					 .block = FAY_FLOW_ENTRY,
					 .site = place.redirects[i] };

		if (!fay_site_add(planner, index, &back, reason))
			return false;
	}
	return true;
}

/* Holes may lie in a window, behind what is overwritten of it. */
static uint8_t window_reach(const struct fay_flow *flow, const struct fay_window *window)
{
	uint64_t reach = window->length;

	for (size_t i = 0; i < flow->window_count; i++) {
		uint64_t at = flow->windows[i].hole - window->site;

		if (flow->windows[i].hole && at < reach)
			reach = at;
	}
	return (uint8_t)reach;
}

/* The windows and redirects that its flow has; the entry's among them if that is patched. */
static bool exits_plan(struct fay_planner *planner, size_t index, bool enters,
		       char reason[FAY_REASON_MAX])
{
	const struct fay_flow_program program = { .context = &planner->text,
						  .read = fay_text_reader };
	struct fay_point *point = &planner->plan->points[index];
	const struct fay_flow *flow = point->flow;

	/* What is read of it from here on is, but for what is far away, what is compared here. */
	if (!fay_flow_unchanged(&program, flow))
		return snprintf(reason, FAY_REASON_MAX, "has changed since its exits were found") <
		       0;
	for (size_t i = 0; i < flow->window_count; i++) {
		const struct fay_window *window = &flow->windows[i];
		struct fay_site site = { .kind = window->entry ? FAY_SITE_PLACE : FAY_SITE_EXIT,
					 .site = window->site,
					 .length = (uint8_t)window->length,
					 .ends = window->ends,
					 .leads = window->leads,
					 .first_exit = window->first,
					 .exit_count = window->count,
					 .hole = window->hole,
					 .reach = window_reach(flow, window) };

		if (window->entry && !enters && !window->count && !window->hosts && !window->leads)
			continue;
		if (window->entry &&
		    !may_patch_entry(planner->plan, point, window->site != point->function.address,
				     reason))
			return false;
		if (window->length > FAY_FLOW_WINDOW_MAX)
			return snprintf(reason, FAY_REASON_MAX,
					"has a window too long (internal)") < 0;
		if (window->count == 1 && !window->entry)
			site.back = (uint8_t)(flow->exits[window->first].at - window->site);
		if (!fay_site_add(planner, index, &site, reason))
			return false;
	}
	for (size_t i = 0, count = point->site_count; i < count; i++) {
		struct fay_site hole = { .kind = FAY_SITE_HOLE,
					 .site = planner->plan->sites[point->first_site + i].hole,
					 .block = (uint32_t)i };

		if (hole.site && !fay_site_add(planner, index, &hole, reason))
			return false;
	}
	if ((point->stack_moves || flow->splits) && fay_point_records(planner->plan, point))
		return snprintf(reason, FAY_REASON_MAX,
				"is a %s function, whose stack is small and moves: its returns are "
				"counted without durations and exceptions; ask without `Duration` "
				"and `Failed`",
				flow->splits ? "-fsplit-stack" : "Go") < 0;
	if (!flow->exit_count && !enters)
		return snprintf(reason, FAY_REASON_MAX, "has no exit: it never returns") < 0;
	for (size_t i = 0; i < flow->redirect_count; i++) {
		struct fay_site site = { .kind = FAY_SITE_REDIRECT,
					 .site = flow->redirects[i].site,
					 .block = flow->redirects[i].block };

		if (site.block == FAY_FLOW_ENTRY && !enters)
			continue;
		if (site.block != FAY_FLOW_ENTRY)
			site.back = (uint8_t)(flow->exits[flow->blocks[site.block].exit].at -
					      flow->blocks[site.block].at);
		if (!fay_site_add(planner, index, &site, reason))
			return false;
	}
	for (size_t i = 0; i < flow->block_count; i++) {
		const struct fay_block *block = &flow->blocks[i];
		struct fay_site site = { .kind = FAY_SITE_BLOCK,
					 .site = block->at,
					 .length = (uint8_t)block->length,
					 .ends = true,
					 .first_exit = block->exit,
					 .exit_count = 1,
					 .block = (uint32_t)i };

		if (block->length > FAY_FLOW_WINDOW_MAX)
			return snprintf(reason, FAY_REASON_MAX,
					"has a window too long (internal)") < 0;
		if (!fay_site_add(planner, index, &site, reason))
			return false;
	}
	if (enters &&
	    (!point->site_count || planner->plan->sites[point->first_site].kind != FAY_SITE_PLACE))
		return snprintf(reason, FAY_REASON_MAX, "has an entry that cannot be patched") < 0;
	return true;
}

/* What was planned of a point is nothing any more. */
void fay_sites_drop(struct fay_plan *plan, struct fay_point *point)
{
	for (size_t i = 0; i < point->site_count; i++)
		plan->sites[point->first_site + i].usable = false;
	point->first_site = plan->site_count;
	point->site_count = 0;
	point->exits = false;
}

int fay_site_refuse_exits(struct fay_plan *plan, struct fay_point *point, const char *reason)
{
	char text[2 * FAY_REASON_MAX];

	fay_sites_drop(plan, point);
	if (point->whole && !point->leaves) /* nobody wanted them */
		return point->no_whole = true, 0;
	if (!point->no_exits)
		point->no_exits = strdup(reason);
	if (!point->no_exits)
		return -1;
	if (!fay_point_enters(plan, point))
		return 0; /* it will be set aside as a whole */
	snprintf(text, sizeof(text), "%s; its returns are not traced", reason);
	return fay_plan_note(plan, point, text);
}

static bool out_of_memory(char reason[FAY_REASON_MAX])
{
	*reason = 0;
	return false;
}

/* False, with a reason: it is set aside. An empty reason: out of memory. */
static bool point_plan(struct fay_planner *planner, size_t index, char reason[FAY_REASON_MAX])
{
	struct fay_plan *plan = planner->plan;
	struct fay_point *point = &plan->points[index];
	bool enters = fay_point_enters(plan, point) || fay_point_records(plan, point);
	uint64_t start, end;

	fay_sites_drop(plan, point);
	if (fay_rendezvous_unsettled(plan, point, reason))
		return false;
	if (point->untraced)
		return snprintf(reason, FAY_REASON_MAX, "%s", point->untraced) < 0;
	if (point->inside)
		return inside_plan(planner, index, reason);
	if (fay_unpatchable(point->function.name, reason))
		return false;
	if (point->leaves &&
	    fay_target_place(plan->target, point->function.address, &start, &end) == FAY_PLACE_PART)
		return snprintf(reason, FAY_REASON_MAX,
				"is not entered by a call (part of a function)") < 0;
	if (point->argless)
		return snprintf(reason, FAY_REASON_MAX, "%s", point->argless) < 0;
	if (point->whole && !point->leaves && !point->helper && point->flow && !point->no_whole) {
		point->exits = exits_plan(planner, index, true, reason);
		if (point->exits)
			return true;
		fay_site_refuse_exits(plan, point, reason);
	} else if ((point->leaves || point->helper) && point->flow && !point->no_exits) {
		point->exits = !*point->flow->reason && exits_plan(planner, index, enters, reason);
		if (point->exits)
			return true;
		if (fay_site_refuse_exits(plan, point,
					  *point->flow->reason ? point->flow->reason : reason))
			return out_of_memory(reason);
	} else if (point->leaves && point->no_exits &&
		   fay_site_refuse_exits(plan, point, point->no_exits)) {
		return out_of_memory(reason);
	}
	if (!fay_point_enters(plan, point))
		return snprintf(reason, FAY_REASON_MAX, "%s",
				point->no_exits ? point->no_exits : "cannot be read (internal)") <
		       0;
	return entry_plan(planner, index, reason);
}

/* Plans one point. -1: out of memory. */
int fay_site_plan_point(struct fay_planner *planner, size_t index)
{
	struct fay_plan *plan = planner->plan;
	struct fay_point *point = &plan->points[index];
	char reason[FAY_REASON_MAX] = "";

	point->usable = true;
	if (point->hook == FAY_HOOK_MODULES)
		*plan->unhooked = 0;
	if (point_plan(planner, index, reason))
		return 0;
	fay_sites_drop(plan, point);
	if (!*reason)
		return -1;
	return fay_plan_skip(plan, point, reason);
}
