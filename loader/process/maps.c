/* SPDX-License-Identifier: MIT */
/*
 * Mappings of a process, and where new ones can go. A hole is chosen near what it must reach, but
 * not where the program's heap or a stack would grow into it, and one page away from its neighbours
 * so that an overrun on either side faults.
 */
#include "process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/bisect.h"

#define MAPS_MAX 262144u
#define PAGE 4096u
#define READ_BYTES 16384u /* at once: the kernel gives a page of text each time */
#define ADDRESS_MIN 0x10000u
#define ADDRESS_MAX 0x7ffffffff000u
#define HEAP_MARGIN (1ull << 30)    /* left free above [heap], or where it will begin */
#define STACK_MARGIN (256ull << 20) /* left free below [stack] */
#define REACH ((1ull << 31) - (16u << 20))

/* Digits up to `end`, which is passed over. By hand: the table is read while the process stands
 * still, and scanf takes three times as long. */
static bool take_number(const char **at, unsigned base, char end, uint64_t *value)
{
	const char *begin = *at, *next = begin;

	*value = 0;
	for (;; next++) {
		unsigned digit = *next >= '0' && *next <= '9'   ? (unsigned)(*next - '0')
				 : *next >= 'a' && *next <= 'f' ? (unsigned)(*next - 'a') + 10
								: base;

		if (digit >= base)
			break;
		*value = *value * base + digit;
	}
	if (next == begin || next - begin > 20 || *next != end)
		return false;
	*at = next + 1;
	return true;
}

/* "START-END rwxp OFFSET MAJOR:MINOR INODE   NAME" (proc(5)), without its newline. */
static bool take_line(const char *line, struct fay_map *map)
{
	uint64_t offset, major, minor;

	memset(map, 0, sizeof(*map));
	if (!take_number(&line, 16, '-', &map->start) || !take_number(&line, 16, ' ', &map->end) ||
	    strlen(line) < 5 || line[4] != ' ')
		return false;
	memcpy(map->permissions, line, 4);
	line += 5;
	if (!take_number(&line, 16, ' ', &offset) || !take_number(&line, 16, ':', &major) ||
	    !take_number(&line, 16, ' ', &minor) || !take_number(&line, 10, ' ', &map->inode))
		return false;
	map->device = major << 32 | minor;
	line += strspn(line, " ");
	memcpy(map->name, line, strnlen(line, sizeof(map->name) - 1));
	return true;
}

static int append(struct fay_maps *maps, size_t *capacity, const struct fay_map *map)
{
	if (maps->count == MAPS_MAX)
		return FAY_E_LIMIT;
	if (maps->count == *capacity) {
		size_t more = *capacity ? 2 * *capacity : 128;
		struct fay_map *grown = realloc(maps->items, more * sizeof(*map));

		if (!grown)
			return FAY_E_LIMIT;
		maps->items = grown;
		*capacity = more;
	}
	maps->items[maps->count++] = *map;
	return 0;
}

static int read_file(const char *path, struct fay_maps *maps, struct fay_error *error)
{
	char buffer[READ_BYTES];
	size_t line_size = 0, capacity = 0;
	char *line = NULL;
	FILE *file;
	int code = 0;

	memset(maps, 0, sizeof(*maps));
	file = fopen(path, "re");
	if (!file)
		return fay_error_set(error, errno == ENOENT ? FAY_E_USAGE : FAY_E_REFUSED, "%s: %s",
				     path, errno == ENOENT ? "no such process" : strerror(errno));
	setvbuf(file, buffer, _IOFBF, sizeof(buffer));
	while (!code && getline(&line, &line_size, file) > 0) {
		struct fay_map map;

		line[strcspn(line, "\n")] = 0;
		/* in the order of their addresses, as whoever looks for one takes them to be */
		if (!take_line(line, &map) ||
		    (maps->count && map.start < maps->items[maps->count - 1].end))
			code = fay_error_set(error, FAY_E_INTERNAL, "%s: not understood: %.60s",
					     path, line);
		else if (append(maps, &capacity, &map))
			code = fay_error_set(error, FAY_E_LIMIT,
					     "%s: more than %u mappings, or out of memory", path,
					     MAPS_MAX);
	}
	free(line);
	fclose(file);
	if (code)
		fay_maps_deinit(maps);
	return code;
}

