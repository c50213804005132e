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

void fay_program_text_deinit(struct fay_program_text *text)
{
	free(text->kept);
}
