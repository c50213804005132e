/* SPDX-License-Identifier: MIT */
/*
 * Reading zones; remove.c takes them out.
 *
 * Chains. Sessions A, then B, on one entry: the program jumps to B's trampoline, B's link leads to
 * A's trampoline, A's ends in A's copy of the program's instructions. B saved A's jump as
 * `original`. When A leaves first, B inherits: B's original becomes A's original, and B's link
 * becomes where A went on: a further trampoline, or else B's own copy of the instructions (every
 * zone makes one from the program's own bytes). So every zone can be unmapped the moment no thread
 * is inside.
 *
 * Of a function that is whole within what is overwritten at its entry (`whole`), each session has
 * two parts: at the entry and in front of the exit. The first ones are linked as above, but the
 * lowest's link leads to the copy of the uppermost that has the function whole; there the
 * instructions are run, once, and the parts in front of the exit are linked in the same order,
 * uppermost first (FAY_PATCH_PART), down to a copy of the exit.
 */
#include "zone.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dispatcher/runtime/runtime.h"
#include "fay/shm.h"

#define SETTLE_ROUNDS 16u

void fay_patch_encode(const struct fay_zone_patch *patch, uint8_t jump[FAY_JUMP_BYTES])
{
	int32_t rel = (int32_t)(patch->trampoline - (patch->site + FAY_JUMP_BYTES));
	/* 0f, one byte before, and 8x */
	bool conditional = patch->kind == FAY_PATCH_REDIRECT && (patch->original[0] & 0xf0) == 0x80;

	jump[0] = conditional ? patch->original[0] : 0xe9;
	memcpy(jump + 1, &rel, 4);
	if (patch->size == FAY_HOP_BYTES) {
		jump[0] = 0xeb;
		jump[1] = (uint8_t)patch->hop;
	}
}

static int by_site(const void *a, const void *b, void *patches)
{
	const struct fay_zone_patch *all = patches;
	uint64_t x = all[*(const uint32_t *)a].site, y = all[*(const uint32_t *)b].site;

	return x < y ? -1 : x > y;
}

static bool zone_index(struct fay_zone *zone)
{
	uint32_t count = zone->header.patch_count;

	zone->by_site = malloc((count + 1) * sizeof(*zone->by_site));
	if (!zone->by_site)
		return false;
	for (uint32_t i = 0; i < count; i++)
		zone->by_site[i] = i;
	qsort_r(zone->by_site, count, sizeof(*zone->by_site), by_site, zone->patches);
	return true;
}

static void zone_deinit(struct fay_zone *zone)
{
	free(zone->patches);
	free(zone->by_site);
}

