/* SPDX-License-Identifier: MIT */
/* One point's trampolines in a zone, its own or stubs of those that many share, with what they
 * overwrite, and the records of its patches. */
#include "plan_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Its address in the process; 0 none. */
static uint64_t marker_semaphore(const struct fay_function *function)
{
	const struct fay_marker *marker = function->marker;

	return marker && marker->semaphore
		       ? marker->semaphore + (function->address - marker->address)
		       : 0;
}

static struct fay_site *site_of(const struct fay_writer *writer, size_t index)
{
	return &writer->plan->sites[writer->point->first_site + index];
}

static uint64_t patch_at(const struct fay_writer *writer, size_t index, uint32_t first_patch)
{
	return writer->zone->header.data + sizeof(struct fay_zone_header) +
	       (first_patch + index) * sizeof(struct fay_zone_patch);
}

static uint64_t slot_at(const struct fay_writer *writer, size_t index, uint32_t first_patch)
{
	return patch_at(writer, index, first_patch) + offsetof(struct fay_zone_patch, link);
}

/* The records of a point's patches lie in its sites' order. */
static uint64_t link_slot_of(const struct fay_writer *writer, size_t index, uint32_t first_patch)
{
	const struct fay_site *site = site_of(writer, index);

	return site->linked || (writer->point->exits && fay_site_whole(site))
		       ? slot_at(writer, index, first_patch)
		       : 0;
}

static size_t patch_count(const struct fay_writer *writer)
{
	size_t count = 0;

	while (count < writer->point->site_count && site_of(writer, count)->kind != FAY_SITE_BLOCK)
		count++;
	return count;
}

static void note_patch(struct fay_writer *writer, struct fay_site *site, uint64_t trampoline,
		       uint64_t inner, uint64_t last)
{
	static const uint8_t kinds[] = { [FAY_SITE_PLACE] = FAY_PATCH_PLACE,
					 [FAY_SITE_EXIT] = FAY_PATCH_EXIT,
					 [FAY_SITE_REDIRECT] = FAY_PATCH_REDIRECT,
					 [FAY_SITE_HOLE] = FAY_PATCH_HOLE };

	site->patch = (struct fay_zone_patch){
		.site = site->site,
		.trampoline = trampoline,
		.inner = inner,
		.back = site->back,
		.length = site->reach,
		.size = fay_site_overwritten(site),
		.hop = site->hole ? (int8_t)(site->hole - (site->site + FAY_HOP_BYTES)) : 0,
		.displaced = last,
		.link = site->linked && site->lower ? site->lower : last,
		.linked = site->linked || (writer->point->exits && fay_site_whole(site)),
		.kind = kinds[site->kind],
		.whole = writer->point->exits && fay_site_whole(site),
		.first = writer->point->probe_count && site == site_of(writer, 0),
		.semaphore = site->kind == FAY_SITE_PLACE
				     ? marker_semaphore(&writer->point->function)
				     : 0
	};
	/* Of several sessions' short jumps, which are the same, the last one to go puts the
	 * program's bytes back. */
	memcpy(site->patch.original,
	       site->hole ? fay_site_program(writer->plan, site)
			  : fay_site_before(writer->plan, site),
	       FAY_JUMP_BYTES);
}

/* Their jumps lead to the trampolines of what leads to them. */
static void note_holes(struct fay_writer *writer)
{
	for (size_t i = 0; i < writer->point->site_count; i++) {
		struct fay_site *site = site_of(writer, i);

		if (site->kind == FAY_SITE_HOLE)
			note_patch(writer, site, site_of(writer, site->block)->patch.trampoline, 0,
				   site_of(writer, site->block)->patch.displaced);
	}
}

/* The record of the part in front of the exit of a function that is whole in its window. */
static void note_part(struct fay_writer *writer, const struct fay_site *site,
		      const struct fay_written *written)
{
	writer->part = (struct fay_zone_patch){ .site = site->site,
						.kind = FAY_PATCH_PART,
						.inner = written->inner,
						.displaced = written->copy,
						.trampoline = written->last,
						.link = site->lower_part ? site->lower_part
									 : written->last,
						.linked = site->lower_part != 0,
						.size = FAY_JUMP_BYTES };
}

