/* SPDX-License-Identifier: MIT */
/* From probes' patterns to points: one for each function or place inside one, with the probes that
 * want it in the image's order. */
#include "plan_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/names/target.h"

static int by_address(const void *a, const void *b)
{
	const struct fay_point *x = a, *y = b;

	if (x->function.address != y->function.address)
		return x->function.address < y->function.address ? -1 : 1;
	if (x->inside != y->inside)
		return x->inside ? 1 : -1;
	return x->function.marker < y->function.marker ? -1
						       : x->function.marker > y->function.marker;
}

/* From the function to the place inside it. What is outside the function, or not at an
 * instruction's start, is found out when it is planned. */
static void place_inside(struct fay_point *point, uint64_t offset)
{
	point->inside = true;
	point->offset = offset;
	point->function.address += offset;
	point->function.size -= offset <= point->function.size ? offset : point->function.size;
}

static int probe_add(struct fay_point *point, uint32_t probe, bool leaves)
{
	uint32_t *probes, at;

	point->leaves |= leaves;
	if (!point->probe_count) {
		point->probe = probe;
		point->probe_count = 1;
		return 0;
	}
	probes = realloc(point->probes, (point->probe_count + 1) * sizeof(*probes));
	if (!probes)
		return -1;
	if (point->probe_count == 1)
		probes[0] = point->probe;
	for (at = point->probe_count; at > 0 && probes[at - 1] > probe; at--)
		probes[at] = probes[at - 1];
	probes[at] = probe;
	point->probes = probes;
	point->probe_count++;
	return 0;
}

int fay_point_append(struct fay_plan *plan, size_t *capacity, const struct fay_function *function,
		     const uint32_t *probe, enum fay_hook hook)
{
	struct fay_point point = { .function = *function, .hook = hook }, *same;
	bool leaves = probe && fay_trampoline_watches(&plan->verdict->probes[*probe]);

	point.careful = function->unnamed || strstr(function->name, ".cold");
	if (function->marker) {
		point.inside = true;
		point.offset = function->address - function->start;
	} else if (probe && plan->verdict->probes[*probe].kind == FAY_PROBE_OFFSET)
		place_inside(&point, plan->verdict->probes[*probe].parameter);
	same = plan->folded_count ? bsearch(&point, plan->points, plan->folded_count, sizeof(point),
					    by_address)
				  : NULL;
	if (same) {
		if (hook)
			same->hook = hook;
		return probe ? probe_add(same, *probe, leaves) : 0;
	}
	if (plan->point_count == *capacity) {
		size_t more = *capacity ? 2 * *capacity : 64;
		struct fay_point *grown =
			more > FAY_POINTS_MAX ? NULL : realloc(plan->points, more * sizeof(*grown));

		if (!grown)
			return -1;
		plan->points = grown;
		*capacity = more;
	}
	if (probe && probe_add(&point, *probe, leaves))
		return -1;
	plan->points[plan->point_count++] = point;
	return 0;
}

int fay_points_full(const struct fay_plan *plan, struct fay_error *error)
{
	if (plan->point_count == FAY_POINTS_MAX)
		return fay_error_set(error, FAY_E_LIMIT,
				     "process %d: too many functions (limit %u)", (int)plan->pid,
				     FAY_POINTS_MAX);
	return fay_error_set(error, FAY_E_LIMIT, "out of memory");
}

/* The points are sorted by address and, qsort not being stable, are given the order of probes back
 * here. Those that were folded before come once only. */
int fay_points_fold(struct fay_plan *plan)
{
	size_t kept = 0;
	int code = 0;

	if (plan->point_count == plan->folded_count)
		return 0;
	qsort(plan->points, plan->point_count, sizeof(*plan->points), by_address);
	for (size_t i = 0; i < plan->point_count; i++) {
		struct fay_point *point = &plan->points[i],
				 *same = kept ? &plan->points[kept - 1] : NULL;

		if (!same || by_address(same, point)) {
			plan->points[kept++] = *point;
			continue;
		}
		if (point->hook)
			same->hook = point->hook;
		for (uint32_t k = 0; k < point->probe_count && !code; k++)
			code = probe_add(same, fay_point_probe(point, k), point->leaves);
		same->helper &= point->helper;
		fay_point_deinit(point);
	}
	plan->point_count = plan->folded_count = kept;
	return code;
}

struct fay_point *fay_points_at(const struct fay_plan *plan, uint64_t address)
{
	struct fay_point key = { .function.address = address };

	return plan->folded_count
		       ? bsearch(&key, plan->points, plan->folded_count, sizeof(key), by_address)
		       : NULL;
}

