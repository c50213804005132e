/* SPDX-License-Identifier: MIT */
/*
 * The symbol table that was split off an object into a file of its own: Debian's -dbgsym packages
 * put it below /usr/lib/debug/.build-id, under the object's build ID. FAY_DEBUG_DIR names another
 * folder than /usr/lib/debug. A file that does not bear the same build ID is not believed.
 */
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "target.h"

#define BUILD_ID_MAX 64

static bool debug_path(const uint8_t *id, size_t size, char path[512])
{
	const char *folder = getenv("FAY_DEBUG_DIR");
	int used = snprintf(path, 512, "%s/.build-id/%02x/",
			    folder && *folder ? folder : "/usr/lib/debug", id[0]);
	if (used < 0 || (size_t)used + 2 * size + sizeof(".debug") > 512)
		return false;
	for (size_t i = 1; i < size; i++)
		used += snprintf(path + used, 512 - (size_t)used, "%02x", id[i]);
	snprintf(path + used, 512 - (size_t)used, ".debug");
	return true;
}

void fay_object_open_debug(struct fay_object *object, Elf *elf)
{
	const void *id, *other;
	char path[512];
	ssize_t size = dwelf_elf_gnu_build_id(elf, &id);
	if (size < 2 || size > BUILD_ID_MAX || !debug_path(id, (size_t)size, path))
		return;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	Elf *debug = elf_begin(fd, ELF_C_READ, NULL);
	if (debug && elf_kind(debug) == ELF_K_ELF &&
	    dwelf_elf_gnu_build_id(debug, &other) == size && !memcmp(id, other, (size_t)size)) {
		object->debug_fd = fd;
		object->debug_elf = debug;
		return;
	}
	elf_end(debug);
	close(fd);
}
