/* SPDX-License-Identifier: MIT */
/*
 * Where the kernel may trap instead of a point that cannot be patched
 * (docs/decisions/0026-traps.md, 0029-returns-by-traps.md). Nothing is written here: what sets
 * traps is told the places.
 *
 * The kernel puts one byte, int3, over the first byte of an instruction, and runs a copy of that
 * instruction that it takes from the file. So a place is given only where a whole instruction
 * begins, the process's bytes are the file's, and no trace's jump is, or is about to be, over them.
 * A file may be mapped more than once: the byte is then in all mappings, so all must be so.
 * Of a function whose calls' ends are wanted all exits must be such places, or it gets no trap.
 */
#include "plan_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fay/bpf.h"
#include "loader/names/target.h"
#include "loader/process/process.h"

#define INSTRUCTION_MAX 15u
/* what is another function's business once a call goes on there */
#define FIELDS_AT_RETURN                                                                           \
	(FAY_FIELD_DURATION | FAY_FIELD_RETVAL | FAY_FIELD_RETVAL2 | FAY_FIELD_RETVAL_FLOAT)

struct finder {
	struct fay_plan *plan;
	const struct fay_zones *present;
	const struct fay_maps *maps;
	struct fay_program_text text;
	uint64_t stack; /* of the process; 0: not asked for yet */
	size_t room;    /* of plan->traps */
	bool no_memory;
};

static bool has_only(const struct fay_plan *plan, const struct fay_point *point, uint32_t kinds)
{
	for (uint32_t i = 0; i < point->probe_count; i++)
		if (!(kinds >> plan->verdict->probes[fay_point_probe(point, i)].kind & 1))
			return false;
	return point->probe_count != 0;
}

/* Whether all that its probes want is where the place is. */
static bool is_of_place(const struct fay_plan *plan, const struct fay_point *point)
{
	uint32_t offset = point->marker ? 1u << FAY_PROBE_OFFSET : 0;

	return has_only(plan, point, 1u << FAY_PROBE_ENTRY | 1u << FAY_PROBE_MARKER | offset) &&
	       (!point->inside || point->marker);
}

static bool is_of_ends(const struct fay_plan *plan, const struct fay_point *point)
{
	return has_only(plan, point, 1u << FAY_PROBE_RETURN) && !point->inside;
}

