/* SPDX-License-Identifier: MIT */
/*
 * The bytes of code zones. One zone serves the points that a rel32 can reach from it:
 *
 *	0             runtime blob, its configuration filled in
 *	+ page        the image: exactly verdict->layout.bytes, helper slots filled with the
 *		      runtime's addresses
 *	+ 64          struct fay_runtime_state[state_count]
 *	+ 64          struct fay_watched[], one for each function whose calls have records
 *	+ 64          bodies of shared trampolines
 *	+ 16          trampolines and stubs, each with its displaced instructions
 *	data, behind  struct fay_zone_header, struct fay_zone_patch[]
 */
#include "plan_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE 4096u
#define CLUSTER_SPAN (1ull << 30) /* points of one zone lie within this */

int fay_zone_reserve(struct fay_maps *maps, uint64_t start, uint64_t size)
{
	struct fay_map *grown = realloc(maps->items, (maps->count + 1) * sizeof(*grown));
	size_t at = maps->count;

	if (!grown)
		return -1;
	maps->items = grown;
	for (; at > 0 && grown[at - 1].start > start; at--)
		grown[at] = grown[at - 1];
	memset(&grown[at], 0, sizeof(grown[at]));
	grown[at].start = start;
	grown[at].end = start + fay_round_up(size, PAGE);
	maps->count++;
	return 0;
}

static size_t runtime_size(void)
{
	return (size_t)(fay_runtime_blob_end - fay_runtime_blob);
}

static void write_runtime(struct fay_plan *plan, struct fay_zone_plan *zone, uint64_t states)
{
	const struct fay_runtime_header *header = (const void *)fay_runtime_blob;
	struct fay_runtime_config config = {
		.thread_table = plan->table_address,
		.control = plan->shm_address,
		.slots = plan->shm_address + plan->geometry.slots_offset,
		.slot_stride = plan->geometry.slot_stride,
		.spill_offset = plan->geometry.spill_offset,
		.spill_size = plan->geometry.spill_size,
		.states = states,
		.state_count = plan->verdict->schema.state_count,
		.slot_max = plan->geometry.slot_max,
		.time_multiplier = plan->time_multiplier
				   << (32 - fay_time_shift(plan->time_multiplier)),
		.time_offset = plan->time_offset,
		.records = plan->records_address,
		.record_bits = fay_plan_record_bits(plan),
		.key_step = plan->thread_pointer ? 0 : 1,
		.tid_offset = plan->tid_offset,
		.when_full = plan->options.when_full,
		.rendezvous = plan->rendezvous,
	};
	struct stat status;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)plan->pid);
	if (stat(path, &status) == 0) {
		config.pid_namespace[0] = status.st_dev;
		config.pid_namespace[1] = status.st_ino;
	}
	if (stat("/proc/self/ns/pid", &status) == 0 && status.st_dev == config.pid_namespace[0] &&
	    status.st_ino == config.pid_namespace[1])
		config.owner = (uint64_t)getpid();
	config.pid_read = fay_plan_reads(plan, FAY_FIELD_PID);
	memcpy(config.tids, plan->tids, plan->options.tid_count * sizeof(*config.tids));
	config.tid_count = plan->options.tid_count;
	memcpy(zone->code, fay_runtime_blob, runtime_size());
	memcpy(zone->code + header->config, &config, sizeof(config));
}

static void write_image(struct fay_plan *plan, struct fay_zone_plan *zone)
{
	const struct fay_runtime_header *header = (const void *)fay_runtime_blob;
	const struct fay_layout *layout = &plan->verdict->layout;
	uint8_t *bytes = zone->code + (zone->image - zone->address);

	memcpy(bytes, layout->bytes, layout->size);
	for (uint32_t i = 0; i < layout->slot_count; i++) {
		uint64_t helper = zone->address + header->helper[layout->slots[i].helper];

		memcpy(bytes + layout->slots[i].offset, &helper, 8);
	}
}

