/* SPDX-License-Identifier: MIT */
/*
 * Tracepoints that a policy allows. Both sides are globs (fnmatch(3)), module and function apart:
 * the loader will trace whatever the image's glob matches, so all that it can match must be matched
 * by the policy's. That is decided sign by sign, and any doubt is a no. A module's glob with a
 * slash means the module's path, one without its names (loader/names/modules.c,
 * fay_module_matches), so that one kind says nothing of the other.
 */
#include <fnmatch.h>
#include <string.h>

#include "fay/verify.h"

#define SPECIAL "*?[\\"

/*
 * Sign `at` of a glob, 0 at its end. A bracket or a backslash, and what follows it, counts as `*`:
 * that matches at least as much.
 */
static char sign(const char *glob, size_t length, size_t at)
{
	return at < length ? glob[at] : at == length && glob[at] ? '*' : 0;
}

/* Whether one sign of the policy's glob covers one sign of the image's: `?` stands for one
 * character, and bytes over 127 may be a part of one. */
static bool covers(char allowed, char wanted)
{
	return wanted != '*' &&
	       (allowed == wanted || (allowed == '?' && (unsigned char)wanted < 128));
}

/* Whether glob `allowed` matches whatever glob `wanted` matches. The last `*` of `allowed` takes
 * what is left over, as in matching a name. */
static bool within(const char *allowed, const char *wanted)
{
	size_t length = strcspn(wanted, "[\\"), a = 0, w = 0, behind_star = 0, taken = 0;
	bool star = false;

	if (!strcmp(allowed, wanted))
		return true;
	if (!wanted[strcspn(wanted, SPECIAL)])
		return !fnmatch(allowed, wanted, 0);
	if (strpbrk(allowed, "[\\"))
		return false;
	while (sign(wanted, length, w)) {
		if (allowed[a] == '*') {
			star = true;
			behind_star = ++a;
			taken = w;
		} else if (covers(allowed[a], sign(wanted, length, w))) {
			a++;
			w++;
		} else if (star) {
			a = behind_star;
			w = ++taken;
		} else {
			return false;
		}
	}
	return !allowed[a + strspn(allowed + a, "*")];
}

/* "module!function", "function" in any module; false if a part is longer than a name of an image
 * can be. */
static bool split(const char *pattern, char module[FAY_IMAGE_MAX_STRING],
		  char function[FAY_IMAGE_MAX_STRING])
{
	const char *bang = strchr(pattern, '!');
	const char *rest = bang ? bang + 1 : pattern;
	size_t length = bang ? (size_t)(bang - pattern) : 1;

	if (length >= FAY_IMAGE_MAX_STRING || strlen(rest) >= FAY_IMAGE_MAX_STRING)
		return false;
	memcpy(module, bang ? pattern : "*", length);
	module[length] = 0;
	strcpy(function, rest);
	return true;
}

/* The same of modules: paths within paths, names within names, and everything within `*`. */
static bool module_within(const char *allowed, const char *wanted)
{
	bool any = allowed[0] && !allowed[strspn(allowed, "*")];

	return any || (!strchr(allowed, '/') == !strchr(wanted, '/') && within(allowed, wanted));
}

bool fay_policy_allows(const struct fay_policy *policy, const char *pattern)
{
	char module[FAY_IMAGE_MAX_STRING], function[FAY_IMAGE_MAX_STRING];
	char allowed_module[FAY_IMAGE_MAX_STRING], allowed_function[FAY_IMAGE_MAX_STRING];

	if (!policy->pattern_count)
		return true;
	if (!split(pattern, module, function))
		return false;
	for (uint32_t k = 0; k < policy->pattern_count && k < 32; k++)
		if (split(policy->patterns[k], allowed_module, allowed_function) &&
		    module_within(allowed_module, module) && within(allowed_function, function))
			return true;
	return false;
}
