/* SPDX-License-Identifier: MIT */
/*
 * Memory that was needed to begin and is not for a while. Of LLVM some 50 MB of code were looked
 * at to compile a query; they are the file's pages, and if they are called again they are there
 * again. Pages that somebody has written to, as a debugger does for its breakpoints, stay.
 */
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "delay.h"

#define PAGE 4096u
#define AT_ONCE 512u
/* of /proc/PID/pagemap, proc_pid_pagemap(5) */
#define PRESENT (UINT64_C(1) << 63)
#define OF_FILE (UINT64_C(1) << 61)

static bool is_delayed(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const struct fay_delayed *delayed = fay_delayed;

	while (delayed->library && strcmp(delayed->library, name))
		delayed++;
	return delayed->library;
}

static void rest_pages(uintptr_t start, uintptr_t end, int pagemap)
{
	uint64_t pages[AT_ONCE];

	while (start < end) {
		size_t count = (end - start) / PAGE < AT_ONCE ? (end - start) / PAGE : AT_ONCE,
		       size = count * sizeof(*pages);

		if (pread(pagemap, pages, size, (off_t)(start / PAGE * sizeof(*pages))) !=
		    (ssize_t)size)
			return;
		for (size_t i = 0, length; i < count; i += length) {
			length = 1;
			if (~pages[i] & (PRESENT | OF_FILE))
				continue;
			while (i + length < count && !(~pages[i + length] & (PRESENT | OF_FILE)))
				length++;
			madvise((void *)(start + i * PAGE), length * PAGE, MADV_DONTNEED);
		}
		start += count * PAGE;
	}
}

static int rest_library(struct dl_phdr_info *library, size_t size, void *pagemap)
{
	(void)size;
	if (!is_delayed(library->dlpi_name))
		return 0;
	for (unsigned i = 0; i < library->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &library->dlpi_phdr[i];
		uintptr_t start = library->dlpi_addr + segment->p_vaddr;

		if (segment->p_type == PT_LOAD && (segment->p_flags & (PF_X | PF_W)) == PF_X)
			rest_pages(start & ~(uintptr_t)(PAGE - 1),
				   (start + segment->p_memsz + PAGE - 1) & ~(uintptr_t)(PAGE - 1),
				   *(int *)pagemap);
	}
	return 0;
}

void fay_delay_rest(void)
{
	int pagemap;

	if (!fay_delayed)
		return;
	pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (pagemap >= 0) {
		dl_iterate_phdr(rest_library, &pagemap);
		close(pagemap);
	}
	malloc_trim(0);
}
