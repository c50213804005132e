/* SPDX-License-Identifier: MIT */
/*
 * The bytes of code zones. One zone serves the points that a rel32 can reach from it:
 *
 *	0             runtime blob, its configuration filled in
 *	+ page        the image: exactly verdict->layout.bytes, helper slots filled with the runtime's addresses
 *	+ 64          struct fay_runtime_state[state_count]
 *	+ 64          struct fay_return_point[], one for each function whose calls are watched
 *	+ 64          bodies of shared trampolines
 *	+ 16          trampolines and stubs, each with its displaced instructions
 *	data, behind  struct fay_zone_header, struct fay_zone_patch[]
 */
#include "session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime.h"

#define PAGE 4096u
#define CLUSTER_SPAN (1ull << 30) /* points of one zone lie within this */

static uint64_t round_up(uint64_t value, uint64_t to)
{
	return (value + to - 1) & ~(to - 1);
}

int fay_maps_reserve(struct fay_maps *maps, uint64_t start, uint64_t size)
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
	grown[at].end = start + round_up(size, PAGE);
	maps->count++;
	return 0;
}

static size_t runtime_size(void)
{
	return (size_t)(fay_runtime_blob_end - fay_runtime_blob);
}

static uint64_t point_room(const struct fay_session *session, const struct fay_point *point)
{
	uint64_t room = FAY_TRAMPOLINE_BASE_MAX + point->probe_count * FAY_TRAMPOLINE_PROBE_MAX + FAY_DISPLACED_ROOM + 32;

	if (point->watched)
		room += FAY_TRAMPOLINE_CALL_MAX;
	if (session->options.costs)
		room += FAY_TRAMPOLINE_COST_MAX;
	if (point->back)
		room += FAY_DISPLACED_ROOM;
	if (point->marker)
		room += point->marker->operand_count * FAY_TRAMPOLINE_OPERAND_MAX;
	for (uint32_t i = 0; i < point->probe_count; i++) {
		const struct fay_probe_facts *facts = &session->verdict->probes[point->probes[i]];

		if (facts->clobbered_vectors || facts->uses_mxcsr)
			return room + (point->watched ? 3 : 1) * FAY_TRAMPOLINE_VECTORS_MAX;
	}
	return room;
}

static void write_runtime(struct fay_session *session, struct fay_zone_plan *zone, uint64_t states)
{
	const struct fay_runtime_header *header = (const void *)fay_runtime_blob;
	struct fay_runtime_config config = {
		.thread_table = session->table_address,
		.control = session->shm_address,
		.slots = session->shm_address + session->geometry.slots_offset,
		.slot_stride = session->geometry.slot_stride,
		.spill_offset = session->geometry.spill_offset,
		.spill_size = session->geometry.spill_size,
		.states = states,
		.state_count = session->verdict->schema.state_count,
		.slot_max = session->geometry.slot_max,
		.time_multiplier = session->time_multiplier,
		.time_offset = session->time_offset,
		.calls = session->calls_address,
		.key_step = session->thread_pointer ? 0 : 1,
		.unwind_step = session->unwind_step,
	};
	struct stat status;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)session->pid);
	if (stat(path, &status) == 0) {
		config.pid_namespace[0] = status.st_dev;
		config.pid_namespace[1] = status.st_ino;
	}
	memcpy(config.tids, session->tids, session->options.tid_count * sizeof(*config.tids));
	config.tid_count = session->options.tid_count;
	memcpy(zone->code, fay_runtime_blob, runtime_size());
	memcpy(zone->code + header->config, &config, sizeof(config));
}

static void write_image(struct fay_session *session, struct fay_zone_plan *zone)
{
	const struct fay_runtime_header *header = (const void *)fay_runtime_blob;
	const struct fay_layout *layout = &session->verdict->layout;
	uint8_t *bytes = zone->code + (zone->image - zone->address);

	memcpy(bytes, layout->bytes, layout->size);
	for (uint32_t i = 0; i < layout->slot_count; i++) {
		uint64_t helper = zone->address + header->helper[layout->slots[i].helper];

		memcpy(bytes + layout->slots[i].offset, &helper, 8);
	}
}

static void write_states(struct fay_session *session, uint8_t *to)
{
	const struct fay_schema *schema = &session->verdict->schema;

	for (uint32_t i = 0; i < schema->state_count; i++) {
		struct fay_runtime_state state = { schema->states[i].kind, schema->states[i].offset,
						   schema->states[i].rows, schema->states[i].row_size };

		memcpy(to + i * sizeof(state), &state, sizeof(state));
	}
}

