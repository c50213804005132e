/* SPDX-License-Identifier: MIT */
/*
 * Zones that are ready. A zone that lies as far from the program's functions in one process as in
 * another has the same bytes there, but for
 *
 *	the runtime's configuration, the image's helper slots,	written anew
 *	the header
 *	addresses of functions in front of stubs, return	noted when they were written,
 *	addresses that copies of calls push			and moved
 *	the records of patches					moved, each address of them
 *
 * So the zones that were built for a process are kept. Another process gets a copy of them if the
 * same plans of files were put together for it (kept.c), all points of a zone are moved by the same
 * distance, and so is the hole that is chosen for the zone. Anything else is built. Of the process
 * that they were built for nothing is kept but where it had its modules.
 */
#include "plan_private.h"

#include <stdlib.h>
#include <string.h>

#include "loader/names/target.h"

#define READY_MAX 8u

struct ready {
	/* what it is for: all of this */
	const struct fay_verdict *verdict;
	int32_t tid_offset;
	bool thread_pointer;
	uint8_t time_shift;
	uint32_t shared_from;
	uint64_t made_of[FAY_MADE_OF_MAX];
	size_t made_of_count, point_count, site_count;
	/* and what it is, at the addresses of the process that it was built for */
	struct ready_point {
		uint64_t address;
		bool usable, shared;
	} *points;
	struct ready_site {
		uint8_t boundary_count, boundary_from[2 * FAY_JUMP_BYTES];
		int32_t boundary_to[2 * FAY_JUMP_BYTES];
		struct fay_zone_patch patch;
	} *sites;
	struct fay_zone_plan *zones;
	size_t zone_count, shared_points;
};

struct fay_ready_zones {
	struct ready items[READY_MAX];
	size_t count, oldest;
};

static void ready_deinit(struct ready *ready)
{
	struct fay_plan zones = { .zones = ready->zones, .zone_count = ready->zone_count };

	fay_zone_plans_deinit(&zones);
	free(ready->points);
	free(ready->sites);
}

void fay_ready_destroy(struct fay_ready_zones *zones)
{
	for (size_t i = 0; zones && i < zones->count; i++)
		ready_deinit(&zones->items[i]);
	free(zones);
}

/* Whether the zones have no addresses but those that are noted, and are worth keeping. */
static bool can_be_ready(const struct fay_plan *plan)
{
	if (!plan->assembled || !plan->made_of_count || plan->made_of_count > FAY_MADE_OF_MAX ||
	    plan->options.costs || plan->options.tid_count || plan->some_records ||
	    !plan->target->files || fay_plan_reads(plan, FAY_FIELD_ADDRESS))
		return false;
	for (uint32_t i = 0; i < plan->verdict->probe_count; i++)
		if (plan->verdict->probes[i].arguments_used & 1u << FAY_RDX)
			return false;
	for (size_t i = 0; i < plan->point_count; i++)
		if (plan->points[i].marker)
			return false;
	return true;
}

/* --- use --- */

static bool is_for(const struct ready *ready, const struct fay_plan *plan)
{
	return ready->verdict == plan->verdict && ready->tid_offset == plan->tid_offset &&
	       ready->thread_pointer == plan->thread_pointer &&
	       ready->time_shift == fay_time_shift(plan->time_multiplier) &&
	       ready->shared_from == plan->options.shared_from &&
	       ready->made_of_count == plan->made_of_count &&
	       !memcmp(ready->made_of, plan->made_of,
		       ready->made_of_count * sizeof(*ready->made_of)) &&
	       ready->point_count == plan->point_count && ready->site_count == plan->site_count;
}

/* By what distance the zone's points are moved. False: not all by the same. */
static bool distance_of(const struct ready *ready, const struct fay_zone_plan *zone,
			const struct fay_plan *plan, uint64_t *by)
{
	*by = plan->points[zone->first].function.address - ready->points[zone->first].address;
	for (size_t i = zone->first; i < zone->last; i++)
		if (plan->points[i].function.address - ready->points[i].address != *by)
			return false;
	return true;
}

/* Whether the same points are to be patched, none of which was set aside when the zones were built,
 * and the zones can lie here as they lay there. */