int fay_maps_read(pid_t pid, struct fay_maps *maps, struct fay_error *error)
{
	char path[80];
	pid_t thread;
	int code;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	if (!read_file(path, maps, NULL) && maps->count)
		return 0;
	thread = fay_process_thread(pid);
	if (thread && thread != pid)
		snprintf(path, sizeof(path), "/proc/%d/task/%d/maps", (int)pid, (int)thread);
	code = read_file(path, maps, error);
	if (!code && maps->count == 0)
		return fay_error_set(error, FAY_E_USAGE,
				     "process %d has no memory: it is exiting, or a kernel thread",
				     (int)pid);
	return code;
}

void fay_maps_note_heap(struct fay_maps *maps, pid_t pid)
{
	maps->heap = fay_process_heap(pid);
	for (size_t i = 0; i < maps->count; i++)
		if (!strcmp(maps->items[i].name, "[heap]"))
			maps->heap = 0;
}

void fay_maps_deinit(struct fay_maps *maps)
{
	free(maps->items);
	maps->items = NULL;
	maps->count = 0;
}

const struct fay_map *fay_maps_find(const struct fay_maps *maps, uint64_t address)
{
	size_t below = FAY_COUNT_UNTIL(maps->items, maps->count, start, address);

	return below && address < maps->items[below - 1].end ? &maps->items[below - 1] : NULL;
}

static bool within_reach(uint64_t start, uint64_t size, uint64_t low, uint64_t high)
{
	uint64_t bottom = start < low ? start : low;
	uint64_t top = start + size > high ? start + size : high;

	return top - bottom <= REACH;
}

/* The place in [first, last) for size bytes that is nearest to [low, high). */
static uint64_t place(uint64_t first, uint64_t last, uint64_t size, uint64_t low)
{
	if (last < first || last - first < size)
		return 0;
	return last <= low ? last - size : first;
}

struct search {
	uint64_t size, low, high, best, distance;
	bool anywhere;
};

static void consider(struct search *search, uint64_t first, uint64_t last)
{
	uint64_t start = place(first, last, search->size, search->low), distance;

	if (!start ||
	    (!search->anywhere && !within_reach(start, search->size, search->low, search->high)))
		return;
	distance = start < search->low ? search->low - start : start - search->low;
	if (distance < search->distance) {
		search->best = start;
		search->distance = distance;
	}
}

uint64_t fay_maps_hole(const struct fay_maps *maps, uint64_t size, uint64_t low, uint64_t high)
{
	struct search search = { .size = (size + PAGE - 1) & ~(uint64_t)(PAGE - 1),
				 .low = low,
				 .high = high,
				 .distance = UINT64_MAX,
				 .anywhere = low == 0 && high == 0 };

	if (search.anywhere)
		search.low = search.high =
			maps->count ? maps->items[maps->count - 1].start : ADDRESS_MAX;
	for (size_t i = 0; i <= maps->count; i++) {
		uint64_t first = i ? maps->items[i - 1].end : ADDRESS_MIN;
		uint64_t last = i < maps->count ? maps->items[i].start : ADDRESS_MAX;

		if (i && maps->items[i - 1].end > ADDRESS_MAX)
			break; /* vsyscall */
		if (last > ADDRESS_MAX)
			last = ADDRESS_MAX;
		first += PAGE;
		if (i && !strcmp(maps->items[i - 1].name, "[heap]"))
			first += HEAP_MARGIN;
		if (last < PAGE + ADDRESS_MIN)
			continue;
		last -= PAGE;
		if (i < maps->count && !strcmp(maps->items[i].name, "[stack]"))
			last = last > STACK_MARGIN ? last - STACK_MARGIN : 0;
		if (maps->heap >= first - PAGE && maps->heap < last) {
			consider(&search, first, maps->heap - PAGE);
			first = maps->heap + HEAP_MARGIN;
		}
		consider(&search, first, last);
	}
	return search.best;
}