static uint64_t hook_address(const struct fay_zone_plan *zone, enum fay_hook hook)
{
	const struct fay_runtime_header *header = (const void *)fay_runtime_blob;

	switch (hook) {
	case FAY_HOOK_FIND_OBJECT: return zone->address + header->find_object;
	case FAY_HOOK_FIND_FDE: return zone->address + header->find_fde;
	case FAY_HOOK_LONGJMP: return zone->address + header->longjmp;
	default: return 0;
	}
}

static void add_return_point(struct fay_zone_plan *zone, uint64_t trampoline, const struct fay_trampoline *made)
{
	struct fay_return_point point = { .address = trampoline + made->returns,
					  .exception = made->exception ? trampoline + made->exception : 0 };

	if (!made->returns)
		return;
	memcpy(zone->code + zone->returns_at + zone->return_count * sizeof(point), &point, sizeof(point));
	zone->return_count++;
}

/* From LOCAL. The costs lie within the slot's first bytes, which are few: FAY_POINTS_MAX of them and an image's LOCAL. */
static int32_t place_cost(const struct fay_session *session, const struct fay_point *point)
{
	return (int32_t)(session->geometry.cost_offset - FAY_SLOT_HEADER + point->cost * sizeof(struct fay_place_cost));
}

/* What points with the same probes have in common. `probes` has room for all of an image. */
static struct fay_trampoline_spec spec_of_probes(const struct fay_session *session, const struct fay_zone_plan *zone, const struct fay_point *point,
						 struct fay_trampoline_probe *probes)
{
	for (uint32_t i = 0; i < point->probe_count; i++) {
		probes[i].facts = &session->verdict->probes[point->probes[i]];
		probes[i].code = zone->image + probes[i].facts->code_offset;
		probes[i].bytes = session->verdict->layout.bytes + probes[i].facts->code_offset;
		probes[i].inlined = session->dispatch.inlined[point->probes[i]];
	}
	return (struct fay_trampoline_spec){
		.address = zone->address + zone->code_size,
		.runtime = zone->address,
		.global = session->shm_address + session->geometry.global_offset,
		.hook = hook_address(zone, point->hook),
		.tid_offset = session->tid_offset,
		.selective = session->options.tid_count > 0,
		.thread_pointer = session->thread_pointer,
		.unguarded = session->dispatch.unguarded,
		.marker = point->marker != NULL,
		.operands = point->marker ? point->marker->operands : NULL,
		.operand_count = point->marker ? point->marker->operand_count : 0,
		.careful = point->careful,
		.cost = session->options.costs ? place_cost(session, point) : 0,
		.probes = probes,
		.probe_count = point->probe_count,
	};
}

static bool same_probes(const struct fay_point *a, const struct fay_point *b)
{
	return a->probe_count == b->probe_count && a->careful == b->careful && !memcmp(a->probes, b->probes, a->probe_count * sizeof(*a->probes));
}

/* Finds the sets of probes that many points of the zone have. There are few sets; those beyond the room for them have trampolines of their own. */
static void count_sets(const struct fay_session *session, struct fay_zone_plan *zone)
{
	for (size_t i = zone->first; i < zone->last; i++) {
		const struct fay_point *point = &session->points[i];
		size_t k = 0;

		if (!point->usable || !point->probe_count || point->hook)
			continue;
		while (k < zone->set_count && !same_probes(zone->sets[k].model, point))
			k++;
		if (k == FAY_SHARED_SETS)
			continue;
		if (k == zone->set_count)
			zone->sets[zone->set_count++] = (struct fay_shared_set){ .model = point };
		zone->sets[k].points++;
	}
	for (size_t k = 0; k < zone->set_count; k++) {
		struct fay_trampoline_probe probes[FAY_IMAGE_MAX_PROBES];
		struct fay_trampoline_spec spec = spec_of_probes(session, zone, zone->sets[k].model, probes);

		zone->sets[k].chosen = zone->sets[k].points >= session->options.shared_from && fay_shared_possible(&spec);
	}
}

static const struct fay_shared_set *set_of(const struct fay_zone_plan *zone, const struct fay_point *point)
{
	for (size_t k = 0; k < zone->set_count; k++)
		if (zone->sets[k].chosen && !point->hook && same_probes(zone->sets[k].model, point))
			return &zone->sets[k];
	return NULL;
}

