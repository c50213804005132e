/* SPDX-License-Identifier: MIT */
/*
 * What the runtime in the target has to know to read the stack that a thread runs on without a
 * system call (dispatcher/runtime/stacks.c, docs/decisions/0024-own-stack.md): where the initial
 * stack is, and where in a thread's control block glibc notes that thread's stack. Nothing here has
 * to succeed: what is not found is read by system calls.
 */
#include "install_private.h"

#include <string.h>

#include "dispatcher/runtime/runtime.h"
#include "loader/process/process.h"

#define PAGE 4096u
#define NOTED_WORDS 3u  /* address, size, size of the guard */
#define NOTED_FROM 0x80 /* before that the ABI and glibc have other things */

/* As it is now. It only grows, downwards; what a program has made inaccessible of it is a mapping
 * of its own. */
static void find_main_stack(pid_t pid, uint64_t begin, struct fay_runtime_config *config)
{
	const struct fay_map *map;
	struct fay_maps maps;

	if (!begin || fay_maps_read(pid, &maps, NULL))
		return;
	map = fay_maps_find(&maps, begin);
	if (map && !strcmp(map->name, "[stack]") && map->permissions[0] == 'r' &&
	    map->permissions[3] == 'p') {
		config->main_stack = map->start;
		config->main_stack_end = map->end;
	}
	fay_maps_deinit(&maps);
}

/* What glibc notes of its own threads, and of the first: where that one's stack began, for a size,
 * and nothing else (struct pthread: stackblock, stackblock_size, guardsize). */
static bool is_noted_stack(const uint64_t words[NOTED_WORDS], uint64_t end, uint64_t begin)
{
	if (!words[0])
		return begin && words[1] == begin && !words[2];
	return words[0] % PAGE == 0 && words[2] % PAGE == 0 && words[2] && words[0] < end &&
	       words[1] == end - words[0] && words[2] < words[1];
}

/* The offset in the control block at fs_base; 0: there is none. */
static uint64_t find_noted(const struct fay_stop *stop, uint64_t fs_base, uint64_t begin)
{
	uint64_t words[PAGE / 8], end = (fs_base | (PAGE - 1)) + 1, size = end - fs_base;

	if (fs_base % 8 || fay_stop_read(stop, fs_base, words, size) || words[0] != fs_base ||
	    size < 3 * sizeof(words[0]) || words[2] != fs_base)
		return 0;
	for (uint64_t i = NOTED_FROM / 8; i + NOTED_WORDS <= size / 8; i++)
		if (is_noted_stack(words + i, end, begin))
			return i * 8;
	return 0;
}

/* Whether some probe reads the program's memory. */
static bool reads_memory(const struct fay_layout *layout)
{
	for (uint32_t i = 0; i < layout->slot_count; i++)
		if (layout->slots[i].helper == FAY_HELPER_TRY_READ)
			return true;
	return false;
}

void fay_install_stacks(struct fay_install *install, const struct fay_stop *stop)
{
	const struct fay_runtime_header *header = (const void *)fay_runtime_blob;
	uint64_t begin = fay_process_stack_begin(stop->pid);
	struct fay_runtime_config found = { 0 };

	if (!reads_memory(&install->plan->verdict->layout))
		return;
	find_main_stack(stop->pid, begin, &found);
	for (size_t i = 0; install->plan->thread_pointer && i < stop->count && !found.stack_noted;
	     i++)
		if (!stop->threads[i].gone && stop->threads[i].stopped)
			found.stack_noted =
				find_noted(stop, stop->threads[i].registers.fs_base, begin);
	for (size_t i = 0; i < install->plan->zone_count; i++) {
		struct fay_runtime_config *config =
			(void *)(install->plan->zones[i].code + header->config);

		config->main_stack = found.main_stack;
		config->main_stack_end = found.main_stack_end;
		config->stack_noted = found.stack_noted;
	}
}