uint32_t fay_zone_first_at(const struct fay_zone *zone, uint64_t site)
{
	uint32_t low = 0, high = zone->header.patch_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (zone->patches[zone->by_site[middle]].site < site)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct fay_zone_patch *fay_zone_next_at(const struct fay_zone *zone, uint64_t site, uint32_t *at)
{
	struct fay_zone_patch *patch =
		*at < zone->header.patch_count ? &zone->patches[zone->by_site[*at]] : NULL;

	++*at;
	return patch && patch->site == site ? patch : NULL;
}

/* False: it is none, or of another version (`foreign`), or has more than `most` patches. */
static bool zone_read(const struct fay_map *map, int memory, uint32_t most, struct fay_zone *zone,
		      bool *foreign)
{
	struct fay_zone_header *header = &zone->header;
	size_t size;

	*foreign = false;
	if (pread(memory, header, sizeof(*header), (off_t)map->end) != (ssize_t)sizeof(*header))
		return false;
	*foreign = header->magic == FAY_ZONE_MAGIC && header->version != FAY_ZONE_VERSION;
	if (header->magic != FAY_ZONE_MAGIC || *foreign || header->code != map->start ||
	    header->code + header->code_size != map->end || header->data != map->end ||
	    header->patch_count > FAY_ZONE_MAX_PATCHES || header->patch_count > most)
		return false;
	size = header->patch_count * sizeof(struct fay_zone_patch);
	if (size + sizeof(*header) > header->data_size)
		return false;
	zone->patches = malloc(size ? size : 1);
	if (!zone->patches ||
	    pread(memory, zone->patches, size, (off_t)(map->end + sizeof(*header))) !=
		    (ssize_t)size ||
	    !zone_index(zone)) {
		zone_deinit(zone);
		return false;
	}
	/* anybody can make memory that looks like zones */
	for (uint32_t i = 0; i < header->patch_count; i++)
		if (zone->patches[i].size != FAY_HOP_BYTES)
			zone->patches[i].size = FAY_JUMP_BYTES;
	zone->device = map->device;
	zone->inode = map->inode;
	return true;
}

static bool may_be_zone(const struct fay_map *map)
{
	return map->permissions[2] == 'x' && !strncmp(map->name, "/memfd:" FAY_ZONE_MEMFD, 15);
}

static size_t zone_maps(const struct fay_maps *maps)
{
	size_t count = 0;

	for (size_t i = 0; i < maps->count; i++)
		count += may_be_zone(&maps->items[i]);
	return count;
}

int fay_zones_read(const struct fay_maps *maps, int memory, struct fay_zones *zones,
		   struct fay_error *error)
{
	uint32_t patches = 0;

	memset(zones, 0, sizeof(*zones));
	for (size_t i = 0; i < maps->count && zones->count < FAY_ZONES_MAX; i++) {
		const struct fay_map *map = &maps->items[i];
		struct fay_zone zone = { 0 }, *grown;
		bool foreign;

		if (!may_be_zone(map))
			continue;
		if (!zone_read(map, memory, FAY_ZONES_MAX_PATCHES - patches, &zone, &foreign)) {
			zones->foreign += foreign;
			continue;
		}
		patches += zone.header.patch_count;
		grown = realloc(zones->items, (zones->count + 1) * sizeof(zone));
		if (!grown) {
			zone_deinit(&zone);
			fay_zones_deinit(zones);
			return fay_error_set(error, FAY_E_LIMIT, "out of memory");
		}
		zones->items = grown;
		zones->items[zones->count++] = zone;
	}
	return 0;
}

static bool same_zones(const struct fay_zones *one, const struct fay_zones *other)
{
	bool same = one->count == other->count && one->foreign == other->foreign;

	for (size_t i = 0; i < one->count && same; i++) {
		const struct fay_zone *a = &one->items[i], *b = &other->items[i];

		same = !memcmp(&a->header, &b->header, sizeof(a->header)) &&
		       !memcmp(a->patches, b->patches, a->header.patch_count * sizeof(*a->patches));
	}
	return same;
}

/* Who ends changes the others' records, and does not come back: what is read twice was so
 * between. */
int fay_zones_settle(pid_t pid, const struct fay_maps *maps, int memory, struct fay_zones *zones,
		     struct fay_error *error)
{
	int code = fay_zones_read(maps, memory, zones, error);
	bool same = zone_maps(maps) < 2; /* one alone has none below it */

	for (unsigned round = 0; round < SETTLE_ROUNDS && !code && !same; round++) {
		struct fay_zones now = { 0 };
		struct fay_maps again;

		code = fay_maps_read(pid, &again, error);
		if (!code) {
			code = fay_zones_read(&again, memory, &now, error);
			fay_maps_deinit(&again);
		}
		same = !code && same_zones(zones, &now);
		fay_zones_deinit(zones);
		*zones = now;
	}
	return code;
}

const struct fay_zone *fay_zones_around(const struct fay_zones *zones, uint64_t session,
					uint64_t address)
{
	for (size_t i = 0; i < zones->count; i++) {
		const struct fay_zone_header *header = &zones->items[i].header;

		if (header->session == session && address - header->code < header->code_size)
			return &zones->items[i];
	}
	return NULL;
}

void fay_zones_deinit(struct fay_zones *zones)
{
	for (size_t i = 0; i < zones->count; i++)
		zone_deinit(&zones->items[i]);
	free(zones->items);
	memset(zones, 0, sizeof(*zones));
}

void fay_zones_forget(struct fay_zones *zones, uint64_t session)
{
	size_t kept = 0;

	for (size_t i = 0; i < zones->count; i++)
		if (zones->items[i].header.session == session)
			zone_deinit(&zones->items[i]);
		else
			zones->items[kept++] = zones->items[i];
	zones->count = kept;
}

const struct fay_zone_patch *fay_zones_patch_at(const struct fay_zones *zones, uint64_t site,
						const uint8_t bytes[FAY_JUMP_BYTES])
{
	for (size_t i = 0; i < zones->count; i++) {
		uint32_t at = fay_zone_first_at(&zones->items[i], site);
		const struct fay_zone_patch *patch;

		while ((patch = fay_zone_next_at(&zones->items[i], site, &at))) {
			uint8_t jump[FAY_JUMP_BYTES];

			if (patch->kind == FAY_PATCH_PART)
				continue;
			fay_patch_encode(patch, jump);
			if (!memcmp(jump, bytes, patch->size))
				return patch;
		}
	}
	return NULL;
}

void fay_zones_uncover(const struct fay_zones *zones, uint64_t site, uint8_t bytes[FAY_JUMP_BYTES])
{
	const struct fay_zone_patch *patch;

	/* Each step goes down one patch; more steps than zones would be a cycle made by a hostile
	 * target. */
	for (size_t step = 0;
	     step < zones->count && (patch = fay_zones_patch_at(zones, site, bytes)); step++)
		memcpy(bytes, patch->original, patch->size);
}

bool fay_zones_cover(const struct fay_zones *zones, uint64_t site,
		     const uint8_t bytes[FAY_JUMP_BYTES], const uint8_t jump[FAY_JUMP_BYTES],
		     size_t size)
{
	uint8_t now[FAY_JUMP_BYTES] = { 0 };
	const struct fay_zone_patch *patch;

	memcpy(now, bytes, size);
	for (size_t step = 0; memcmp(now, jump, size) && step < zones->count &&
			      (patch = fay_zones_patch_at(zones, site, now));
	     step++)
		memcpy(now, patch->original, patch->size);
	return !memcmp(now, jump, size);
}

static const struct fay_zone *zone_of(const struct fay_zones *zones,
				      const struct fay_zone_patch *patch)
{
	for (size_t i = 0; i < zones->count; i++)
		if (patch >= zones->items[i].patches &&
		    patch < zones->items[i].patches + zones->items[i].header.patch_count)
			return &zones->items[i];
	return NULL;
}

bool fay_zones_chain(const struct fay_zones *zones, uint64_t site,
		     const uint8_t bytes[FAY_JUMP_BYTES], struct fay_zone_chain *chain)
{
	const struct fay_zone_patch *patch;
	const struct fay_zone *zone;
	uint8_t now[FAY_JUMP_BYTES];

	*chain = (struct fay_zone_chain){ 0 };
	memcpy(now, bytes, sizeof(now));
	for (size_t step = 0;
	     step <= zones->count && (patch = fay_zones_patch_at(zones, site, now)); step++) {
		chain->lowest = (struct fay_zone_patch *)patch;
		if (patch->whole && !chain->top)
			chain->top = (struct fay_zone_patch *)patch;
		memcpy(now, patch->original, patch->size);
	}
	if (!chain->top || !chain->lowest->whole)
		return false;
	zone = zone_of(zones, chain->top);
	for (uint32_t at = fay_zone_first_at(zone, site);
	     (patch = fay_zone_next_at(zone, site, &at));)
		if (patch->kind == FAY_PATCH_PART)
			chain->part = patch;
	zone = zone_of(zones, chain->lowest);
	chain->lowest_link =
		zone->header.data + sizeof(zone->header) +
		(uint64_t)((const char *)&chain->lowest->link - (const char *)zone->patches);
	return chain->part != NULL;
}