static bool write_shared(struct fay_session *session, struct fay_zone_plan *zone)
{
	for (size_t k = 0; k < zone->set_count; k++) {
		struct fay_trampoline_probe probes[FAY_IMAGE_MAX_PROBES];
		struct fay_trampoline_spec spec = spec_of_probes(session, zone, zone->sets[k].model, probes);

		if (!zone->sets[k].chosen)
			continue;
		if (!fay_shared_emit(&spec, zone->code + zone->code_size, zone->capacity - zone->code_size, &zone->sets[k].body))
			return false;
		session->shared_points += zone->sets[k].points;
		zone->code_size = round_up(zone->code_size + zone->sets[k].body.size, 64);
	}
	return true;
}

/* Its address in the process; 0 none. */
static uint64_t marker_semaphore(const struct fay_function *function)
{
	const struct fay_marker *marker = function->marker;

	return marker && marker->semaphore ? marker->semaphore + (function->address - marker->address) : 0;
}

/* The record of the patch, once the trampoline's parts have their places. */
static void note_patch(struct fay_point *point, const struct fay_trampoline *made, uint64_t start, uint64_t address, uint64_t copy)
{
	point->patch = (struct fay_zone_patch){ .site = point->site,
						.trampoline = point->back ? start : address + made->entry,
						.inner = point->back ? address + made->entry : 0,
						.back = point->back,
						.displaced = copy,
						.link = copy,
						.returns = made->returns ? address + made->returns : 0,
						.linked = point->linked,
						.kind = point->hook ? FAY_PATCH_HOOK : FAY_PATCH_PLACE,
						.semaphore = marker_semaphore(&point->function) };
	memcpy(point->patch.original, point->before, FAY_JUMP_BYTES);
	if (point->linked)
		point->patch.link = point->lower;
}

/* The instructions between a site and the marker that it is for: they run first, and the trampoline proper follows. */
static bool write_before(struct fay_point *point, uint64_t address, uint8_t *code, size_t *size, char reason[FAY_REASON_MAX])
{
	*size = 0;
	point->copy = address;
	if (!point->back)
		return true;
	if (!fay_displace(point->program, point->before_size, point->back, point->site, address, &point->displaced, reason))
		return false;
	*size = point->displaced.size - FAY_JUMP_BYTES; /* without the jump back */
	memcpy(code, point->displaced.code, *size);
	return true;
}

/* The trampoline for one point at zone->code_size. False: `reason` says why this point cannot be done. */
static bool write_point(struct fay_session *session, struct fay_zone_plan *zone, struct fay_point *point,
			uint64_t link_slot, char reason[FAY_REASON_MAX])
{
	struct fay_trampoline_probe probes[FAY_IMAGE_MAX_PROBES];
	struct fay_trampoline_spec spec = spec_of_probes(session, zone, point, probes);
	const struct fay_shared_set *set = set_of(zone, point);
	uint8_t *code = zone->code + zone->code_size;
	struct fay_trampoline made;
	size_t hole, link = point->linked ? 6 : 0, capacity = zone->capacity - zone->code_size, before;
	struct fay_displaced last; /* what is behind the probes */
	uint64_t copy, start = spec.address;
	bool written;

	if (!write_before(point, start, code, &before, reason))
		return false;
	code += before;
	capacity -= before;
	spec.address += before;

	spec.function = fay_name_hash(point->function.name);
	spec.module = fay_name_hash(point->function.module);
	spec.place = point->function.address;
	written = set ? capacity >= FAY_SHARED_STUB_MAX + link + FAY_DISPLACED_ROOM && fay_shared_stub(&set->body, &spec, code, capacity, &made) :
			fay_trampoline_emit(&spec, link + FAY_DISPLACED_ROOM, code, capacity, &made);
	if (!written) {
		snprintf(reason, FAY_REASON_MAX, "needs a trampoline that does not fit (internal)");
		return false;
	}
	hole = made.displaced;
	copy = spec.address + hole + link;
	if (!fay_displace(point->program + point->back, point->before_size - point->back, point->back ? 1 : FAY_JUMP_BYTES, point->site + point->back,
			  copy, &last, reason))
		return false;
	if (!point->back) {
		point->displaced = last;
		point->copy = copy;
	}
	if (point->linked) { /* jmp *link(%rip) */
		int32_t rel = (int32_t)(link_slot - (spec.address + hole + 6));

		memcpy(code + hole, "\xff\x25", 2);
		memcpy(code + hole + 2, &rel, 4);
	}
	memcpy(code + (copy - spec.address), last.code, last.size);
	if (set) /* nothing follows the displaced instructions of a stub */
		made.size = hole + link + last.size;
	note_patch(point, &made, start, spec.address, copy);
	add_return_point(zone, spec.address, &made);
	zone->code_size = round_up(zone->code_size + before + made.size, 16);
	return true;
}

