/* SPDX-License-Identifier: MIT */
/*
 * What is ready: the points, sites and zones that were made for a process, lent to one after the
 * other of those for which the same plans of files are put together (kept.c). In another process
 * they are the same but for
 *
 *	addresses of points and sites, of functions in front	moved by where the module lies
 *	of stubs, return addresses that copies of calls push,
 *	in the records of patches
 *	the runtime's configuration, the image's helper slots,	written anew
 *	the header
 *
 * if all points of a zone are moved by the same distance, and so is the hole that is chosen for the
 * zone. For anything else all is made anew. Who attaches has them until the session is installed;
 * then they go back, and are moved from there to where the next process has its modules. A session
 * that needs its points later makes a copy (fay_ready_own()).
 *
 * Of a process that they were made, or moved, for nothing is kept but where it had its modules.
 */
#include "plan_private.h"

#include <stdlib.h>
#include <string.h>

#include "loader/names/target.h"

void fay_ready_release(struct fay_ready *ready)
{
	if (!ready || --ready->users)
		return;
	for (size_t i = 0; ready->flows && i < ready->plan.point_count; i++) {
		if (ready->flows[i])
			fay_flow_deinit(ready->flows[i]);
		free(ready->flows[i]);
	}
	free(ready->flows);
	free(ready->zone_biases);
	fay_zone_plans_deinit(&ready->plan);
	fay_points_deinit(&ready->plan);
	free(ready);
}

void fay_ready_destroy(struct fay_ready_list *list)
{
	for (size_t i = 0; list && i < list->count; i++)
		fay_ready_release(list->items[i]);
	free(list);
}

/* Whether the zones have no addresses but those that are noted, and are worth keeping. */
bool fay_ready_can_be(const struct fay_plan *plan)
{
	if (!plan->part_count || plan->part_count > FAY_MADE_OF_MAX || plan->options.costs ||
	    plan->options.tid_count || plan->some_records || !plan->target->files ||
	    fay_plan_reads(plan, FAY_FIELD_ADDRESS))
		return false;
	for (uint32_t i = 0; i < plan->verdict->probe_count; i++)
		if (plan->verdict->probes[i].arguments_used & 1u << FAY_RDX)
			return false;
	return true;
}

/* --- moving --- */

/* The part that has the point. */
size_t fay_part_of(const struct fay_plan *plan, size_t point)
{
	size_t part = 0;

	while (part + 1 < plan->part_count && point >= plan->parts[part].points)
		part++;
	return part;
}

/* push $low; movl $high, 4(%rsp): the address has to be of this form still. */
static bool move_pushed(uint8_t *code, uint64_t by)
{
	static const uint8_t high[] = { 0xc7, 0x44, 0x24, 0x04 };
	uint32_t halves[2];
	uint64_t address;

	if (code[0] != 0x68 || memcmp(code + 5, high, sizeof(high)))
		return false;
	memcpy(&halves[0], code + 1, 4);
	memcpy(&halves[1], code + 9, 4);
	address = ((uint64_t)halves[1] << 32 | halves[0]) + by;
	if ((uint64_t)(int64_t)(int32_t)address == address)
		return false;
	halves[0] = (uint32_t)address;
	halves[1] = (uint32_t)(address >> 32);
	memcpy(code + 1, &halves[0], 4);
	memcpy(code + 9, &halves[1], 4);
	return true;
}

static bool move_addresses(const struct fay_zone_plan *zone, uint64_t by)
{
	for (size_t i = 0; by && i < zone->address_count; i++) {
		uint8_t *at = zone->code + zone->addresses[i].at;
		uint64_t address;

		if (zone->addresses[i].pushed) {
			if (!move_pushed(at, by))
				return false;
			continue;
		}
		memcpy(&address, at, sizeof(address));
		address += by;
		memcpy(at, &address, sizeof(address));
	}
	return true;
}

static void move_patch(struct fay_zone_patch *patch, uint64_t by)
{
	uint64_t *const addresses[] = { &patch->site, &patch->trampoline, &patch->displaced,
					&patch->link, &patch->inner };

	for (size_t i = 0; i < sizeof(addresses) / sizeof(*addresses); i++)
		if (*addresses[i])
			*addresses[i] += by;
}

void fay_ready_move_records(uint8_t *data, uint32_t count, uint64_t by)
{
	struct fay_zone_patch *patches = (void *)(data + sizeof(struct fay_zone_header));

	for (uint32_t i = 0; i < count; i++)
		move_patch(&patches[i], by);
}

/* The points and sites of all parts, from where they are to where these others are. */
void fay_ready_move_points(struct fay_plan *plan, const struct fay_plan_part *to)
{
	size_t point = 0, site = 0;

	for (size_t part = 0; part < plan->part_count; part++) {
		uint64_t by = to[part].bias - plan->parts[part].bias;

		for (; point < plan->parts[part].points; point++) {
			plan->points[point].function.module = to[part].name;
			plan->points[point].function.path = to[part].path;
			plan->points[point].function.address += by;
		}
		for (; site < plan->parts[part].sites; site++) {
			plan->sites[site].site += by;
			plan->sites[site].hole += plan->sites[site].hole ? by : 0;
			move_patch(&plan->sites[site].patch, by);
		}
		plan->parts[part].name = to[part].name;
		plan->parts[part].path = to[part].path;
		plan->parts[part].bias = to[part].bias;
	}
}

/* --- lending --- */

static bool is_for(const struct fay_ready *ready, const struct fay_plan *plan)
{
	bool same = ready->verdict == plan->verdict && ready->tid_offset == plan->tid_offset &&
		    ready->thread_pointer == plan->thread_pointer &&
		    ready->shared_from == plan->options.shared_from &&
		    ready->some <= plan->options.some && ready->plan.part_count == plan->part_count;

	for (size_t i = 0; same && i < plan->part_count; i++)
		same = ready->plan.parts[i].number == plan->parts[i].number;
	return same;
}

