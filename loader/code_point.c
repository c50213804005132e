/* SPDX-License-Identifier: MIT */
/* The trampolines in a zone: one for each point, or a body that many share and their stubs; each with its displaced instructions and the record of its patch. */
#include "session.h"

#include <stdio.h>
#include <string.h>


static uint64_t hook_address(const struct fay_zone_plan *zone, enum fay_hook hook)
{
	const struct fay_runtime_header *header = (const void *)fay_runtime_blob;

	switch (hook) {
	case FAY_HOOK_FIND_OBJECT: return zone->address + header->find_object;
	case FAY_HOOK_FIND_FDE: return zone->address + header->find_fde;
	case FAY_HOOK_LONGJMP: return zone->address + header->longjmp;
	case FAY_HOOK_MODULES: return zone->address + header->modules;
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
		probes[i].size = session->dispatch.size[point->probes[i]];
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
		.go = point->go,
		.cost = session->options.costs ? place_cost(session, point) : 0,
		.probes = probes,
		.probe_count = point->probe_count,
	};
}

static bool same_probes(const struct fay_point *a, const struct fay_point *b)
{
	return a->probe_count == b->probe_count && a->careful == b->careful && a->go == b->go && (!a->probe_count || !memcmp(a->probes, b->probes, a->probe_count * sizeof(*a->probes)));
}

/* Finds the sets of probes that many points of the zone have. There are few sets; those beyond the room for them have trampolines of their own. */
void fay_zone_count_sets(const struct fay_session *session, struct fay_zone_plan *zone)
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

const struct fay_shared_set *fay_zone_set_of(const struct fay_zone_plan *zone, const struct fay_point *point)
{
	for (size_t k = 0; k < zone->set_count; k++)
		if (zone->sets[k].chosen && !point->hook && same_probes(zone->sets[k].model, point))
			return &zone->sets[k];
	return NULL;
}

bool fay_zone_write_shared(struct fay_session *session, struct fay_zone_plan *zone)
{
	for (size_t k = 0; k < zone->set_count; k++) {
		struct fay_trampoline_probe probes[FAY_IMAGE_MAX_PROBES];
		struct fay_trampoline_spec spec = spec_of_probes(session, zone, zone->sets[k].model, probes);

		if (!zone->sets[k].chosen)
			continue;
		if (!fay_shared_emit(&spec, zone->code + zone->code_size, zone->capacity - zone->code_size, &zone->sets[k].body))
			return false;
		session->shared_points += zone->sets[k].points;
		zone->code_size = fay_round_up(zone->code_size + zone->sets[k].body.size, 64);
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
						.kind = point->hook && point->hook != FAY_HOOK_MODULES ? FAY_PATCH_HOOK : FAY_PATCH_PLACE,
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
bool fay_zone_write_point(struct fay_session *session, struct fay_zone_plan *zone, struct fay_point *point,
			uint64_t link_slot, char reason[FAY_REASON_MAX])
{
	struct fay_trampoline_probe probes[FAY_IMAGE_MAX_PROBES];
	struct fay_trampoline_spec spec = spec_of_probes(session, zone, point, probes);
	const struct fay_shared_set *set = fay_zone_set_of(zone, point);
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
	point->shared = set != NULL;
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
	if (fay_rseqs_touch(&session->rseqs, point->site, point->back + last.length)) {
		snprintf(reason, FAY_REASON_MAX, "has a restartable sequence (rseq) within its first instructions, which cannot run elsewhere");
		return false;
	}
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
	zone->code_size = fay_round_up(zone->code_size + before + made.size, 16);
	return true;
}
