/* SPDX-License-Identifier: MIT */
/* One plan for the process as it is now. */
#include "plan_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/process/process.h"

bool fay_plan_reads(const struct fay_plan *plan, uint32_t field)
{
	for (uint32_t i = 0; i < plan->verdict->probe_count; i++)
		if (plan->verdict->probes[i].event_fields & field)
			return true;
	return false;
}

size_t fay_plan_point_count(const struct fay_plan *plan)
{
	size_t count = 0;

	if (plan->had_points) /* whether it has them or not */
		return plan->had_points;
	for (size_t i = 0; i < plan->point_count; i++)
		count += plan->points[i].usable && plan->points[i].probe_count;
	return count;
}

bool fay_plan_any_point(const struct fay_plan *plan)
{
	bool any = false;

	for (size_t i = 0; i < plan->point_count && !any; i++)
		any = plan->points[i].usable && plan->points[i].probe_count;
	return any;
}

static bool is_worth_it(const struct fay_plan *plan)
{
	return plan->options.modules_alone ? fay_rendezvous_hooked(plan) : fay_plan_any_point(plan);
}

bool fay_plan_only_traps(const struct fay_plan *plan)
{
	return plan->trap_count && !is_worth_it(plan);
}

static int nothing_usable(const struct fay_plan *plan, struct fay_error *error)
{
	const struct fay_skipped_point *first = plan->skipped;

	if (plan->options.modules_alone)
		return fay_error_set(error, FAY_E_REFUSED, "process %d: %s", (int)plan->pid,
				     plan->unhooked);
	if (plan->skipped_count == 0)
		return fay_error_set(error, FAY_E_REFUSED,
				     "the image has no probe at a patch point of the program, only "
				     "begin, end or timer probes");
	if (plan->skipped_count == 1)
		return fay_error_set(error, FAY_E_REFUSED, "%s cannot be traced: it %s",
				     first->function, first->reason);
	return fay_error_set(
		error, FAY_E_REFUSED, "none of the %zu functions can be traced; the first, %s, %s",
		plan->skipped_count, first ? first->function : "?", first ? first->reason : "?");
}

void fay_plan_forget(struct fay_plan *plan)
{
	fay_ready_leave(plan);
	fay_zone_plans_deinit(plan);
	fay_rseqs_deinit(&plan->rseqs);
	free(plan->skipped);
	free(plan->traps);
	plan->skipped = NULL;
	plan->traps = NULL;
	plan->site_count = plan->byte_count = plan->order_count = 0;
	plan->skipped_count = plan->trap_count = plan->shared_points = 0;
}

/* What was kept holds for a process that has no other traces, no restartable sequences, and does
 * not write to its code. -1: this one is planned for itself. */
static int check_assembled(struct fay_plan *plan, const struct fay_zones *present,
			   const struct fay_maps *maps, struct fay_error *error)
{
	bool fits = !present->count && !plan->rseqs.count;

	for (size_t i = 0; i < maps->count && fits; i++)
		fits = !fay_sites_writable(plan, &maps->items[i]);
	if (fits)
		return 0;
	fay_error_set(error, FAY_E_LIMIT, "process %d: its code keeps changing", (int)plan->pid);
	return -1;
}

/* Brings the points that were patched, for probes or as helpers, to `first` and behind it. Returns
 * where they end. */
static size_t gather(struct fay_plan *plan, size_t first, bool helpers)
{
	struct fay_point *points = plan->points, swap;

	for (size_t i = first; i < plan->point_count; i++) {
		if (!points[i].usable || (helpers ? !points[i].helper : !points[i].probe_count))
			continue;
		swap = points[i];
		points[i] = points[first];
		points[first++] = swap;
	}
	return first;
}

size_t fay_plan_helper_count(const struct fay_plan *plan)
{
	size_t count = 0;

	for (size_t i = 0; i < plan->point_count; i++)
		count += plan->points[i].usable && plan->points[i].helper &&
			 !plan->points[i].probe_count;
	return count;
}

void fay_plan_settle(struct fay_plan *plan)
{
	for (size_t i = 0; i < plan->point_count && !plan->options.plan_only; i++)
		fay_point_forget_flow(&plan->points[i]);
	gather(plan, gather(plan, 0, false), true);
}

static int make(struct fay_plan *plan, struct fay_error *error)
{
	struct fay_zones present = { 0 };
	struct fay_maps maps;
	int memory, code = fay_maps_read(plan->pid, &maps, error);

	if (code)
		return code;
	fay_maps_note_heap(&maps, plan->pid);
	memory = fay_process_memory(plan->pid, O_RDONLY);
	if (memory < 0) {
		code = fay_error_set(
			error, FAY_E_REFUSED,
			"memory of process %d: %s (needs the same user, or CAP_SYS_PTRACE)",
			(int)plan->pid, strerror(errno));
	} else {
		code = fay_zones_settle(plan->pid, &maps, memory, &present, error);
		if (!code)
			code = fay_rseqs_read(plan->target, memory, &plan->rseqs, error);
		if (!code && plan->assembled)
			code = check_assembled(plan, &present, &maps, error);
		else if (!code)
			code = fay_sites_plan(plan, &present, &maps, memory, error);
		if (!code && plan->options.traps && fay_traps_find(plan, &present, &maps, memory))
			code = fay_error_set(error, FAY_E_LIMIT, "out of memory");
		close(memory);
	}
	if (!code && is_worth_it(plan))
		code = fay_zones_build(plan, &maps, error);
	if (!code && !is_worth_it(plan) && !fay_plan_only_traps(plan))
		code = nothing_usable(plan, error);
	if (fay_plan_abandoned(plan))
		code = fay_error_set(error, FAY_E_REFUSED, "interrupted");
	plan->geometry.modules_follow = fay_rendezvous_hooked(plan);
	fay_zones_deinit(&present);
	fay_maps_deinit(&maps);
	return code;
}

int fay_plan_make(struct fay_plan *plan, struct fay_error *error)
{
	int code = make(plan, error);
	bool assembled;

	if (!plan->lent || !plan->not_lent)
		return code;
	/* What is ready does not fit: the same is put together for this process alone. */
	fay_plan_forget(plan);
	fay_plan_assemble(plan, &assembled);
	if (assembled)
		return make(plan, error);
	plan->assembled = true; /* it was, and is planned for itself next */
	fay_error_set(error, FAY_E_LIMIT, "process %d: its code keeps changing", (int)plan->pid);
	return -1;
}
