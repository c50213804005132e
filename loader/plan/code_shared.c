/* SPDX-License-Identifier: MIT */
/* What points of a zone have in common: probes that many of them want share one trampoline; how
 * much room each needs. */
#include "plan_private.h"

#include <string.h>

#define UNGUARDED_KINDS (1u << FAY_PROBE_ENTRY | 1u << FAY_PROBE_RETURN)

/* From LOCAL. The costs lie within the slot's first bytes, which are few: FAY_POINTS_MAX of them
 * and an image's LOCAL. */
static int32_t place_cost(const struct fay_plan *plan, uint64_t index)
{
	return (int32_t)(plan->geometry.cost_offset - FAY_SLOT_HEADER +
			 index * sizeof(struct fay_place_cost));
}

/* What points with the same probes have in common. `probes` has room for all of an image. Those
 * about calls' ends are not there if these are not seen. */
struct fay_trampoline_spec fay_point_spec(const struct fay_plan *plan,
					  const struct fay_zone_plan *zone,
					  const struct fay_point *point,
					  struct fay_trampoline_probe *probes)
{
	const struct fay_runtime_header *header = (const void *)fay_runtime_blob;
	size_t count = 0;

	for (uint32_t i = 0; i < point->probe_count; i++) {
		const struct fay_probe_facts *facts =
			&plan->verdict->probes[fay_point_probe(point, i)];

		if (fay_trampoline_watches(facts) && !point->exits)
			continue;
		probes[count++] = (struct fay_trampoline_probe){
			.facts = facts,
			.code = zone->image + facts->code_offset,
			.bytes = plan->verdict->layout.bytes + facts->code_offset,
			.inlined = plan->dispatch.inlined[fay_point_probe(point, i)],
			.leaves = plan->dispatch.leaves[fay_point_probe(point, i)],
			.size = plan->dispatch.size[fay_point_probe(point, i)]
		};
	}
	return (struct fay_trampoline_spec){
		.address = zone->address + zone->code_size,
		.runtime = zone->address,
		.global = plan->shm_address + plan->geometry.global_offset,
		.hook = point->hook == FAY_HOOK_MODULES ? zone->address + header->modules : 0,
		.tid_offset = plan->tid_offset,
		.selective = plan->options.tid_count > 0,
		.thread_pointer = plan->thread_pointer,
		.unguarded = plan->dispatch.unguarded,
		.marker = point->marker != NULL,
		.operands = point->marker ? point->marker->operands : NULL,
		.operand_count = point->marker ? point->marker->operand_count : 0,
		.careful = point->careful,
		.time_shift = fay_time_shift(plan->time_multiplier),
		.go = point->go,
		.records = fay_point_records(plan, point) && point->exits,
		.wide = plan->wide_records,
		.sweeps = plan->records ? point->sweeps : FAY_SWEEP_NONE,
		.cost = plan->options.costs ? place_cost(plan, point->cost) : 0,
		.record_cost = plan->options.costs && plan->some_records
				       ? place_cost(plan, fay_point_record_cost(plan, point))
				       : 0,
		.probes = probes,
		.probe_count = count,
	};
}

static bool same_probes(const struct fay_point *a, const struct fay_point *b)
{
	bool same = a->probe_count == b->probe_count && a->careful == b->careful &&
		    a->unsure == b->unsure && a->go == b->go && a->exits == b->exits &&
		    a->sweeps == b->sweeps;

	for (uint32_t i = 0; i < a->probe_count && same; i++)
		same = fay_point_probe(a, i) == fay_point_probe(b, i);
	return same;
}

/* Finds the sets of probes that many points of the zone have. There are few sets; those beyond the
 * room for them have trampolines of their own. */
void fay_zone_count_sets(const struct fay_plan *plan, struct fay_zone_plan *zone)
{
	for (size_t i = zone->first; i < zone->last; i++) {
		const struct fay_point *point = &plan->points[i];
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
		struct fay_trampoline_spec spec =
			fay_point_spec(plan, zone, zone->sets[k].model, probes);

		zone->sets[k].chosen = zone->sets[k].points >= plan->options.shared_from &&
				       fay_shared_possible(&spec);
	}
}

/* NULL: it has trampolines of its own. */
const struct fay_shared_set *fay_zone_set_of(const struct fay_zone_plan *zone,
					     const struct fay_point *point)
{
	for (size_t k = 0; k < zone->set_count; k++)
		if (zone->sets[k].chosen && !point->hook && point->probe_count &&
		    same_probes(zone->sets[k].model, point))
			return &zone->sets[k];
	return NULL;
}

