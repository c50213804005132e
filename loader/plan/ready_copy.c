/* SPDX-License-Identifier: MIT */
/* Copies of what is ready (ready.c): the first, of the process that it was made for, and those of
 * sessions that need their points after they were installed. */
#include "plan_private.h"

#include <stdlib.h>
#include <string.h>

#include "loader/names/target.h"

static void *copy_of(const void *from, size_t count, size_t size)
{
	void *copy = calloc(count + 1, size);

	if (copy && count)
		memcpy(copy, from, count * size);
	return copy;
}

/* Points, without their flows, and sites. */
static bool copy_points(const struct fay_plan *from, struct fay_plan *to)
{
	bool done;

	to->points = copy_of(from->points, from->point_count, sizeof(*to->points));
	to->sites = copy_of(from->sites, from->site_count, sizeof(*to->sites));
	to->bytes = copy_of(from->bytes, from->byte_count, 1);
	to->order = copy_of(from->order, from->order_count, sizeof(*to->order));
	done = to->points && to->sites && to->bytes && to->order;
	for (size_t i = 0; i < from->point_count && to->points; i++) {
		const struct fay_point *point = &from->points[i];
		struct fay_point *copy = &to->points[to->point_count++];

		copy->flow = NULL;
		copy->marker = NULL; /* what is ready has none */
		copy->probes = point->probe_count > 1 ? copy_of(point->probes, point->probe_count,
								sizeof(*point->probes))
						      : NULL;
		copy->no_exits = point->no_exits ? strdup(point->no_exits) : NULL;
		done &= (copy->probes || point->probe_count <= 1) &&
			!copy->no_exits == !point->no_exits;
	}
	to->folded_count = to->point_count;
	to->site_count = to->site_room = from->site_count;
	to->byte_count = to->byte_room = from->byte_count;
	to->order_count = from->order_count;
	return done;
}

static size_t data_size(const struct fay_zone_plan *zone)
{
	return sizeof(zone->header) + zone->header.patch_count * sizeof(struct fay_zone_patch);
}

static bool own_zone(struct fay_plan *plan, const struct fay_ready *ready, size_t index, bool bytes)
{
	const struct fay_zone_plan *from = &ready->plan.zones[index];
	struct fay_zone_plan *to = &plan->zones[index];
	uint64_t by = plan->parts[fay_part_of(plan, to->first)].bias - ready->zone_biases[index];

	free(to->data);
	free(to->code);
	to->code = NULL;
	to->data = copy_of(from->data, data_size(from), 1);
	if (bytes && !by)
		to->code = copy_of(from->code, from->code_size, 1);
	if (!to->data || (bytes && !to->code))
		return false;
	memcpy(to->data, &to->header, sizeof(to->header));
	fay_ready_move_records(to->data, to->header.patch_count, by);
	return true;
}

bool fay_ready_own(struct fay_plan *plan, bool whole)
{
	const struct fay_ready *ready = plan->lender;
	struct fay_plan own = { .part_count = plan->part_count };
	bool done;

	if (!ready || plan->points)
		return true;
	memcpy(own.parts, ready->plan.parts, sizeof(own.parts));
	done = copy_points(&ready->plan, &own);
	if (done)
		fay_ready_move_points(&own, plan->parts);
	for (size_t i = 0; done && whole && i < own.point_count; i++) {
		size_t part = fay_part_of(&own, i);

		done = fay_flow_copy(ready->flows[i],
				     own.parts[part].bias - ready->reach[part].flows,
				     &own.points[i].flow);
	}
	for (size_t z = 0; done && z < plan->zone_count; z++)
		done = own_zone(plan, ready, z, whole);
	if (!done) {
		fay_points_deinit(&own);
		return false;
	}
	plan->points = own.points;
	plan->sites = own.sites;
	plan->bytes = own.bytes;
	plan->order = own.order;
	plan->point_count = plan->folded_count = own.point_count;
	plan->site_count = plan->site_room = own.site_count;
	plan->byte_count = plan->byte_room = own.byte_count;
	plan->order_count = own.order_count;
	return true;
}

/* --- keeping --- */

