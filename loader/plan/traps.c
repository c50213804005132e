/* SPDX-License-Identifier: MIT */
/*
 * Where the kernel may trap instead of a point that cannot be patched
 * (docs/decisions/0026-traps.md). Nothing is written here: what sets traps is told the place.
 *
 * The kernel puts one byte, int3, over the first byte of an instruction, and runs a copy of that
 * instruction that it takes from the file. So a place is given only where a whole instruction
 * begins, the process's bytes are the file's, and no trace's jump is, or is about to be, over them.
 */
#include "plan_private.h"

#include <stdlib.h>
#include <string.h>

#include "loader/process/process.h"

#define INSTRUCTION_MAX 15u

/* Whether all that its probes want is where the place is. */
static bool is_of_place(const struct fay_plan *plan, const struct fay_point *point)
{
	for (uint32_t i = 0; i < point->probe_count; i++) {
		uint32_t kind = plan->verdict->probes[point->probes[i]].kind;

		if (kind != FAY_PROBE_ENTRY && kind != FAY_PROBE_MARKER)
			return false;
	}
	return point->probe_count && (!point->inside || point->marker);
}

/* What forbids a jump because of what the program is, forbids a trap, too. */
static bool is_allowed(const struct fay_plan *plan, const struct fay_point *point)
{
	char reason[FAY_REASON_MAX];

	return !point->untraced && !point->argless && !point->go && !plan->jumps_followed &&
	       !point->function.unnamed && point->function.size &&
	       !(point->marker && *point->marker->reason) &&
	       !fay_unpatchable(point->function.name, reason) &&
	       !fay_rendezvous_unsettled(plan, point, reason);
}

/* Whether any trace has changed, or moved, some of [low, high). */
static bool others_have(const struct fay_zones *present, uint64_t low, uint64_t high)
{
	for (size_t i = 0; i < present->count; i++) {
		const struct fay_zone *zone = &present->items[i];
		uint32_t k = fay_zone_first_at(zone, low > UINT8_MAX ? low - UINT8_MAX : 0);

		for (; k < zone->header.patch_count; k++) {
			const struct fay_zone_patch *patch = &zone->patches[zone->by_site[k]];
			uint64_t reach = patch->length > patch->size ? patch->length : patch->size;

			if (patch->site >= high)
				break;
			if (!patch->removed && patch->site + reach > low)
				return true;
		}
	}
	return present->foreign != 0;
}

/* Whether the process runs these bytes from the file, as they are there. */
static bool is_files(const struct fay_plan *plan, struct fay_program_text *text,
		     const struct fay_maps *maps, uint64_t address, unsigned length)
{
	uint8_t now[INSTRUCTION_MAX], file[INSTRUCTION_MAX];
	const struct fay_map *map = fay_maps_find(maps, address);

	return map && !strcmp(map->permissions, "r-xp") && map->inode && length <= sizeof(now) &&
	       address + length <= map->end && fay_text_now(text, address, now, length) == length &&
	       fay_target_file_text(plan->target, address, file, length) == length &&
	       !memcmp(now, file, length);
}

/* Where the file has a marker's semaphore. False: nowhere. */
static bool find_semaphore(const struct fay_plan *plan, const struct fay_function *marker,
			   struct fay_trap *trap)
{
	const struct fay_module *module = fay_target_module_at(plan->target, marker->address);
	uint64_t semaphore = marker->marker->semaphore;

	for (size_t i = 0; module && i < module->object->segment_count; i++) {
		const struct fay_segment *segment = &module->object->segments[i];

		if (semaphore < segment->vaddr || segment->executable ||
		    semaphore - segment->vaddr + sizeof(uint16_t) > segment->file_size)
			continue;
		trap->semaphore = semaphore - segment->vaddr + segment->offset;
		trap->semaphore_address = semaphore + (marker->address - marker->marker->address);
		return trap->semaphore <= UINT32_MAX; /* the kernel's interface has no more */
	}
	return false;
}

static bool find_file(const struct fay_plan *plan, const struct fay_point *point,
		      struct fay_trap *trap)
{
	struct fay_function_file file;
	const struct fay_marker *marker = point->function.marker;

	if (!fay_target_file_of(plan->target, &point->function, &file) ||
	    (marker && marker->semaphore && !find_semaphore(plan, &point->function, trap)))
		return false;
	trap->function = point->function;
	trap->file = file.fd;
	trap->device = file.device;
	trap->inode = file.inode;
	trap->offset = file.offset;
	trap->stack = fay_process_stack_begin(plan->pid);
	if (point->marker) {
		memcpy(trap->operands, point->marker->operands, sizeof(trap->operands));
		trap->operand_count = point->marker->operand_count;
	}
	return trap->stack != 0;
}

static bool judge(const struct fay_plan *plan, const struct fay_zones *present,
		  const struct fay_maps *maps, struct fay_program_text *text,
		  const struct fay_point *point)
{
	const struct fay_flow_program program = { .context = text, .read = fay_text_reader };
	uint64_t at = point->function.address;
	char reason[FAY_REASON_MAX];
	unsigned length;

	return fay_place_traps(&program, at - point->offset, at + point->function.size, at,
			       point->marker != NULL, &length, reason) &&
	       is_files(plan, text, maps, at, length) &&
	       !fay_rseqs_touch(&plan->rseqs, at, length) &&
	       !fay_site_over(plan, at, at + length) && !others_have(present, at, at + length);
}

int fay_traps_find(struct fay_plan *plan, const struct fay_zones *present,
		   const struct fay_maps *maps, int memory)
{
	struct fay_program_text text = { .present = present, .memory = memory };

	plan->traps = calloc(plan->skipped_count + 1, sizeof(*plan->traps));
	for (size_t i = 0; plan->traps && i < plan->point_count; i++) {
		const struct fay_point *point = &plan->points[i];
		struct fay_trap trap = { 0 };

		if (point->usable || !point->skipped || point->skipped > plan->skipped_count ||
		    !is_of_place(plan, point) || !is_allowed(plan, point) ||
		    !judge(plan, present, maps, &text, point) || !find_file(plan, point, &trap))
			continue;
		trap.skipped = point->skipped - 1;
		plan->traps[plan->trap_count++] = trap;
	}
	fay_program_text_deinit(&text);
	return plan->traps ? 0 : -1;
}
