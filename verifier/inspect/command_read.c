/* SPDX-License-Identifier: MIT */
/* Images from files, for the commands. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "command.h"
#include "fay/error.h"
#include "fay/image.h"

int fay_command_read(const char *program, const char *path, uint8_t **bytes, size_t *size)
{
	struct stat stat;
	FILE *file = fopen(path, "re");

	if (!file || fstat(fileno(file), &stat)) {
		fprintf(stderr, "%s: cannot open '%s': %s\n", program, path, strerror(errno));
		if (file)
			fclose(file);
		return FAY_E_USAGE;
	}
	if (!S_ISREG(stat.st_mode)) {
		fprintf(stderr, "%s: '%s' is not a regular file\n", program, path);
		fclose(file);
		return FAY_E_USAGE;
	}
	size_t room = stat.st_size > (off_t)FAY_IMAGE_MAX_FILE ? FAY_IMAGE_MAX_FILE + (size_t)1
							       : (size_t)stat.st_size;
	*bytes = malloc(room + 1);
	if (!*bytes) {
		fprintf(stderr, "%s: out of memory\n", program);
		fclose(file);
		return FAY_E_LIMIT;
	}
	*size = fread(*bytes, 1, room, file);
	int failed = ferror(file);
	fclose(file);
	if (failed) {
		fprintf(stderr, "%s: cannot read '%s'\n", program, path);
		free(*bytes);
		*bytes = NULL;
		return FAY_E_INTERNAL;
	}
	return 0;
}