bool fay_point_has(const struct fay_point *point, uint64_t address)
{
	uint64_t own = point->function.address - point->offset;

	if (address >= own && address < point->function.address + point->function.size)
		return true;
	for (size_t i = 0; point->exits && i < point->flow->part_count; i++)
		if (address >= point->flow->parts[i].start && address < point->flow->parts[i].end)
			return true;
	return false;
}

/* What the trampolines of markers need; what a marker cannot give is the reason for which it is
 * skipped later. */
static int markers_prepare(struct fay_plan *plan)
{
	for (size_t i = 0; i < plan->point_count; i++) {
		struct fay_point *point = &plan->points[i];
		uint32_t fields = 0;

		if (!point->function.marker)
			continue;
		for (uint32_t k = 0; k < point->probe_count; k++)
			fields |= plan->verdict->probes[fay_point_probe(point, k)].event_fields;
		point->marker = fay_marker_place_create(plan->target, &point->function, fields);
		if (!point->marker)
			return -1;
	}
	return 0;
}

int fay_points_resolve(struct fay_plan *plan, struct fay_error *error)
{
	const struct fay_verdict *verdict = plan->verdict;
	struct fay_error first = { 0 };
	size_t capacity = 0;
	int unmatched = 0;

	for (uint32_t i = 0; i < verdict->probe_count && !plan->options.modules_alone; i++) {
		uint32_t kind = verdict->probes[i].kind;
		struct fay_function_list list = { 0 };
		int code;

		if (kind == FAY_PROBE_BEGIN || kind == FAY_PROBE_END || kind == FAY_PROBE_TIMER)
			continue;
		code = fay_places_find(plan, i, &list, error);
		if (code == FAY_E_USAGE && plan->options.some) {
			if (!unmatched && error)
				first = *error;
			unmatched = code;
			continue;
		}
		if (code)
			return code;
		for (size_t k = 0; k < list.count && !code; k++)
			code = fay_point_append(plan, &capacity, &list.items[k], &i, FAY_HOOK_NONE);
		fay_function_list_deinit(&list);
		if (code)
			return fay_points_full(plan, error);
		/* so that a function that several probes want counts once */
		if (fay_points_fold(plan))
			return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	}
	if (unmatched && !plan->point_count && !plan->of_files)
		return fay_error_set(error, first.code, "%s", first.message);
	if (plan->options.modules && !plan->options.beside_count &&
	    fay_rendezvous_resolve(plan, &capacity, error))
		return error->code;
	if (fay_points_fold(plan) || markers_prepare(plan))
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	if (fay_exits_resolve(plan, &capacity, error))
		return error->code;
	fay_runtimes_judge(plan);
	return 0;
}

int fay_plan_note(struct fay_plan *plan, const struct fay_point *point, const char *reason)
{
	struct fay_skipped_point *grown =
		realloc(plan->skipped, (plan->skipped_count + 1) * sizeof(*grown));

	if (!grown)
		return -1;
	plan->skipped = grown;
	grown += plan->skipped_count++;
	snprintf(grown->function, sizeof(grown->function), "%.100s!%.150s", point->function.module,
		 point->function.name);
	snprintf(grown->reason, sizeof(grown->reason), "%s", reason);
	return 0;
}

int fay_plan_skip(struct fay_plan *plan, struct fay_point *point, const char *reason)
{
	point->usable = false;
	if (point->hook == FAY_HOOK_MODULES)
		snprintf(plan->unhooked, sizeof(plan->unhooked), "%.60s %.130s",
			 point->function.name, reason);
	if (point->helper)
		return 0;
	if (fay_plan_note(plan, point, reason))
		return -1;
	point->skipped = plan->skipped_count;
	return 0;
}

void fay_point_forget_flow(struct fay_point *point)
{
	if (point->flow)
		fay_flow_deinit(point->flow);
	free(point->flow);
	point->flow = NULL;
}

void fay_point_deinit(struct fay_point *point)
{
	free(point->probes);
	free(point->marker);
	free(point->no_exits);
	fay_point_forget_flow(point);
}

void fay_points_deinit(struct fay_plan *plan)
{
	fay_ready_return(plan);
	for (size_t i = 0; i < plan->point_count; i++)
		fay_point_deinit(&plan->points[i]);
	free(plan->points);
	free(plan->sites);
	free(plan->bytes);
	free(plan->order);
	plan->points = NULL;
	plan->sites = NULL;
	plan->bytes = NULL;
	plan->order = NULL;
	plan->point_count = plan->folded_count = 0;
	plan->site_count = plan->site_room = plan->order_count = 0;
	plan->byte_count = plan->byte_room = 0;
}