static void add_record(struct fay_zone_plan *zone, const struct fay_zone_patch *patch)
{
	memcpy(zone->data + sizeof(zone->header) + zone->header.patch_count * sizeof(*patch), patch, sizeof(*patch));
	zone->header.patch_count++;
}

/* The jumps back of a point that has its copy of the displaced instructions. *next: those before it belong to earlier points. */
static void write_backs(struct fay_session *session, struct fay_zone_plan *zone, size_t index, size_t *next)
{
	uint64_t copy = session->points[index].patch.displaced;

	while (*next < session->back_count && session->backs[*next].point < index)
		++*next;
	for (; *next < session->back_count && session->backs[*next].point == index; ++*next) {
		struct fay_zone_patch *patch = &session->backs[*next].patch;

		patch->trampoline = patch->displaced = patch->link = copy;
		add_record(zone, patch);
	}
}

/* All trampolines and the records of the patches. */
static int write_points(struct fay_session *session, struct fay_zone_plan *zone, struct fay_error *error)
{
	size_t next_back = 0;

	for (size_t i = zone->first; i < zone->last; i++) {
		struct fay_point *point = &session->points[i];
		uint64_t at = sizeof(zone->header) + zone->header.patch_count * sizeof(point->patch);
		char reason[FAY_REASON_MAX];

		if (!point->usable)
			continue;
		if (!write_point(session, zone, point, zone->header.data + at + offsetof(struct fay_zone_patch, link),
				 reason)) {
			if (fay_session_skip(session, point, reason))
				return fay_error_set(error, FAY_E_LIMIT, "out of memory");
			continue;
		}
		add_record(zone, &point->patch);
		write_backs(session, zone, i, &next_back);
		if (!zone->high || point->site < zone->low)
			zone->low = point->site;
		if (point->site + FAY_JUMP_BYTES > zone->high)
			zone->high = point->site + FAY_JUMP_BYTES;
	}
	return 0;
}

/* The data part's address must be known for the link slots: it lies behind the code's full capacity. */
static int zone_build(struct fay_session *session, struct fay_zone_plan *zone, struct fay_maps *maps,
		      struct fay_error *error)
{
	uint64_t low = session->points[zone->first].function.address;
	uint64_t high = session->points[zone->last - 1].function.address + 16;
	uint64_t image_at = round_up(runtime_size(), PAGE);
	uint64_t states_at = round_up(image_at + session->verdict->layout.size, 64);
	uint64_t returns_at = round_up(
		states_at + session->verdict->schema.state_count * sizeof(struct fay_runtime_state), 64);
	uint64_t trampolines_at, capacity = 0, data_size;
	size_t watched = 0, backs = 0;
	int code;

	count_sets(session, zone);
	for (size_t k = 0; k < zone->set_count; k++)
		capacity += point_room(session, zone->sets[k].model) + 64;
	for (size_t i = zone->first; i < zone->last; i++) {
		const struct fay_point *point = &session->points[i];

		if (!point->usable)
			continue;
		capacity += set_of(zone, point) ? FAY_SHARED_STUB_MAX + FAY_DISPLACED_ROOM + 32 : point_room(session, point);
		watched += point->watched;
	}
	for (size_t i = 0; i < session->back_count; i++)
		backs += session->backs[i].point >= zone->first && session->backs[i].point < zone->last;
	zone->returns_at = returns_at;
	trampolines_at = round_up(returns_at + watched * sizeof(struct fay_return_point), 64);
	capacity += trampolines_at;
	zone->capacity = round_up(capacity, PAGE);
	data_size = round_up(sizeof(struct fay_zone_header) +
				     (zone->last - zone->first + backs) * sizeof(struct fay_zone_patch), PAGE);
	zone->address = fay_maps_hole(maps, zone->capacity + data_size, low, high);
	zone->code = calloc(1, zone->capacity);
	zone->data = calloc(1, data_size);
	if (!zone->code || !zone->data || (zone->address && fay_maps_reserve(maps, zone->address, zone->capacity + data_size)))
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	if (!zone->address)
		return fay_error_set(error, FAY_E_REFUSED, "process %d has no free memory within 2 GiB of %s!%s",
				     (int)session->pid, session->points[zone->first].function.module,
				     session->points[zone->first].function.name);
	zone->image = zone->address + image_at;
	write_runtime(session, zone, zone->address + states_at);
	write_image(session, zone);
	write_states(session, zone->code + states_at);
	zone->code_size = trampolines_at;
	if (!write_shared(session, zone))
		return fay_error_set(error, FAY_E_INTERNAL, "the shared trampoline does not fit");
	zone->header = (struct fay_zone_header){ .magic = FAY_ZONE_MAGIC,
						 .version = FAY_ZONE_VERSION,
						 .session = session->id,
						 .code = zone->address,
						 .code_size = zone->capacity,
						 .data = zone->address + zone->capacity,
						 .data_size = data_size,
						 .shm = session->shm_address,
						 .shm_size = session->shm_size,
						 .table = session->table_address,
						 .table_size = FAY_THREAD_TABLE_BYTES,
						 .calls = session->calls_address,
						 .calls_size = session->calls_size,
						 .unwind_step = session->unwind_step,
						 .owner_pid = (uint32_t)getpid(),
						 .owner_start = fay_process_start(getpid()) };
	code = write_points(session, zone, error);
	if (code)
		return code;
	memcpy(zone->data, &zone->header, sizeof(zone->header));
	return 0;
}

