/* SPDX-License-Identifier: MIT */
/*
 * C++ and Rust names as people write them. Shown on terminals only: results for programs keep the
 * symbol's name, by which functions are also selected.
 */
#include <stdlib.h>
#include <string.h>

#include "output.h"

/* bytes of a name that is looked into: it comes from the traced program, and the library recurses
 * on it */
#define LONGEST 1000u

/* How often a name may refer to an earlier part of itself, or to an argument of its template: each
 * such reference can double what is printed, and with names of other machines' programs somebody
 * else chooses them. */
#define REFERENCES_MAX 24u

/* Itanium C++ ABI, chapter 3.4; in libstdc++, which LLVM brings along. status 0: done. The text is
 * malloc'ed. */
extern char *__cxa_demangle(const char *mangled, char *output, size_t *length, int *status);

/* Without the arguments: up to the bracket that opens the last ones at the outermost level, as in
 * `f<int (*)(int)>(char)`. */
static size_t without_arguments(const char *text)
{
	int depth = 0;
	size_t length = strlen(text), cut = length;
	for (size_t i = 0; i < length; i++) {
		if (text[i] == '<' || text[i] == '(') {
			if (text[i] == '(' && depth == 0 && i &&
			    strncmp(text + i, "(anonymous namespace)", 21) != 0)
				cut = i;
			depth++;
		} else if ((text[i] == '>' || text[i] == ')') && depth) {
			depth--;
		}
	}
	return cut;
}

/* Rust's names end in ::h and 16 digits that tell instances apart. */
static size_t without_hash(const char *text, size_t length)
{
	if (length > 19 && !strncmp(text + length - 19, "::h", 3) &&
	    strspn(text + length - 16, "0123456789abcdef") >= 16)
		return length - 19;
	return length;
}

/* S_, S12_, T_, T0_: chapter 5.1.10. */
static unsigned references(const char *name)
{
	unsigned count = 0;
	for (; *name; name++)
		if (*name == 'S' || *name == 'T')
			count += name[1 + strspn(name + 1,
						 "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")] == '_';
	return count;
}

const char *fay_cli_readable(const char *name, char *buffer, size_t size)
{
	int status = -1;
	if (strncmp(name, "_Z", 2) != 0 || strlen(name) > LONGEST ||
	    references(name) > REFERENCES_MAX)
		return name;
	char *text = __cxa_demangle(name, NULL, NULL, &status);
	if (text && status == 0) {
		size_t length = without_hash(text, without_arguments(text));
		bool cut = length >= size;
		if (cut)
			length = size - 4;
		memcpy(buffer, text, length);
		memcpy(buffer + length, cut ? "..." : "", cut ? 4 : 1);
		name = buffer;
	}
	free(text);
	return name;
}
