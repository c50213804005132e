/* SPDX-License-Identifier: MIT */
/*
 * What a policy refuses of an image before its code is looked at: sizes of state, kinds and
 * patterns of probes.
 *
 * Patterns are globs (fnmatch(3)) of module and function, on both sides: all that the image's can
 * match must be matched by one of the policy's. That is decided sign by sign, and any doubt is a
 * no. A module's glob with a slash means paths, one without means names (loader/names/modules.c);
 * one kind says nothing of the other.
 */
#include <string.h>

#include "subject.h"

struct glob {
	const char *text; /* not NUL-terminated */
	size_t size;
};
static const struct glob any = { "*", 1 };

/* Where the first of the characters of `set` is; the size if there is none. */
static size_t find(struct glob glob, const char *set)
{
	for (size_t i = 0; i < glob.size; i++)
		for (const char *c = set; *c; c++)
			if (glob.text[i] == *c)
				return i;
	return glob.size;
}

/*
 * The length of the bracket at the start of `glob`, if it ends and matches the character; else 0.
 * What is not just characters and ranges ([:alpha:], escapes) matches nothing.
 */
static size_t bracket(struct glob glob, uint8_t character)
{
	bool inverted = glob.size > 1 && (glob.text[1] == '!' || glob.text[1] == '^'), in = false;
	size_t first = 1 + inverted, i = first;

	for (; i < glob.size && (i == first || glob.text[i] != ']'); i++) {
		uint8_t low = (uint8_t)glob.text[i], high = low;

		if (glob.size - i > 2 && glob.text[i + 1] == '-' && glob.text[i + 2] != ']')
			high = (uint8_t)glob.text[i += 2];
		if (low == '[' || low == '\\' || high == '[' || high == '\\')
			return 0;
		in |= low <= character && character <= high;
	}
	return i < glob.size && in != inverted ? i + 1 : 0;
}

/*
 * How long the first sign of the policy's glob (not `*`) is, if it covers a sign of the image's;
 * else 0. `name`: that is a name, without special characters. Elsewhere `?` stands for one
 * character, and bytes over 127 may be a part of one.
 */
static size_t covers(struct glob allowed, uint8_t sign, bool name)
{
	uint8_t c = allowed.size && sign != '*' ? (uint8_t)allowed.text[0] : 0;

	if (c == '[')
		return bracket(allowed, sign);
	if (c == '\\')
		return allowed.size > 1 && (uint8_t)allowed.text[1] == sign ? 2 : 0;
	return c == '?' ? name || sign < 128 : c && c == sign;
}

/*
 * Whether glob `allowed` matches whatever glob `wanted` matches. The last `*` of `allowed` takes
 * what is left over, as in matching a name. A bracket or a backslash of `wanted`, and what follows
 * it, counts as `*`: that matches at least as much. At most 256 * 256 steps.
 */
static bool within(struct glob allowed, struct glob wanted)
{
	size_t plain = find(wanted, "[\\"), star = 0, a = 0, w = 0, taken = 0;
	bool name = find(wanted, "*?[\\") == wanted.size;

	if (allowed.size == wanted.size && !memcmp(allowed.text, wanted.text, wanted.size))
		return true;
	if (!name && find(allowed, "[\\") < allowed.size)
		return false;
	while (w < plain || (w == plain && w < wanted.size)) {
		struct glob rest = { allowed.text + a, allowed.size - a };
		size_t step = covers(rest, w < plain ? (uint8_t)wanted.text[w] : '*', name);

		if (rest.size && *rest.text == '*') {
			star = ++a;
			taken = w;
		} else if (step || star) {
			a = step ? a + step : star;
			w = step ? w + 1 : ++taken;
		} else {
			return false;
		}
	}
	while (a < allowed.size && allowed.text[a] == '*')
		a++;
	return a == allowed.size;
}

/* The function of pattern "module!function", or of "function", which is in any module. */
static struct glob split(const char *pattern, struct glob *module)
{
	struct glob all = { pattern, 0 };
	size_t bang;

	while (all.size < FAY_IMAGE_MAX_STRING && pattern[all.size])
		all.size++;
	bang = find(all, "!");
	*module = bang < all.size ? (struct glob){ pattern, bang } : any;
	return bang < all.size ? (struct glob){ pattern + bang + 1, all.size - bang - 1 } : all;
}

/* Of modules, paths are within paths, names within names, and everything within `*`. */
static bool allows(const struct fay_policy *policy, const char *pattern)
{
	struct glob module, function = split(pattern, &module), in, what;
	bool allowed = !policy->pattern_count;

	for (uint32_t k = 0; !allowed && k < policy->pattern_count && k < 32; k++) {
		what = split(policy->patterns[k], &in);
		allowed = (find(in, "/") < in.size) == (find(module, "/") < module.size);
		allowed = (within(in, any) || (allowed && within(in, module))) &&
			  within(what, function);
	}
	return allowed;
}

bool check_matches(const char *pattern, const char *name)
{
	for (; *pattern && *pattern != '*' && *pattern == *name; pattern++)
		name++;
	return *pattern == '*' || *pattern == *name;
}

struct check_refusal check_policy(const struct check_subject *subject,
				  const struct fay_policy *policy)
{
	enum fay_rule rule = FAY_RULE_NONE;

	for (uint32_t i = 0; i < subject->probe_count; i++) {
		struct check_probe probe = check_probe(subject, i);

		if (!(policy->allow_kinds >> probe.kind & 1))
			rule = FAY_RULE_POL_KIND;
		else if (!rule && !allows(policy, probe.pattern))
			rule = FAY_RULE_POL_TRACEPOINT;
	}
	if (subject->local_size > policy->max_local || subject->global_size > policy->max_global)
		rule = FAY_RULE_POL_STATE;
	return (struct check_refusal){ rule, 0, "more than the policy allows" };
}