/* What forbids a jump because of what the program is, forbids a trap, too. */
static bool is_allowed(const struct fay_plan *plan, const struct fay_point *point)
{
	char reason[FAY_REASON_MAX];

	return !point->untraced && !point->argless && !point->go && !plan->jumps_followed &&
	       point->function.size && !(point->marker && *point->marker->reason) &&
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

static bool find_file(struct finder *finder, const struct fay_point *point, struct fay_trap *trap)
{
	const struct fay_plan *plan = finder->plan;
	struct fay_function place = point->function;
	struct fay_function_file file, start;
	const struct fay_marker *marker = point->function.marker;

	place.address = trap->address;
	if (!fay_target_file_of(plan->target, &place, &file) ||
	    !fay_target_file_of(plan->target, &point->function, &start) ||
	    file.device != start.device || file.inode != start.inode ||
	    (marker && marker->semaphore && !find_semaphore(plan, &point->function, trap)))
		return false;
	trap->skipped = point->skipped - 1;
	trap->function = point->function;
	trap->file = file.fd;
	trap->device = file.device;
	trap->inode = file.inode;
	trap->offset = file.offset;
	trap->start = start.offset;
	if (!finder->stack)
		finder->stack = fay_process_stack_begin(plan->pid);
	trap->stack = finder->stack;
	if (point->marker) {
		memcpy(trap->operands, point->marker->operands, sizeof(trap->operands));
		trap->operand_count = point->marker->operand_count;
	}
	return trap->stack != 0;
}

static bool is_free(struct finder *finder, uint64_t at, unsigned length)
{
	return is_files(finder->plan, &finder->text, finder->maps, at, length) &&
	       !fay_rseqs_touch(&finder->plan->rseqs, at, length) &&
	       !fay_site_over(finder->plan, at, at + length) &&
	       !others_have(finder->present, at, at + length);
}

/* Wherever the process runs this place of the file. */
static bool is_free_everywhere(struct finder *finder, const struct fay_trap *trap, unsigned length)
{
	const struct fay_target *target = finder->plan->target;
	const struct fay_module *home = fay_target_module_at(target, trap->address);

	for (size_t i = 0; home && i < target->module_count; i++) {
		const struct fay_module *module = &target->modules[i];

		if (module->device != home->device || module->inode != home->inode)
			continue;
		for (size_t k = 0; k < module->range_count; k++) {
			const struct fay_range *range = &module->ranges[k];
			uint64_t from = trap->offset - range->offset;

			if (from < range->end - range->start &&
			    !is_free(finder, range->start + from, length))
				return false;
		}
	}
	return home != NULL;
}

/* One more for the point, at an instruction of `length` bytes. False: there it cannot be, or memory
 * is out. */
static bool add(struct finder *finder, const struct fay_point *point, unsigned length,
		struct fay_trap trap)
{
	struct fay_plan *plan = finder->plan;

	if (!find_file(finder, point, &trap) || !is_free_everywhere(finder, &trap, length))
		return false;
	if (plan->trap_count == finder->room) {
		size_t room = finder->room ? 2 * finder->room : 16;
		struct fay_trap *grown = realloc(plan->traps, room * sizeof(*grown));

		if (!grown)
			return finder->no_memory = true, false;
		plan->traps = grown;
		finder->room = room;
	}
	plan->traps[plan->trap_count++] = trap;
	return true;
}

/* At the function's first instruction, or the marker. */
static bool add_place(struct finder *finder, const struct fay_point *point, uint8_t kind)
{
	const struct fay_flow_program program = { .context = &finder->text,
						  .read = fay_text_reader };
	uint64_t at = point->function.address;
	enum fay_place_kind place = !point->marker                     ? FAY_PLACE_AT_ENTRY
				    : point->function.marker->function ? FAY_PLACE_INSIDE_AT
								       : FAY_PLACE_AT_MARKER;
	char reason[FAY_REASON_MAX];
	unsigned length;

	return fay_place_traps(&program, at - point->offset, at + point->function.size, at, place,
			       &length, reason) &&
	       add(finder, point, length, (struct fay_trap){ .kind = kind, .address = at });
}

static bool read_condition(struct finder *finder, const struct fay_exit *exit, uint8_t *condition)
{
	uint8_t bytes[2];

	*condition = FAY_TRAP_ALWAYS;
	if (!exit->conditional)
		return true;
	if (fay_text_program(&finder->text, exit->at, bytes, sizeof(bytes)) != sizeof(bytes))
		return false;
	if (exit->length == 2 && (bytes[0] & 0xf0) == 0x70)
		*condition = bytes[0] & 15;
	else if (exit->length == 6 && bytes[0] == 0x0f && (bytes[1] & 0xf0) == 0x80)
		*condition = bytes[1] & 15;
	return *condition != FAY_TRAP_ALWAYS;
}

/* Of a jump that may lead into the function: what tells whether it does. */
static bool read_target(struct finder *finder, const struct fay_flow *flow,
			const struct fay_exit *exit, struct fay_trap *trap)
{
	uint8_t bytes[INSTRUCTION_MAX];
	size_t size = fay_text_program(&finder->text, exit->at, bytes, exit->length);

	if (!exit->doubt)
		return true;
	if (flow->part_count > FAY_TRAP_PARTS || !fay_jump_operand(bytes, size, &trap->operands[0]))
		return false;
	trap->operand_count = 1;
	for (size_t i = 0; i < flow->part_count; i++) {
		trap->parts[i].from = (int64_t)(flow->parts[i].start - exit->at);
		trap->parts[i].to = (int64_t)(flow->parts[i].end - exit->at);
	}
	trap->part_count = (uint8_t)flow->part_count;
	return true;
}

/* At an exit. `why` says why not, to follow "it". */
static bool add_end(struct finder *finder, const struct fay_point *point,
		    const struct fay_exit *exit, bool kept, uint32_t fields,
		    char why[FAY_REASON_MAX])
{
	struct fay_trap trap = { .kind = FAY_TRAP_END,
				 .kept = kept,
				 .left = exit->kind != FAY_EXIT_RETURN && fields & FIELDS_AT_RETURN,
				 .address = exit->at };
	const char *text = NULL;

	if (!exit->length)
		text = "runs on into another function";
	else if ((kept && exit->at == point->function.address) ||
		 !read_condition(finder, exit, &trap.condition) ||
		 !read_target(finder, point->flow, exit, &trap))
		text = "has an unusual jump";
	else if (!add(finder, point, exit->length, trap))
		text = "has no room for a trap";
	if (text)
		snprintf(why, FAY_REASON_MAX, "%s at +%#lx", text,
			 (unsigned long)(exit->at - point->function.address));
	return !text;
}

static uint32_t fields_of(const struct fay_plan *plan, const struct fay_point *point)
{
	uint32_t fields = 0;

	for (uint32_t i = 0; i < point->probe_count; i++)
		fields |= plan->verdict->probes[fay_point_probe(point, i)].event_fields;
	return fields;
}

/* Whether more has to be known of an end than is known there: what the call began with, or whether
 * it is one. */
static bool needs_begin(const struct fay_point *point, uint32_t fields)
{
	bool needs = point->others_end || fields & (FAY_FIELD_DURATION | FAY_FIELDS_ARGUMENTS);

	for (size_t i = 0; i < point->flow->exit_count; i++)
		needs |= point->flow->exits[i].unsure;
	return needs;
}

/* Of a function that every call leaves by its first instruction: that. Nothing is to be kept then,
 * and of two programs at one place it is not known which runs first. */
static const struct fay_exit *exit_at_begin(const struct fay_point *point)
{
	for (size_t i = 0; i < point->flow->exit_count; i++) {
		const struct fay_exit *exit = &point->flow->exits[i];

		if (exit->at == point->function.address)
			return exit->conditional || exit->doubt ? NULL : exit;
	}
	return NULL;
}

/* At all exits, and at the entry if calls are to be kept. */
static bool add_ends(struct finder *finder, const struct fay_point *point, char why[FAY_REASON_MAX])
{
	const struct fay_flow_program program = { .context = &finder->text,
						  .read = fay_text_reader };
	const struct fay_plan *plan = finder->plan;
	const struct fay_flow *flow = point->flow;
	uint32_t fields = fields_of(plan, point);
	uint64_t start, end;
	bool kept;

	if (!flow || !flow->exit_count) /* what was said of it holds for traps, too */
		return *why = 0, false;
	kept = needs_begin(point, fields);
	if (point->function.guessed || flow->splits || (kept && point->stack_moves) ||
	    fay_target_place(plan->target, point->function.address, &start, &end) == FAY_PLACE_PART)
		return *why = 0, false;
	if (flow->exit_count > plan->options.traps)
		return snprintf(why, FAY_REASON_MAX, "has more than %u exits",
				plan->options.traps) < 0;
	if (!fay_flow_unchanged(&program, flow))
		return snprintf(why, FAY_REASON_MAX, "has changed since its exits were found") < 0;
	if (!fay_unled_is_code(plan, &finder->text, flow))
		return snprintf(why, FAY_REASON_MAX, "may have data in it") < 0;
	if (kept && exit_at_begin(point))
		return add_end(finder, point, exit_at_begin(point), false, fields, why);
	if (kept && !add_place(finder, point, FAY_TRAP_CALL))
		return snprintf(why, FAY_REASON_MAX, "has no room for a trap at its entry") < 0;
	for (size_t i = 0; i < flow->exit_count; i++)
		if (!add_end(finder, point, &flow->exits[i], kept, fields, why))
			return false;
	return true;
}

static void find_ends(struct finder *finder, const struct fay_point *point)
{
	struct fay_plan *plan = finder->plan;
	char *reason = plan->skipped[point->skipped - 1].reason, why[FAY_REASON_MAX] = "";
	size_t first = plan->trap_count, used = strlen(reason);

	if (add_ends(finder, point, why))
		return;
	plan->trap_count = first;
	if (*why)
		snprintf(reason + used, sizeof(plan->skipped->reason) - used,
			 "; nor by traps in the kernel, since it %s", why);
}

int fay_traps_find(struct fay_plan *plan, const struct fay_zones *present,
		   const struct fay_maps *maps, int memory)
{
	struct finder finder = { .plan = plan,
				 .present = present,
				 .maps = maps,
				 .text = { .present = present, .memory = memory } };

	size_t most = plan->options.trap_functions, functions = 0;

	if (!most || !fay_plan_any_point(plan))
		most = plan->point_count;
	for (size_t i = 0; i < plan->point_count && !finder.no_memory && functions <= most; i++) {
		const struct fay_point *point = &plan->points[i];
		size_t before = plan->trap_count;

		if (point->usable || !point->skipped || point->skipped > plan->skipped_count ||
		    !is_allowed(plan, point))
			continue;
		if (is_of_place(plan, point))
			add_place(&finder, point, FAY_TRAP_PLACE);
		else if (is_of_ends(plan, point))
			find_ends(&finder, point);
		functions += plan->trap_count != before;
	}
	fay_program_text_deinit(&finder.text);
	return finder.no_memory ? -1 : 0;
}
