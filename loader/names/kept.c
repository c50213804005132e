/* SPDX-License-Identifier: MIT */
/*
 * What was read of files, for all processes that have them mapped; and whether a process has a
 * file's code unchanged, so that what was found out of the file is so there.
 */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target.h"

#define PAGE 4096u
#define ENTRIES 2048u   /* of a page map, read at once */
#define CHANGED_MAX 64u /* pages of a module that are compared */

/* What a page map says of a page (the kernel's Documentation/admin-guide/mm/pagemap.rst). */
#define PAGE_PRESENT (UINT64_C(1) << 63)
#define PAGE_SWAPPED (UINT64_C(1) << 62)
#define PAGE_OF_FILE (UINT64_C(1) << 61)

static bool is_same(const struct fay_kept_file *file, const struct stat *status)
{
	return file->device == status->st_dev && file->inode == status->st_ino &&
	       file->size == (uint64_t)status->st_size &&
	       !memcmp(&file->modified, &status->st_mtim, sizeof(file->modified)) &&
	       !memcmp(&file->changed, &status->st_ctim, sizeof(file->changed));
}

struct fay_object *fay_files_object(struct fay_files *files, const struct stat *status)
{
	for (size_t i = 0; i < files->count; i++)
		if (is_same(&files->items[i], status)) {
			files->items[i].object->users++;
			return files->items[i].object;
		}
	return NULL;
}

void fay_files_add(struct fay_files *files, struct fay_object *object)
{
	struct fay_kept_file *file;
	struct stat status;

	if (fstat(object->fd, &status))
		return;
	if (files->count < FAY_FILES_KEPT_MAX) {
		file = &files->items[files->count++];
	} else {
		file = &files->items[files->oldest];
		files->oldest = (files->oldest + 1) % FAY_FILES_KEPT_MAX;
		fay_object_close(file->object);
	}
	object->users++;
	object->kept = true;
	*file = (struct fay_kept_file){ .device = status.st_dev,
					.inode = status.st_ino,
					.size = (uint64_t)status.st_size,
					.modified = status.st_mtim,
					.changed = status.st_ctim,
					.object = object };
}

static const struct fay_range *range_at(const struct fay_module *module, uint64_t address)
{
	for (size_t k = 0; k < module->range_count; k++)
		if (address - module->ranges[k].start <
		    module->ranges[k].end - module->ranges[k].start)
			return &module->ranges[k];
	return NULL;
}

/* Behind the file's end the rest of its last page is zeros. */
static size_t read_range(const struct fay_module *module, const struct fay_range *range,
			 uint64_t address, void *to, size_t size)
{
	uint64_t offset = range->offset + (address - range->start);
	size_t got = 0, rest;

	if (size > range->end - address)
		size = range->end - address;
	while (got < size) {
		ssize_t more = pread(module->object->fd, (char *)to + got, size - got,
				     (off_t)(offset + got));

		if (more <= 0)
			break;
		got += (size_t)more;
	}
	rest = (size_t)(-(offset + got) % PAGE);
	if (got < size && got) {
		rest = rest < size - got ? rest : size - got;
		memset((char *)to + got, 0, rest);
		got += rest;
	}
	return got;
}

size_t fay_target_file_text(const struct fay_target *target, uint64_t address, void *to,
			    size_t size)
{
	const struct fay_module *module = fay_target_module_at(target, address);

	return module && module->object
		       ? read_range(module, range_at(module, address), address, to, size)
		       : 0;
}

static bool is_same_page(const struct fay_module *module, const struct fay_range *range,
			 uint64_t address, int memory)
{
	uint8_t there[PAGE], file[PAGE];

	return pread(memory, there, PAGE, (off_t)address) == PAGE &&
	       read_range(module, range, address, file, PAGE) == PAGE && !memcmp(there, file, PAGE);
}

/* A page that is not there will be the file's when it is touched. */
static bool is_files(const struct fay_module *module, const struct fay_range *range, int pages,
		     int memory, unsigned *changed)
{
	uint64_t entries[ENTRIES];

	for (uint64_t at = range->start; at < range->end; at += ENTRIES * PAGE) {
		size_t count = (size_t)((range->end - at) / PAGE);

		if (count > ENTRIES)
			count = ENTRIES;
		if (pread(pages, entries, count * sizeof(*entries),
			  (off_t)(at / PAGE * sizeof(*entries))) !=
		    (ssize_t)(count * sizeof(*entries)))
			return false;
		for (size_t i = 0; i < count; i++) {
			if (!(entries[i] & (PAGE_PRESENT | PAGE_SWAPPED)) ||
			    (entries[i] & PAGE_OF_FILE && !(entries[i] & PAGE_SWAPPED)))
				continue;
			if (++*changed > CHANGED_MAX ||
			    !is_same_page(module, range, at + i * PAGE, memory))
				return false;
		}
	}
	return true;
}

bool fay_module_text_is_files(const struct fay_module *module, int memory, int pages)
{
	bool same = module->object && !module->object->text_relocations;
	unsigned changed = 0;

	for (size_t k = 0; k < module->range_count && same; k++)
		same = is_files(module, &module->ranges[k], pages, memory, &changed);
	return same;
}
