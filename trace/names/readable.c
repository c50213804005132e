/* SPDX-License-Identifier: MIT */
/* C++ and Rust names as people write them. Shown on terminals only: results for programs keep the
 * symbol's name. */
#include <stdlib.h>
#include <string.h>

#include "names.h"
#include "process/process.h"

static const char *copy_of(char *text, size_t length, char *buffer, size_t size)
{
	bool cut = length >= size;
	if (cut)
		length = size - 4;
	memcpy(buffer, text, length);
	memcpy(buffer + length, cut ? "..." : "", cut ? 4 : 1);
	free(text);
	return buffer;
}

const char *fay_readable_name(const char *name, char *buffer, size_t size)
{
	char *text = fay_demangled(name);
	return text ? copy_of(text, fay_demangled_end(text), buffer, size) : name;
}

const char *fay_readable_signature(const char *name, char *buffer, size_t size)
{
	char *text = fay_demangled(name);
	if (!text)
		return name;
	size_t end = fay_demangled_end(text);
	return copy_of(text, text[end] == '(' ? strlen(text) : end, buffer, size);
}