/* Whether the parts lie in the same order, and those of each zone at the same distances. */
static bool fits(const struct fay_ready *ready, const struct fay_plan_part *to)
{
	const struct fay_plan *plan = &ready->plan;

	for (size_t i = 1; i < plan->part_count; i++)
		if (ready->reach[i - 1].high + to[i - 1].bias > ready->reach[i].low + to[i].bias)
			return false;
	for (size_t z = 0; z < plan->zone_count; z++) {
		size_t first = fay_part_of(plan, plan->zones[z].first),
		       last = fay_part_of(plan, plan->zones[z].last - 1);

		for (size_t i = first + 1; i <= last; i++)
			if (to[i].bias - plan->parts[i].bias !=
			    to[first].bias - plan->parts[first].bias)
				return false;
	}
	return true;
}

/* What traps look at: how functions are left that are not patched. False: out of memory. */
static bool lend_flows(const struct fay_ready *ready, const struct fay_plan *to)
{
	for (size_t i = 0; ready->traps_ends && to->options.traps && i < to->point_count; i++) {
		size_t part = fay_part_of(to, i);

		if (!to->points[i].usable &&
		    !fay_flow_copy(ready->flows[i], to->parts[part].bias - ready->reach[part].flows,
				   &to->points[i].flow))
			return false;
	}
	return true;
}

static void lend(struct fay_ready *ready, struct fay_plan *plan)
{
	const struct fay_plan *from = &ready->plan;

	fay_ready_move_points(&ready->plan, plan->parts);
	for (size_t i = 0; i < plan->part_count; i++) {
		plan->parts[i].points = from->parts[i].points;
		plan->parts[i].sites = from->parts[i].sites;
	}
	plan->points = from->points;
	plan->point_count = from->point_count;
	plan->sites = from->sites;
	plan->site_count = from->site_count;
	plan->bytes = from->bytes;
	plan->byte_count = from->byte_count;
	plan->order = from->order;
	plan->order_count = from->order_count;
	plan->had_points = from->had_points;
	plan->lender = ready;
	plan->lent = ready->lent = true;
	ready->users++;
}

bool fay_ready_lend(struct fay_plan *plan)
{
	const struct fay_ready_list *list = plan->target->files ? plan->target->files->ready : NULL;

	if (!list || !fay_ready_can_be(plan))
		return false;
	for (size_t i = 0; i < list->count; i++) {
		struct fay_ready *ready = list->items[i];

		if (ready->lent || ready->broken || !is_for(ready, plan) ||
		    !fits(ready, plan->parts))
			continue;
		lend(ready, plan);
		if (lend_flows(ready, plan))
			return true;
		fay_ready_leave(plan);
		return false;
	}
	return false;
}

static bool use_zone(struct fay_plan *plan, struct fay_ready *ready, size_t index,
		     struct fay_maps *maps)
{
	struct fay_zone_plan *zone = &ready->plan.zones[index];
	uint64_t size = zone->capacity + zone->header.data_size,
		 bias = plan->parts[fay_part_of(plan, zone->first)].bias,
		 by = bias - ready->zone_biases[index];
	uint32_t patches = zone->header.patch_count;

	if (fay_maps_hole(maps, size, zone->low + by, zone->high + by) != zone->address + by ||
	    fay_zone_reserve(maps, zone->address + by, size))
		return false;
	ready->broken = true;
	if (!move_addresses(zone, by))
		return false;
	ready->broken = false;
	ready->zone_biases[index] = bias;
	zone->low += by;
	zone->high += by;
	zone->address += by;
	zone->image += by;
	fay_zone_write_own(plan, zone, zone->header.data_size);
	zone->header.patch_count = patches;
	memcpy(zone->data, &zone->header, sizeof(zone->header));
	fay_ready_move_records(zone->data, patches, by);
	plan->zones[plan->zone_count] = *zone;
	plan->zones[plan->zone_count].addresses = NULL;
	plan->zones[plan->zone_count++].address_count = 0;
	return true;
}

bool fay_ready_use(struct fay_plan *plan, struct fay_maps *maps)
{
	struct fay_ready *ready = plan->lender;

	if (!plan->lent || ready->time_shift != fay_time_shift(plan->time_multiplier))
		return false;
	plan->zones = calloc(ready->plan.zone_count, sizeof(*plan->zones));
	for (size_t z = 0; plan->zones && z < ready->plan.zone_count; z++)
		if (!use_zone(plan, ready, z, maps))
			return false;
	plan->shared_points = ready->plan.shared_points;
	return plan->zones != NULL;
}

void fay_ready_return(struct fay_plan *plan)
{
	if (!plan->lent)
		return;
	for (size_t i = 0; plan->lender->traps_ends && i < plan->point_count; i++) {
		if (plan->points[i].flow)
			fay_flow_deinit(plan->points[i].flow);
		free(plan->points[i].flow);
		plan->points[i].flow = NULL;
	}
	for (size_t z = 0; z < plan->zone_count; z++)
		plan->zones[z].code = plan->zones[z].data = NULL;
	plan->points = NULL;
	plan->sites = NULL;
	plan->bytes = NULL;
	plan->order = NULL;
	plan->point_count = plan->site_count = plan->byte_count = plan->order_count = 0;
	plan->lent = plan->lender->lent = false;
}

void fay_ready_leave(struct fay_plan *plan)
{
	fay_ready_return(plan);
	fay_ready_release(plan->lender);
	plan->lender = NULL;
	plan->had_points = 0;
}