/* Every zone's runtime knows where the others are, and their return points. */
static int write_zone_list(struct fay_session *session, struct fay_error *error)
{
	const struct fay_runtime_header *header = (const void *)fay_runtime_blob;
	struct fay_runtime_config config;

	if (!session->calls_size && session->zone_count > FAY_RUNTIME_MAX_ZONES)
		return 0; /* whether a probe was left for good is then not found out (busy.c) */
	if (session->zone_count > FAY_RUNTIME_MAX_ZONES)
		return fay_error_set(error, FAY_E_LIMIT, "process %d: its modules lie too far apart to watch calls until they return (%zu regions, limit %u)",
				     (int)session->pid, session->zone_count, FAY_RUNTIME_MAX_ZONES);
	memcpy(&config, session->zones[0].code + header->config, sizeof(config));
	config.zone_count = session->zone_count;
	for (size_t i = 0; i < session->zone_count; i++) {
		const struct fay_zone_plan *zone = &session->zones[i];

		config.zones[i] = (struct fay_runtime_zone){ .start = zone->address,
							     .end = zone->address + zone->capacity,
							     .returns = zone->address + zone->returns_at,
							     .return_count = zone->return_count };
	}
	for (size_t i = 0; i < session->zone_count; i++) {
		struct fay_runtime_config *own = (void *)(session->zones[i].code + header->config);

		own->zone_count = config.zone_count;
		memcpy(own->zones, config.zones, sizeof(config.zones));
	}
	return 0;
}

int fay_zones_build(struct fay_session *session, struct fay_maps *maps, struct fay_error *error)
{
	size_t first = 0;

	session->table_address = fay_maps_hole(maps, FAY_THREAD_TABLE_BYTES, 0, 0);
	if (!session->table_address ||
	    fay_maps_reserve(maps, session->table_address, FAY_THREAD_TABLE_BYTES))
		return fay_error_set(error, FAY_E_REFUSED, "process %d has no free address space", (int)session->pid);
	session->shm_address = fay_maps_hole(maps, session->shm_size, 0, 0);
	if (!session->shm_address || fay_maps_reserve(maps, session->shm_address, session->shm_size))
		return fay_error_set(error, FAY_E_REFUSED, "process %d has no free address space", (int)session->pid);
	if (session->calls_size) {
		session->calls_address = fay_maps_hole(maps, session->calls_size, 0, 0);
		if (!session->calls_address || fay_maps_reserve(maps, session->calls_address, session->calls_size))
			return fay_error_set(error, FAY_E_REFUSED, "process %d has no free address space", (int)session->pid);
	}
	while (first < session->point_count) {
		struct fay_zone_plan *grown;
		size_t last = first + 1;
		int code;

		if (!session->points[first].usable) {
			first++;
			continue;
		}
		while (last < session->point_count && session->points[last].function.address -
			       session->points[first].function.address < CLUSTER_SPAN)
			last++;
		grown = realloc(session->zones, (session->zone_count + 1) * sizeof(*grown));
		if (!grown)
			return fay_error_set(error, FAY_E_LIMIT, "out of memory");
		session->zones = grown;
		grown += session->zone_count++;
		*grown = (struct fay_zone_plan){ .first = first, .last = last };
		code = zone_build(session, grown, maps, error);
		if (code)
			return code;
		first = last;
	}
	return write_zone_list(session, error);
}

void fay_zone_plans_deinit(struct fay_session *session)
{
	for (size_t i = 0; i < session->zone_count; i++) {
		free(session->zones[i].code);
		free(session->zones[i].data);
	}
	free(session->zones);
	session->zones = NULL;
	session->zone_count = 0;
}