static void write_states(struct fay_plan *plan, uint8_t *to)
{
	const struct fay_schema *schema = &plan->verdict->schema;

	for (uint32_t i = 0; i < schema->state_count; i++) {
		struct fay_runtime_state state = { schema->states[i].kind, schema->states[i].offset,
						   schema->states[i].rows,
						   schema->states[i].row_size };

		memcpy(to + i * sizeof(state), &state, sizeof(state));
	}
}

void fay_zone_write_own(struct fay_plan *plan, struct fay_zone_plan *zone, uint64_t data_size)
{
	uint64_t states = fay_round_up(zone->image + plan->verdict->layout.size, 64);

	write_runtime(plan, zone, states);
	write_image(plan, zone);
	write_states(plan, zone->code + (states - zone->address));
	zone->header = (struct fay_zone_header){ .magic = FAY_ZONE_MAGIC,
						 .version = FAY_ZONE_VERSION,
						 .session = plan->id,
						 .code = zone->address,
						 .code_size = zone->capacity,
						 .data = zone->address + zone->capacity,
						 .data_size = data_size,
						 .shm = plan->shm_address,
						 .shm_size = plan->shm_size,
						 .table = plan->table_address,
						 .table_size = FAY_THREAD_TABLE_BYTES,
						 .records = plan->records_address,
						 .records_size = plan->records_size };
	fay_owner_self(&zone->header.owner);
}

void fay_zone_note_address(struct fay_zone_plan *zone, size_t at, bool pushed)
{
	struct fay_zone_address *grown = zone->addresses;

	if ((zone->address_count & (zone->address_count - 1)) == 0) /* a power of two: full */
		grown = realloc(grown, (2 * zone->address_count + 1) * sizeof(*grown));
	zone->unnoted |= !grown;
	if (!grown)
		return;
	zone->addresses = grown;
	grown[zone->address_count++] = (struct fay_zone_address){ at, pushed };
}

/* All trampolines and the records of the patches. */
static int write_points(struct fay_plan *plan, struct fay_zone_plan *zone, struct fay_error *error)
{
	for (size_t i = zone->first; i < zone->last; i++) {
		struct fay_point *point = &plan->points[i];
		size_t code_size = zone->code_size, watched = zone->watched_count,
		       addresses = zone->address_count;
		uint32_t patches = zone->header.patch_count;
		char reason[FAY_REASON_MAX] = "";

		if (!point->usable || fay_zone_write_point(plan, zone, point, reason))
			continue;
		zone->code_size = code_size;
		zone->watched_count = watched;
		zone->address_count = addresses;
		zone->header.patch_count = patches;
		if (!*reason || fay_plan_skip(plan, point, reason))
			return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	}
	return 0;
}

/* Where the sites of the zone's points lie. */
static void find_bounds(const struct fay_plan *plan, struct fay_zone_plan *zone)
{
	for (size_t i = zone->first; i < zone->last; i++)
		for (size_t k = 0; plan->points[i].usable && k < plan->points[i].site_count; k++) {
			uint64_t site = plan->sites[plan->points[i].first_site + k].site;

			if (!zone->high || site < zone->low)
				zone->low = site;
			if (site + FAY_JUMP_BYTES > zone->high)
				zone->high = site + FAY_JUMP_BYTES;
		}
}

/* The data part's address must be known for the link slots: it lies behind the code's full
 * capacity. */
static int zone_build(struct fay_plan *plan, struct fay_zone_plan *zone, struct fay_maps *maps,
		      struct fay_error *error)
{
	uint64_t image_at = fay_round_up(runtime_size(), PAGE);
	uint64_t states_at = fay_round_up(image_at + plan->verdict->layout.size, 64);
	uint64_t trampolines_at, capacity = 0, data_size;
	size_t watched = 0, sites = 0;
	int code;