static bool copy_zones(const struct fay_plan *from, struct fay_ready *to)
{
	to->plan.zones = calloc(from->zone_count, sizeof(*to->plan.zones));
	to->zone_biases = calloc(from->zone_count, sizeof(*to->zone_biases));
	for (size_t z = 0; to->plan.zones && to->zone_biases && z < from->zone_count; z++) {
		const struct fay_zone_plan *zone = &from->zones[z];
		struct fay_zone_plan *copy = &to->plan.zones[to->plan.zone_count++];

		*copy = *zone;
		copy->set_count = 0;
		copy->code = copy_of(zone->code, zone->code_size, 1);
		copy->data = copy_of(zone->data, data_size(zone), 1);
		copy->addresses =
			copy_of(zone->addresses, zone->address_count, sizeof(*zone->addresses));
		to->zone_biases[z] = from->parts[fay_part_of(from, zone->first)].bias;
		if (!copy->code || !copy->data || !copy->addresses)
			return false;
	}
	return to->plan.zone_count == from->zone_count;
}

static void extend(struct fay_ready_reach *reach, uint64_t low, uint64_t high)
{
	if (low < reach->low)
		reach->low = low;
	if (high > reach->high)
		reach->high = high;
}

static bool copy_plan(const struct fay_plan *from, struct fay_ready *to)
{
	size_t site = 0;

	for (size_t i = 0; i < from->point_count; i++)
		if (from->points[i].marker)
			return false;

	memcpy(to->plan.parts, from->parts, sizeof(to->plan.parts));
	to->plan.part_count = from->part_count;
	to->plan.shared_points = from->shared_points;
	to->plan.had_points = fay_plan_point_count(from);
	to->flows = calloc(from->point_count + 1, sizeof(*to->flows));
	if (!to->flows || !copy_points(from, &to->plan) || !copy_zones(from, to))
		return false;
	for (size_t i = 0; i < from->part_count; i++)
		to->reach[i] =
			(struct fay_ready_reach){ .low = UINT64_MAX, .flows = from->parts[i].bias };
	for (size_t i = 0; i < from->point_count; i++) {
		size_t part = fay_part_of(from, i);
		uint64_t at = from->points[i].function.address - from->parts[part].bias;

		extend(&to->reach[part], at, at);
		if (!fay_flow_copy(from->points[i].flow, 0, &to->flows[i]))
			return false;
		to->traps_ends |= to->flows[i] && !from->points[i].usable;
	}
	for (size_t i = 0; i < from->part_count; i++)
		for (; site < from->parts[i].sites; site++) {
			uint64_t at = from->sites[site].site - from->parts[i].bias;

			extend(&to->reach[i], at, at);
		}
	return true;
}

/* Whether what building has come to is what each process of these parts comes to. */
static bool as_assembled(const struct fay_plan *plan)
{
	size_t usable = 0;
	bool noted = true;

	for (size_t i = 0; i < plan->point_count; i++)
		usable += plan->points[i].usable;
	for (size_t z = 0; z < plan->zone_count; z++)
		noted &= !plan->zones[z].unnoted;
	return noted && plan->zone_count && usable == plan->assembled_usable &&
	       plan->skipped_count == plan->assembled_skipped;
}

void fay_ready_keep(const struct fay_plan *plan)
{
	struct fay_files *files = plan->target->files;
	struct fay_ready *made = NULL, **to;

	if (!plan->assembled || !plan->shared_points || !fay_ready_can_be(plan) ||
	    !as_assembled(plan))
		return;
	if (!files->ready)
		files->ready = calloc(1, sizeof(*files->ready));
	if (files->ready)
		made = calloc(1, sizeof(*made));
	if (!made)
		return;
	made->users = 1;
	made->verdict = plan->verdict;
	made->tid_offset = plan->tid_offset;
	made->thread_pointer = plan->thread_pointer;
	made->time_shift = fay_time_shift(plan->time_multiplier);
	made->shared_from = plan->options.shared_from;
	made->some = plan->options.some;
	if (!copy_plan(plan, made)) {
		fay_ready_release(made);
		return;
	}
	if (files->ready->count < FAY_READY_MAX) {
		to = &files->ready->items[files->ready->count++];
	} else {
		to = &files->ready->items[files->ready->oldest];
		files->ready->oldest = (files->ready->oldest + 1) % FAY_READY_MAX;
		fay_ready_release(*to);
	}
	*to = made;
}
