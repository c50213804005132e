/* SPDX-License-Identifier: MIT */
/*
 * The source line of a rejection, for `--source DIR`. The file's name comes from the image, that
 * is, from whoever made it: only its last component is used, only regular files in DIR itself are
 * opened, without following links, and no more than a line of what was asked for is shown.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report.h"

#define MAX_LINE 400
#define MAX_FILE ((off_t)16 << 20)

static FILE *open_source(const char *directory, const char *name)
{
	const char *slash = strrchr(name, '/');
	int dir = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -1;
	struct stat st;
	FILE *file = NULL;

	name = slash ? slash + 1 : name;
	if (dir >= 0 && *name && strcmp(name, ".") && strcmp(name, ".."))
		fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (dir >= 0)
		close(dir);
	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size <= MAX_FILE)
		file = fdopen(fd, "r");
	if (fd >= 0 && !file)
		close(fd);
	return file;
}

void fay_verdict_source(struct fay_verdict *verdict, const char *source)
{
	struct fay_rejection *r = &verdict->rejection;
	char line[MAX_LINE + 2];
	uint32_t number = 1;
	FILE *file;

	if (!verdict->arena || !r->source_file || !r->source_line)
		return;
	file = open_source(source, r->source_file);
	while (file && fgets(line, sizeof(line), file)) {
		if (number == r->source_line) {
			line[strcspn(line, "\r\n")] = 0;
			r->source_text = fay_arena_printf(verdict->arena, "%s", line);
			break;
		}
		number += strchr(line, '\n') != NULL;
	}
	if (file)
		fclose(file);
}