static bool does_not_fit(struct fay_writer *writer)
{
	return snprintf(writer->reason, FAY_REASON_MAX,
			"needs a trampoline that does not fit (internal)") < 0;
}

/* The instructions between a site and the marker that it is for: they run first, and the trampoline
 * proper follows. */
static bool write_before(struct fay_writer *writer, struct fay_site *site)
{
	struct fay_displaced displaced;

	if (!site->back)
		return true;
	if (!fay_displace(fay_site_program(writer->plan, site), site->size, site->back, site->site,
			  fay_writer_at(writer), &displaced, writer->reason))
		return false;
	if (writer->zone->capacity - writer->zone->code_size < displaced.size)
		return does_not_fit(writer);
	site->boundary_count = 0;
	for (unsigned i = 0; i < displaced.count && displaced.map[i].from < fay_site_closed(site);
	     i++)
		fay_site_add_boundary(site, displaced.map[i].from,
				      fay_writer_at(writer) + displaced.map[i].to);
	fay_writer_note_pushed(writer, &displaced);
	/* without the jump back */
	memcpy(fay_writer_code(writer), displaced.code, displaced.size - FAY_JUMP_BYTES);
	writer->zone->code_size += displaced.size - FAY_JUMP_BYTES;
	return true;
}

/* Into the hole, or behind a stub: what is overwritten, and the jump back. A window with exits, or
 * with jumps to what has its copy, lies elsewhere. */
static bool write_displaced(struct fay_writer *writer, struct fay_site *site, uint64_t *copy)
{
	struct fay_displaced displaced;

	*copy = fay_writer_at(writer);
	if (!fay_displace(fay_site_program(writer->plan, site) + site->back,
			  site->size - site->back, site->back ? 1 : site->length,
			  site->site + site->back, *copy, &displaced, writer->reason))
		return false;
	if (writer->zone->capacity - writer->zone->code_size < displaced.size)
		return does_not_fit(writer);
	fay_writer_note_pushed(writer, &displaced);
	memcpy(fay_writer_code(writer), displaced.code, displaced.size);
	writer->zone->code_size += displaced.size;
	if (site->back)
		return true;
	site->boundary_count = 0;
	for (unsigned i = 0; i < displaced.count && displaced.map[i].from < fay_site_closed(site);
	     i++)
		fay_site_add_boundary(site, displaced.map[i].from, *copy + displaced.map[i].to);
	return true;
}

/* jmp copy, into the hole. */
static bool write_ahead(struct fay_writer *writer, uint64_t target)
{
	int32_t rel = (int32_t)(target - (fay_writer_at(writer) + FAY_JUMP_BYTES));
	uint8_t jump[FAY_JUMP_BYTES] = { 0xe9 };

	memcpy(jump + 1, &rel, 4);
	memcpy(fay_writer_code(writer), jump, sizeof(jump));
	return true;
}

/* The record, and what the runtime calls when it ends one. All of a point's patches go and come
 * together: the first one's mark is that of all. */
static bool write_watched(struct fay_writer *writer, uint64_t stub, uint32_t first_patch)
{
	static const uint32_t kinds[] = { FAY_PROBE_RETURN, FAY_PROBE_EXCEPTION };
	struct fay_zone_plan *zone = writer->zone;
	struct fay_watched watched = { .function = writer->point->function.address,
				       .out = patch_at(writer, 0, first_patch) +
					      offsetof(struct fay_zone_patch, removed) };
	uint64_t *routines[] = { &watched.returned, &watched.left };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		uint64_t shared = !writer->set ? 0
				  : i          ? writer->set->body.left
					       : writer->set->body.returned;
		size_t capacity = zone->capacity - zone->code_size, size = 0;

		writer->spec.address = fay_writer_at(writer);
		if (writer->set && !shared)
			continue;
		if (!(shared ? fay_shared_routine(shared, stub, writer->spec.address,
						  fay_writer_code(writer), capacity, &size)
			     : fay_routine_emit(&writer->spec, kinds[i], fay_writer_code(writer),
						capacity, &size)))
			return does_not_fit(writer);
		*routines[i] = size ? writer->spec.address : 0;
		zone->code_size = fay_round_up(zone->code_size + size, 16);
	}
	memcpy(zone->code + (writer->spec.watched - zone->address), &watched, sizeof(watched));
	return true;
}

