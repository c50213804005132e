/* SPDX-License-Identifier: MIT */
/* Option values with units, and how an error ends a command. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"

bool fay_cli_duration(const char *text, uint64_t *nanoseconds)
{
	static const struct {
		const char *unit;
		double factor;
	} units[] = { { "", 1e9 }, { "s", 1e9 },      { "ms", 1e6 },   { "us", 1e3 },
		      { "ns", 1 }, { "m", 60 * 1e9 }, { "min", 60e9 }, { "h", 3600e9 } };
	char *end;
	if (!isdigit((unsigned char)text[0]) && text[0] != '.')
		return false;
	double number = strtod(text, &end);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].unit))
			continue;
		double value = number * units[i].factor;
		if (!(value >= 0 && value < 9e18))
			return false;
		*nanoseconds = (uint64_t)value;
		return true;
	}
	return false;
}

bool fay_cli_size(const char *text, uint64_t *bytes)
{
	static const struct {
		const char *unit;
		double factor;
	} units[] = { { "KB", 1e3 },   { "kB", 1e3 },      { "MB", 1e6 },        { "GB", 1e9 },
		      { "KiB", 1024 }, { "MiB", 1048576 }, { "GiB", 1073741824 } };
	char *end;
	if (!isdigit((unsigned char)text[0]))
		return false;
	double number = strtod(text, &end);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		double value = number * units[i].factor;
		if (strcmp(end, units[i].unit) || !(value >= 1 && value < 9e18))
			continue;
		*bytes = (uint64_t)value;
		return true;
	}
	return false;
}

int fay_cli_fail(const struct fay_error *error)
{
	fprintf(stderr, "fay: %s\n", error->message);
	return error->code;
}
