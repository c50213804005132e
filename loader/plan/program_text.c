/* SPDX-License-Identifier: MIT */
/* Reading the program's code while a session is planned: what is near was read along with what was
 * asked for before. */
#include "plan_private.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/names/target.h"

#define PAGE 4096u
#define KEPT (64u << 10) /* bytes */

/* Memory may end before `size` bytes. */
static size_t read_there(const struct fay_program_text *text, uint64_t address, void *to,
			 size_t size)
{
	size_t page = PAGE - address % PAGE;
	ssize_t got;

	if (text->target)
		return fay_target_file_text(text->target, address, to, size);
	got = pread(text->memory, to, size, (off_t)address);
	if (got < 0 && size > page)
		got = pread(text->memory, to, page, (off_t)address);
	return got < 0 ? 0 : (size_t)got;
}

static uint64_t hash_page(const uint8_t bytes[PAGE])
{
	uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a, by words of eight bytes */

	for (size_t i = 0; i < PAGE; i += 8) {
		uint64_t word;

		memcpy(&word, bytes + i, 8);
		hash = (hash ^ word) * 0x100000001b3u;
	}
	return hash;
}

/* Whole pages of what was read; what does not fit is a doubt. */
static void note_pages(struct fay_program_text *text)
{
	size_t count = text->target ? 0 : text->size / PAGE;

	if (text->page_count + count > text->page_room) {
		size_t room = 2 * (text->page_count + count);
		struct fay_page_read *grown = realloc(text->pages, room * sizeof(*grown));

		text->doubt |= !grown;
		if (!grown)
			return;
		text->pages = grown;
		text->page_room = room;
	}
	for (size_t i = 0; i < count; i++)
		text->pages[text->page_count++] =
			(struct fay_page_read){ text->at + i * PAGE,
						hash_page(text->kept + i * PAGE) };
}

size_t fay_text_now(struct fay_program_text *text, uint64_t address, void *to, size_t size)
{
	if (address - text->at < text->size && size <= text->size - (address - text->at)) {
		memcpy(to, text->kept + (address - text->at), size);
		return size;
	}
	if (!text->kept)
		text->kept = malloc(KEPT);
	if (!text->kept || size > KEPT - PAGE)
		return read_there(text, address, to, size);
	text->at = address - address % PAGE;
	text->size = read_there(text, text->at, text->kept, KEPT);
	note_pages(text);
	if (address - text->at >= text->size)
		return read_there(text, address, to, size);
	if (size > text->size - (address - text->at))
		size = text->size - (address - text->at);
	memcpy(to, text->kept + (address - text->at), size);
	return size;
}

/* A patch that overlaps what was read. Of what it has overwritten some may lie outside of that. */
static void uncover(struct fay_program_text *text, uint64_t site, uint64_t address, uint8_t *body,
		    size_t got)
{
	uint8_t now[FAY_JUMP_BYTES] = { 0 };

	if (fay_text_now(text, site, now, sizeof(now)) < FAY_HOP_BYTES)
		return;
	fay_zones_uncover(text->present, site, now);
	for (size_t i = 0; i < sizeof(now); i++)
		if (site + i - address < got)
			body[site + i - address] = now[i];
}

size_t fay_text_program(struct fay_program_text *text, uint64_t address, void *to, size_t size)
{
	size_t got = fay_text_now(text, address, to, size);

	for (size_t i = 0; i < text->present->count; i++) {
		const struct fay_zone *zone = &text->present->items[i];

		for (uint32_t k = fay_zone_first_at(zone, address - FAY_JUMP_BYTES + 1);
		     k < zone->header.patch_count; k++) {
			uint64_t site = zone->patches[zone->by_site[k]].site;

			if (site >= address + got)
				break;
			uncover(text, site, address, to, got);
		}
	}
	return got;
}

size_t fay_text_reader(void *text, uint64_t address, void *to, size_t size)
{
	return fay_text_program(text, address, to, size);
}

/* --- whether it was the program's while it was read --- */

static int by_address(const void *a, const void *b)
{
	uint64_t x = ((const struct fay_page_read *)a)->at;
	uint64_t y = ((const struct fay_page_read *)b)->at;

	return x < y ? -1 : x > y;
}

/* Pages that were code of a file then are as they were, each time they were read. */
static bool same_pages(struct fay_program_text *text, const struct fay_maps *maps)
{
	uint8_t bytes[PAGE];
	uint64_t hash = 0, at = UINT64_MAX;

	qsort(text->pages, text->page_count, sizeof(*text->pages), by_address);
	for (size_t i = 0; i < text->page_count; i++) {
		const struct fay_page_read *page = &text->pages[i];

		if (page->at != at) {
			const struct fay_map *map = fay_maps_find(maps, page->at);

			at = page->at;
			hash = page->hash;
			if (map && map->inode && !strcmp(map->permissions, "r-xp"))
				hash = pread(text->memory, bytes, PAGE, (off_t)at) == PAGE
					       ? hash_page(bytes)
					       : ~hash;
			else
				at = UINT64_MAX; /* each for itself: nothing is said of it */
		}
		if (page->hash != hash)
			return false;
	}
	return true;
}

static bool same_zones(const struct fay_zones *one, const struct fay_zones *other)
{
	if (one->count != other->count || one->foreign != other->foreign)
		return false;
	for (size_t i = 0; i < one->count; i++) {
		const struct fay_zone_header *a = &one->items[i].header;
		const struct fay_zone_header *b = &other->items[i].header;

		if (a->session != b->session || a->code != b->code || a->data != b->data ||
		    a->patch_count != b->patch_count)
			return false;
	}
	return true;
}

int fay_text_settled(struct fay_program_text *text, pid_t pid, struct fay_error *error)
{
	struct fay_zones now = { 0 };
	struct fay_maps maps;
	int code = text->target ? 0 : fay_maps_read(pid, &maps, error);
	bool same;

	if (code || text->target)
		return code;
	same = !text->doubt && same_pages(text, &maps);
	code = fay_zones_read(&maps, text->memory, &now, error);
	if (!code && (!same || !same_zones(text->present, &now))) {
		fay_error_set(error, FAY_E_LIMIT, "process %d: its code keeps changing", (int)pid);
		code = -1;
	}
	fay_zones_deinit(&now);
	fay_maps_deinit(&maps);
	return code;
}

void fay_program_text_deinit(struct fay_program_text *text)
{
	free(text->kept);
	free(text->pages);
}