/* Whether what is overwritten at the entry has to be copied as a window. */
static bool is_window(const struct fay_writer *writer, const struct fay_site *site)
{
	return writer->point->exits && !writer->point->inside &&
	       (site->exit_count || site->ends || fay_window_branches(writer, site));
}

/* The entry, or a place inside. */
static bool write_place(struct fay_writer *writer, struct fay_site *site, uint32_t first_patch)
{
	uint64_t link_slot = link_slot_of(writer, 0, first_patch),
		 part_slot =
			 site->lower_part ? slot_at(writer, patch_count(writer), first_patch) : 0;
	struct fay_zone_plan *zone = writer->zone;
	uint64_t start = fay_writer_at(writer), inner, copy = 0;
	size_t capacity, room, at, end;
	struct fay_written written;
	struct fay_trampoline made;
	bool window = is_window(writer, site), stub, fits;

	if (!write_before(writer, site))
		return false;
	capacity = zone->capacity - zone->code_size;
	at = zone->code_size;
	writer->spec.address = fay_writer_at(writer);
	writer->spec.role = FAY_ROLE_ENTRY;
	stub = writer->set && writer->set->body.entry;
	room = (link_slot ? 6 : 0) + (window ? FAY_JUMP_BYTES : FAY_DISPLACED_ROOM);
	fits = stub ? capacity > FAY_SHARED_STUB_MAX + room &&
			       fay_shared_stub(&writer->set->body, &writer->spec,
					       fay_writer_code(writer), capacity, &made)
		    : fay_trampoline_emit(&writer->spec, room, fay_writer_code(writer), capacity,
					  &made);
	if (!fits)
		return does_not_fit(writer);
	if (made.place)
		fay_zone_note_address(zone, at + made.place, false);
	inner = writer->spec.address + made.entry;
	end = fay_round_up(at + made.size + (stub ? room : 0), 16);
	zone->code_size = at + made.displaced;
	if (link_slot) { /* jmp *link(%rip) */
		int32_t rel = (int32_t)(link_slot - (fay_writer_at(writer) + 6));

		memcpy(fay_writer_code(writer), "\xff\x25", 2);
		memcpy(fay_writer_code(writer) + 2, &rel, 4);
		zone->code_size += 6;
	}
	if (window) {
		if (!link_slot)
			write_ahead(writer, zone->address + end);
		zone->code_size = end;
		writer->entry_copy = fay_writer_at(writer);
		if (!fay_window_write(writer, site, part_slot, &written))
			return false;
		note_part(writer, site, &written);
		copy = written.copy;
		zone->code_size = fay_round_up(zone->code_size, 16);
	} else {
		if (!write_displaced(writer, site, &copy))
			return false;
		zone->code_size = stub ? fay_round_up(zone->code_size, 16) : end;
	}
	writer->entry_copy = site->back ? 0 : copy;
	note_patch(writer, site, site->back ? start : inner, site->back ? inner : 0, copy);
	return !writer->spec.records || write_watched(writer, inner, first_patch);
}

/* A block is a window that nothing is written over; the jumps that lead to its copy share the
 * link. */
static bool write_block(struct fay_writer *writer, struct fay_site *block, uint32_t first_patch)
{
	uint64_t link = 0;

	for (size_t k = 0; k < writer->point->site_count && !link; k++)
		if (site_of(writer, k)->kind == FAY_SITE_REDIRECT &&
		    site_of(writer, k)->block == block->block)
			link = link_slot_of(writer, k, first_patch);
	return fay_window_write(writer, block, link, &writer->blocks[block->block]);
}