	find_bounds(plan, zone);
	fay_zone_count_sets(plan, zone);
	for (size_t k = 0; k < zone->set_count; k++)
		capacity += fay_zone_set_room(plan, &zone->sets[k]);
	for (size_t i = zone->first; i < zone->last; i++) {
		const struct fay_point *point = &plan->points[i];

		if (!point->usable)
			continue;
		capacity += fay_zone_point_room(plan, zone, point);
		watched += point->exits;
		sites += point->site_count + 1; /* and a part */
	}
	zone->watched_at = fay_round_up(states_at + plan->verdict->schema.state_count *
							    sizeof(struct fay_runtime_state),
					64);
	trampolines_at = fay_round_up(zone->watched_at + watched * sizeof(struct fay_watched), 64);
	capacity += trampolines_at;
	zone->capacity = fay_round_up(capacity, PAGE);
	data_size = fay_round_up(
		sizeof(struct fay_zone_header) + sites * sizeof(struct fay_zone_patch), PAGE);
	zone->address = fay_maps_hole(maps, zone->capacity + data_size, zone->low, zone->high);
	zone->code = calloc(1, zone->capacity);
	zone->data = calloc(1, data_size);
	if (!zone->code || !zone->data ||
	    (zone->address && fay_zone_reserve(maps, zone->address, zone->capacity + data_size)))
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	if (!zone->address)
		return fay_error_set(error, FAY_E_REFUSED,
				     "process %d has no free memory within 2 GiB of %s!%s",
				     (int)plan->pid, plan->points[zone->first].function.module,
				     plan->points[zone->first].function.name);
	zone->image = zone->address + image_at;
	fay_zone_write_own(plan, zone, data_size);
	zone->code_size = trampolines_at;
	if (!fay_zone_write_shared(plan, zone))
		return fay_error_set(error, FAY_E_INTERNAL, "the shared trampoline does not fit");
	code = write_points(plan, zone, error);
	if (code)
		return code;
	memcpy(zone->data, &zone->header, sizeof(zone->header));
	return 0;
}

/* Every zone's runtime knows where the others are, and their functions whose calls have records. */
static int write_zone_list(struct fay_plan *plan, struct fay_error *error)
{
	const struct fay_runtime_header *header = (const void *)fay_runtime_blob;
	struct fay_runtime_config config;

	if (!plan->zone_count)
		return 0; /* nothing is usable, which the caller says */
	if (!plan->some_records && plan->zone_count > FAY_RUNTIME_MAX_ZONES)
		return 0; /* whether a probe was left for good is then not found out (busy.c) */
	if (plan->zone_count > FAY_RUNTIME_MAX_ZONES)
		return fay_error_set(error, FAY_E_LIMIT,
				     "process %d: its modules lie too far apart to watch calls "
				     "until they return (%zu regions, limit %u)",
				     (int)plan->pid, plan->zone_count, FAY_RUNTIME_MAX_ZONES);
	memcpy(&config, plan->zones[0].code + header->config, sizeof(config));
	config.zone_count = plan->zone_count;
	for (size_t i = 0; i < plan->zone_count; i++) {
		const struct fay_zone_plan *zone = &plan->zones[i];

		config.zones[i] =
			(struct fay_runtime_zone){ .start = zone->address,
						   .end = zone->address + zone->capacity,
						   .watched = zone->address + zone->watched_at,
						   .watched_count = zone->watched_count };
	}
	for (size_t i = 0; i < plan->zone_count; i++) {
		struct fay_runtime_config *own = (void *)(plan->zones[i].code + header->config);

		own->zone_count = config.zone_count;
		memcpy(own->zones, config.zones, sizeof(config.zones));
	}
	return 0;
}