static bool fits(const struct ready *ready, const struct fay_plan *plan)
{
	uint64_t by;

	for (size_t i = 0; i < plan->point_count; i++)
		if (plan->points[i].usable != ready->points[i].usable)
			return false;
	for (size_t z = 0; z < ready->zone_count; z++)
		if (!distance_of(ready, &ready->zones[z], plan, &by))
			return false;
	return true;
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

static bool move_addresses(const struct fay_zone_plan *from, uint8_t *code, uint64_t by)
{
	for (size_t i = 0; by && i < from->address_count; i++) {
		uint8_t *at = code + from->addresses[i].at;
		uint64_t address;

		if (from->addresses[i].pushed) {
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

static size_t data_size(const struct fay_zone_plan *zone)
{
	return sizeof(zone->header) + zone->header.patch_count * sizeof(struct fay_zone_patch);
}

/* A zone's bytes, in memory of its own. */
static bool copy_bytes(const struct fay_zone_plan *from, struct fay_zone_plan *to)
{
	*to = *from;
	to->addresses = NULL;
	to->address_count = to->set_count = 0;
	to->code = malloc(from->code_size);
	to->data = malloc(data_size(from));
	if (!to->code || !to->data)
		return false;
	memcpy(to->code, from->code, from->code_size);
	memcpy(to->data, from->data, data_size(from));
	return true;
}

static bool move_zone(struct fay_plan *plan, const struct fay_zone_plan *from, uint64_t by,
		      struct fay_maps *maps, struct fay_zone_plan *to)
{
	uint64_t size = from->capacity + from->header.data_size;

	if (!copy_bytes(from, to) || !move_addresses(from, to->code, by) ||
	    fay_maps_hole(maps, size, from->low + by, from->high + by) != from->address + by ||
	    fay_zone_reserve(maps, from->address + by, size))
		return false;
	to->low += by;
	to->high += by;
	to->address += by;
	to->image += by;
	fay_zone_write_own(plan, to, from->header.data_size);
	to->header.patch_count = from->header.patch_count;
	for (uint32_t i = 0; i < to->header.patch_count; i++) {
		struct fay_zone_patch *patches = (void *)(to->data + sizeof(to->header));

		move_patch(&patches[i], by);
	}
	memcpy(to->data, &to->header, sizeof(to->header));
	return true;
}

/* What installing has to know of the zone's points. */
static void move_sites(const struct ready *ready, const struct fay_zone_plan *zone, uint64_t by,
		       struct fay_plan *plan)
{
	for (size_t i = zone->first; i < zone->last; i++) {
		struct fay_point *point = &plan->points[i];

		point->shared = ready->points[i].shared;
		for (size_t k = 0; k < point->site_count && point->usable; k++) {
			const struct ready_site *from = &ready->sites[point->first_site + k];
			struct fay_site *to = &plan->sites[point->first_site + k];

			to->patch = from->patch;
			move_patch(&to->patch, by);
			to->boundary_count = from->boundary_count;
			memcpy(to->boundary_from, from->boundary_from, sizeof(to->boundary_from));
			memcpy(to->boundary_to, from->boundary_to, sizeof(to->boundary_to));
		}
	}
}

static bool use(const struct ready *ready, struct fay_plan *plan, struct fay_maps *maps)
{
	plan->zones = calloc(ready->zone_count, sizeof(*plan->zones));
	if (!plan->zones)
		return false;
	for (size_t z = 0; z < ready->zone_count; z++) {
		const struct fay_zone_plan *zone = &ready->zones[z];
		uint64_t by;

		plan->zone_count++;
		if (!distance_of(ready, zone, plan, &by) ||
		    !move_zone(plan, zone, by, maps, &plan->zones[z]))
			return false;
		move_sites(ready, zone, by, plan);
	}
	plan->shared_points = ready->shared_points;
	return true;
}

bool fay_ready_use(struct fay_plan *plan, struct fay_maps *maps)
{
	struct fay_ready_zones *zones = plan->target->files ? plan->target->files->ready : NULL;

	if (!zones || !can_be_ready(plan))
		return false;
	for (size_t i = 0; i < zones->count; i++) {
		if (!is_for(&zones->items[i], plan) || !fits(&zones->items[i], plan))
			continue;
		if (use(&zones->items[i], plan, maps))
			return true;
		fay_zone_plans_deinit(plan);
		return false;
	}
	return false;
}

/* --- keeping --- */

static bool copy_plan(const struct fay_plan *plan, struct ready *to)
{
	to->points = calloc(plan->point_count, sizeof(*to->points));
	to->sites = calloc(plan->site_count + 1, sizeof(*to->sites));
	to->zones = calloc(plan->zone_count, sizeof(*to->zones));
	if (!to->points || !to->sites || !to->zones)
		return false;
	for (size_t i = 0; i < plan->point_count; i++)
		to->points[i] = (struct ready_point){ .address = plan->points[i].function.address,
						      .usable = plan->points[i].usable,
						      .shared = plan->points[i].shared };
	for (size_t i = 0; i < plan->site_count; i++) {
		const struct fay_site *site = &plan->sites[i];

		to->sites[i].boundary_count = site->boundary_count;
		memcpy(to->sites[i].boundary_from, site->boundary_from,
		       sizeof(site->boundary_from));
		memcpy(to->sites[i].boundary_to, site->boundary_to, sizeof(site->boundary_to));
		to->sites[i].patch = site->patch;
	}
	for (size_t z = 0; z < plan->zone_count; z++) {
		const struct fay_zone_plan *from = &plan->zones[z];
		size_t size = from->address_count * sizeof(*from->addresses);

		to->zone_count++;
		if (!copy_bytes(from, &to->zones[z]) ||
		    !(to->zones[z].addresses = malloc(size + 1)))
			return false;
		if (size)
			memcpy(to->zones[z].addresses, from->addresses, size);
		to->zones[z].address_count = from->address_count;
	}
	return true;
}

static bool all_noted(const struct fay_plan *plan)
{
	for (size_t z = 0; z < plan->zone_count; z++)
		if (plan->zones[z].unnoted)
			return false;
	return plan->zone_count != 0;
}

void fay_ready_keep(const struct fay_plan *plan)
{
	struct fay_files *files = plan->target->files;
	struct ready made = { .verdict = plan->verdict,
			      .tid_offset = plan->tid_offset,
			      .thread_pointer = plan->thread_pointer,
			      .time_shift = fay_time_shift(plan->time_multiplier),
			      .shared_from = plan->options.shared_from,
			      .made_of_count = plan->made_of_count,
			      .point_count = plan->point_count,
			      .site_count = plan->site_count,
			      .shared_points = plan->shared_points };
	struct ready *to;

	if (!plan->shared_points || !can_be_ready(plan) || !all_noted(plan))
		return;
	if (!files->ready)
		files->ready = calloc(1, sizeof(*files->ready));
	memcpy(made.made_of, plan->made_of, sizeof(made.made_of));
	if (!files->ready || !copy_plan(plan, &made)) {
		ready_deinit(&made);
		return;
	}
	if (files->ready->count < READY_MAX) {
		to = &files->ready->items[files->ready->count++];
	} else {
		to = &files->ready->items[files->ready->oldest];
		files->ready->oldest = (files->ready->oldest + 1) % READY_MAX;
		ready_deinit(to);
	}
	*to = made;
}