static bool write_exits(struct fay_writer *writer, uint8_t kind, uint32_t first_patch)
{
	for (size_t i = 0; i < writer->point->site_count; i++) {
		struct fay_site *site = site_of(writer, i);
		struct fay_written written;

		if (site->kind != kind)
			continue;
		if (kind == FAY_SITE_BLOCK && !write_block(writer, site, first_patch))
			return false;
		if (kind == FAY_SITE_EXIT) {
			if (!fay_window_write(writer, site,
					      site->lower ? link_slot_of(writer, i, first_patch)
							  : 0,
					      &written))
				return false;
			note_patch(writer, site, written.copy, written.inner, written.last);
		}
		writer->zone->code_size = fay_round_up(writer->zone->code_size, 16);
	}
	return true;
}

static void note_redirects(struct fay_writer *writer)
{
	for (size_t i = 0; i < writer->point->site_count; i++) {
		struct fay_site *site = site_of(writer, i);

		if (site->kind != FAY_SITE_REDIRECT)
			continue;
		if (site->block == FAY_FLOW_ENTRY)
			note_patch(writer, site, writer->entry_copy, 0, writer->entry_copy);
		else
			note_patch(writer, site, writer->blocks[site->block].copy,
				   writer->blocks[site->block].inner,
				   writer->blocks[site->block].last);
	}
}

static void add_record(struct fay_zone_plan *zone, const struct fay_zone_patch *patch)
{
	memcpy(zone->data + sizeof(zone->header) + zone->header.patch_count * sizeof(*patch), patch,
	       sizeof(*patch));
	zone->header.patch_count++;
}

/* What others lead to comes first. */
static bool write_point(struct fay_writer *writer, uint32_t first_patch)
{
	struct fay_site *place = site_of(writer, 0);

	if (!write_exits(writer, FAY_SITE_BLOCK, first_patch))
		return false;
	if (writer->point->site_count && place->kind == FAY_SITE_PLACE &&
	    !write_place(writer, place, first_patch))
		return false;
	if (!write_exits(writer, FAY_SITE_EXIT, first_patch))
		return false;
	note_redirects(writer);
	note_holes(writer);
	for (size_t i = 0; i < writer->point->site_count; i++) {
		const struct fay_zone_patch *patch = &site_of(writer, i)->patch;

		if (site_of(writer, i)->kind == FAY_SITE_BLOCK)
			continue;
		add_record(writer->zone, patch);
	}
	if (place->patch.whole)
		add_record(writer->zone, &writer->part);
	return true;
}

bool fay_zone_write_point(struct fay_plan *plan, struct fay_zone_plan *zone,
			  struct fay_point *point, char reason[FAY_REASON_MAX])
{
	struct fay_trampoline_probe probes[FAY_IMAGE_MAX_PROBES];
	struct fay_writer writer = { .plan = plan,
				     .zone = zone,
				     .point = point,
				     .set = fay_zone_set_of(zone, point),
				     .reason = reason };
	size_t blocks = point->exits ? point->flow->block_count : 0;
	bool written;

	writer.blocks = calloc(blocks + 1, sizeof(*writer.blocks));
	if (!writer.blocks)
		return false;
	writer.spec = fay_point_spec(plan, zone, point, probes);
	writer.spec.function = fay_name_hash(point->function.name);
	writer.spec.module = fay_name_hash(point->function.module);
	writer.spec.place = point->function.address;
	if (writer.spec.records)
		writer.spec.watched = zone->address + zone->watched_at +
				      zone->watched_count++ * sizeof(struct fay_watched);
	point->watched = writer.spec.watched;
	point->shared = writer.set != NULL;
	zone->code_size = fay_round_up(zone->code_size, 16);
	written = write_point(&writer, zone->header.patch_count);
	free(writer.blocks);
	return written;
}