/* A zone that serves nothing but the dynamic linker's function can be done without. */
static bool leave_out_rendezvous(struct fay_plan *plan, const struct fay_zone_plan *zone)
{
	for (size_t i = zone->first; i < zone->last; i++)
		if (plan->points[i].usable &&
		    (plan->points[i].hook != FAY_HOOK_MODULES || plan->points[i].probe_count))
			return false;
	for (size_t i = zone->first; i < zone->last; i++)
		plan->points[i].usable = false;
	snprintf(plan->unhooked, sizeof(plan->unhooked),
		 "there is no free memory within 2 GiB of the dynamic linker");
	return true;
}

static int no_address_space(const struct fay_plan *plan, struct fay_error *error)
{
	return fay_error_set(error, FAY_E_REFUSED, "process %d has no free address space",
			     (int)plan->pid);
}

/* Where what all zones have in common lies. */
static int place_shared(struct fay_plan *plan, struct fay_maps *maps, struct fay_error *error)
{
	plan->table_address = fay_maps_hole(maps, FAY_THREAD_TABLE_BYTES, 0, 0);
	if (!plan->table_address ||
	    fay_zone_reserve(maps, plan->table_address, FAY_THREAD_TABLE_BYTES))
		return no_address_space(plan, error);
	plan->shm_address = fay_maps_hole(maps, plan->shm_size, 0, 0);
	if (!plan->shm_address || fay_zone_reserve(maps, plan->shm_address, plan->shm_size))
		return no_address_space(plan, error);
	if (!plan->records_size)
		return 0;
	plan->records_address = fay_maps_hole(maps, plan->records_size, 0, 0);
	if (!plan->records_address ||
	    fay_zone_reserve(maps, plan->records_address, plan->records_size))
		return no_address_space(plan, error);
	return 0;
}

static void zone_plan_deinit(struct fay_zone_plan *zone)
{
	free(zone->code);
	free(zone->data);
	free(zone->addresses);
}

static int build_all(struct fay_plan *plan, struct fay_maps *maps, struct fay_error *error)
{
	size_t first = 0;

	while (first < plan->point_count) {
		struct fay_zone_plan *grown;
		size_t last = first + 1;
		int code;

		if (!plan->points[first].usable) {
			first++;
			continue;
		}
		while (last < plan->point_count &&
		       plan->points[last].function.address - plan->points[first].function.address <
			       CLUSTER_SPAN)
			last++;
		grown = realloc(plan->zones, (plan->zone_count + 1) * sizeof(*grown));
		if (!grown)
			return fay_error_set(error, FAY_E_LIMIT, "out of memory");
		plan->zones = grown;
		grown += plan->zone_count++;
		*grown = (struct fay_zone_plan){ .first = first, .last = last };
		code = zone_build(plan, grown, maps, error);
		if (code == FAY_E_REFUSED && leave_out_rendezvous(plan, grown)) {
			zone_plan_deinit(grown);
			plan->zone_count--;
		} else if (code) {
			return code;
		}
		first = last;
	}
	return 0;
}

int fay_zones_build(struct fay_plan *plan, struct fay_maps *maps, struct fay_error *error)
{
	int code = place_shared(plan, maps, error);

	if (code)
		return code;
	plan->ready = fay_ready_use(plan, maps);
	plan->not_lent = plan->lent && !plan->ready;
	if (plan->not_lent)
		return fay_error_set(error, FAY_E_LIMIT, "process %d: its code keeps changing",
				     (int)plan->pid);
	if (!plan->ready)
		code = build_all(plan, maps, error);
	if (!code)
		code = write_zone_list(plan, error);
	if (!code && !plan->ready)
		fay_ready_keep(plan);
	for (size_t i = 0; i < plan->zone_count; i++) { /* nobody else needs them */
		free(plan->zones[i].addresses);
		plan->zones[i].addresses = NULL;
		plan->zones[i].address_count = 0;
	}
	return code;
}

void fay_zone_plans_deinit(struct fay_plan *plan)
{
	for (size_t i = 0; i < plan->zone_count; i++)
		zone_plan_deinit(&plan->zones[i]);
	free(plan->zones);
	plan->zones = NULL;
	plan->zone_count = 0;
}
