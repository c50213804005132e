/* SPDX-License-Identifier: MIT */
/* See memory.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "memory.h"

bool extension_mapped(uint64_t start, uint64_t end, bool write)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char *line = NULL;
	size_t room = 0;

	/* the lines are in the order of their addresses */
	while (maps && start < end && getline(&line, &room, maps) > 0) {
		uint64_t from, to;
		char r, w;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %c%c", &from, &to, &r, &w) == 4 &&
		    from <= start && start < to && r == 'r' && (w == 'w' || !write))
			start = to;
	}
	free(line);
	if (maps)
		fclose(maps);
	return start >= end;
}
