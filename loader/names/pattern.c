/* SPDX-License-Identifier: MIT */
/*
 * Patterns: "module!function", each side a glob as fnmatch(3) knows it. Most patterns are plain
 * names or have a literal prefix, and an object has tens of thousands of symbols, so those cases
 * are decided before fnmatch is asked.
 *
 * A function may also be named as the source has it, "shop::Cart::add" of C++. What a symbol is
 * called there, whoever uses the loader says: it finds no more than functions of the module that
 * the pattern names, which are all looked at as any other.
 */
#include <fnmatch.h>
#include <string.h>

#include "target.h"

static int copy_part(const char *pattern, const char *from, size_t length, char to[256],
		     const char *what, struct fay_error *error)
{
	if (!length)
		return fay_error_set(error, FAY_E_USAGE,
				     "pattern `%.300s`: no %s name %s '!'; write module!function",
				     pattern, what, *what == 'm' ? "before" : "after");
	if (length > 255)
		return fay_error_set(error, FAY_E_USAGE,
				     "pattern: the %s name is longer than 255 bytes", what);
	memcpy(to, from, length);
	to[length] = 0;
	return FAY_OK;
}

/* C++ has functions `operator!` and `operator!=`. */
static bool is_operator(const char *function, const char *bang)
{
	return bang - function >= 8 && !memcmp(bang - 8, "operator", 8);
}

int fay_pattern_split(const char *pattern, char module[256], char function[256],
		      struct fay_error *error)
{
	const char *bang = strchr(pattern, '!'), *other = bang ? strchr(bang + 1, '!') : NULL;
	int code;
	if (!*pattern)
		return fay_error_set(error, FAY_E_USAGE,
				     "the pattern is empty; write module!function");
	if (!bang) {
		strcpy(module, "*");
		return copy_part(pattern, pattern, strlen(pattern), function, "function", error);
	}
	if (other && (!is_operator(bang + 1, other) || strchr(other + 1, '!')))
		return fay_error_set(
			error, FAY_E_USAGE,
			"pattern `%.300s` has more than one '!'; write module!function", pattern);
	code = copy_part(pattern, pattern, (size_t)(bang - pattern), module, "module", error);
	if (code)
		return code;
	return copy_part(pattern, bang + 1, strlen(bang + 1), function, "function", error);
}

static fay_names_reader *source_names;

void fay_names_read_by(fay_names_reader *reader)
{
	source_names = reader;
}

void fay_glob_init(struct fay_glob *glob, const char *text)
{
	size_t length = strlen(text);
	glob->text = text;
	glob->prefix = strcspn(text, "*?[\\");
	glob->exact = !text[glob->prefix];
	glob->all = !strcmp(text, "*");
	glob->source = strstr(text, "::") || (length && text[length - 1] == ')');
}

static bool matches_symbol(const struct fay_glob *glob, const char *name, size_t length)
{
	char copy[4096];
	if (glob->all)
		return true;
	if (glob->exact)
		return length == glob->prefix && !memcmp(name, glob->text, length);
	if (length < glob->prefix || memcmp(name, glob->text, glob->prefix) ||
	    length >= sizeof(copy))
		return false;
	if (!strcmp(glob->text + glob->prefix, "*"))
		return true;
	memcpy(copy, name, length);
	copy[length] = 0;
	return !fnmatch(glob->text, copy, 0);
}

bool fay_glob_match(const struct fay_glob *glob, const char *name, size_t length)
{
	char copy[4096];
	if (matches_symbol(glob, name, length))
		return true;
	if (!glob->source || !source_names || length >= sizeof(copy))
		return false;
	memcpy(copy, name, length);
	copy[length] = 0;
	return source_names(glob->text, copy);
}
