/* SPDX-License-Identifier: MIT */
/* What was found out about this machine, and what it is found by. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "process/process.h"

#include "kernel.h"

void fay_doctor_found(struct finding *finding, bool ok, const char *format, ...)
{
	va_list args;
	finding->ok = ok;
	va_start(args, format);
	vsnprintf(finding->why, sizeof(finding->why), format, args);
	va_end(args);
}

const char *fay_doctor_first_line(const char *path, char *buffer, size_t size)
{
	FILE *file = fopen(path, "re");
	if (!file)
		return NULL;
	errno = 0;
	char *line = fgets(buffer, (int)size, file);
	int code = errno;
	fclose(file);
	errno = code;
	if (line)
		line[strcspn(line, "\n")] = 0;
	return line;
}

uint64_t fay_doctor_status_value(const char *key, int base)
{
	char line[128];
	return fay_process_status(0, key, line) ? strtoull(line + strlen(key), NULL, base) : 0;
}

bool fay_doctor_has_capability(unsigned capability)
{
	return fay_doctor_status_value("CapEff:", 16) >> capability & 1;
}