/* Of one trampoline of the point's own. */
static uint64_t own_room(const struct fay_plan *plan, const struct fay_point *point)
{
	uint64_t room = FAY_TRAMPOLINE_BASE_MAX + point->probe_count * FAY_TRAMPOLINE_PROBE_MAX +
			FAY_DISPLACED_ROOM + 32;

	if (fay_point_records(plan, point) && point->exits)
		room += FAY_TRAMPOLINE_RECORD_MAX;
	if (plan->options.costs)
		room += FAY_TRAMPOLINE_COST_MAX;
	if (point->marker)
		room += point->marker->operand_count * FAY_TRAMPOLINE_OPERAND_MAX +
			FAY_DISPLACED_ROOM;
	if (fay_plan_reads(plan, FAY_FIELD_REGISTERS))
		room += FAY_TRAMPOLINE_FRAME_MAX;
	for (uint32_t i = 0; i < point->probe_count; i++) {
		const struct fay_probe_facts *facts =
			&plan->verdict->probes[fay_point_probe(point, i)];

		if (facts->clobbered_vectors || facts->uses_mxcsr)
			return room + FAY_TRAMPOLINE_VECTORS_MAX;
	}
	return room;
}

uint64_t fay_zone_set_room(const struct fay_plan *plan, const struct fay_shared_set *set)
{
	return set->chosen ? FAY_SHARED_BODIES * (own_room(plan, set->model) + 64) : 0;
}

static uint64_t stub_room(const struct fay_plan *plan)
{
	/* A jump to another function is seen by code of its own, if there are records. */
	return plan->some_records ? FAY_TRAMPOLINE_BASE_MAX : FAY_SHARED_STUB_MAX;
}

uint64_t fay_zone_point_room(const struct fay_plan *plan, const struct fay_zone_plan *zone,
			     const struct fay_point *point)
{
	uint64_t one = (fay_zone_set_of(zone, point) ? stub_room(plan) : own_room(plan, point)) +
		       FAY_EXIT_ROOM + 16,
		 room = one + FAY_DISPLACED_ROOM;
	const struct fay_flow *flow = point->exits ? point->flow : NULL;

	if (flow)
		room += (flow->window_count + flow->block_count) * FAY_WINDOW_ROOM +
			(flow->exit_count + flow->block_count + 2) * one;
	return room;
}

bool fay_zone_write_shared(struct fay_plan *plan, struct fay_zone_plan *zone)
{
	for (size_t k = 0; k < zone->set_count; k++) {
		struct fay_trampoline_probe probes[FAY_IMAGE_MAX_PROBES];
		struct fay_trampoline_spec spec =
			fay_point_spec(plan, zone, zone->sets[k].model, probes);

		if (!zone->sets[k].chosen)
			continue;
		if (!fay_shared_emit(&spec, zone->code + zone->code_size,
				     zone->capacity - zone->code_size, &zone->sets[k].body))
			return false;
		plan->shared_points += zone->sets[k].points;
		zone->code_size = fay_round_up(zone->code_size + zone->sets[k].body.size, 64);
	}
	return true;
}

/* Which probes are copied into the trampolines, and whether the threads need to be marked as busy
 * while they run. */
void fay_dispatch_choose(const struct fay_verdict *verdict, struct fay_dispatch *dispatch)
{
	uint32_t end = verdict->layout.code_offset + verdict->layout.code_size;

	*dispatch = (struct fay_dispatch){ .unguarded = true };
	for (uint32_t i = 0; i < verdict->probe_count; i++) {
		const struct fay_probe_facts *facts = &verdict->probes[i];
		struct fay_inline judged = { 0 };

		if (facts->code_offset < end)
			judged = fay_inline_judge(verdict->layout.bytes + facts->code_offset,
						  end - facts->code_offset);
		dispatch->inlined[i] = judged.possible && !facts->aligned_stack;
		dispatch->leaves[i] = dispatch->inlined[i] && judged.leaves;
		dispatch->size[i] = dispatch->inlined[i] ? (uint32_t)judged.size : 0;
		dispatch->unguarded &= dispatch->inlined[i] && judged.reentrant &&
				       UNGUARDED_KINDS >> facts->kind & 1;
	}
}
