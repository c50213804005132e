/* SPDX-License-Identifier: MIT */
/*
 * Policies: what an operator allows beyond what is proved. docs/policy.md is the manual. Here is
 * each key; policy_file.c reads files.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "policy.h"
#include "policy_parts.h"
#include "verifier/isa/isa.h"

void fay_policy_default(struct fay_policy *policy)
{
	memset(policy, 0, sizeof(*policy));
	policy->max_instructions = 1000000;
	policy->max_stack = 4096;
	policy->max_local = FAY_IMAGE_MAX_LOCAL;
	policy->max_global = FAY_IMAGE_MAX_GLOBAL;
	policy->allow_helpers = ((uint64_t)1 << FAY_HELPER_COUNT) - 1;
	policy->allow_kinds = policy->allow_fields = UINT32_MAX;
	policy->allow_vectors = true;
	policy->solver_ms = 2000;
	policy->total_ms = 30000;
}

static uint64_t at_most(uint64_t value, uint64_t limit)
{
	return value < limit ? value : limit;
}

void fay_policy_restrict_kernel(struct fay_policy *policy)
{
	policy->max_instructions = at_most(policy->max_instructions, FAY_KERNEL_MAX_INSTRUCTIONS);
	policy->max_stack = at_most(policy->max_stack, FAY_KERNEL_MAX_STACK);
	policy->speculation_confined = true;
	policy->allow_vectors = false;
	policy->allow_kinds &= 1u << FAY_PROBE_ENTRY | 1u << FAY_PROBE_RETURN |
			       1u << FAY_PROBE_BEGIN | 1u << FAY_PROBE_END | 1u << FAY_PROBE_TIMER;
	policy->allow_fields &=
		~(uint32_t)(FAY_FIELD_RETVAL_FLOAT | FAY_FIELD_REGISTERS | FAY_FIELD_FLAGS);
}

/* ---- values: NULL, or what is wrong; *at is then the word it is about ---- */

typedef const char *reader(char *text, struct fay_policy *policy, const char **at);

static bool parse_number(const char *text, uint64_t *value)
{
	static const struct {
		const char *unit;
		uint64_t factor;
	} units[] = { { "", 1 }, { "KiB", 1024 }, { "MiB", 1048576 } };
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	unsigned long long number = strtoull(text, &end, 0);
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (strcmp(end, units[i].unit))
			continue;
		return !errno && !__builtin_mul_overflow((uint64_t)number, units[i].factor, value);
	}
	return false;
}

const char *fay_policy_number(const char *text, uint64_t *value)
{
	return parse_number(text, value) ? NULL : "expected a number, such as 4096, 0x1000 or 4KiB";
}

static const char *milliseconds(const char *text, uint32_t *ms)
{
	uint64_t value;

	if (!parse_number(text, &value) || !value || value > UINT32_MAX)
		return "expected milliseconds, 1 to 4294967295";
	*ms = (uint32_t)value;
	return NULL;
}

static const char *yes_no(const char *text, bool *value)
{
	*value = !strcmp(text, "yes");
	return *value || !strcmp(text, "no") ? NULL : "expected `yes` or `no`";
}

/* Words of a table into a mask; "none" is the empty one, "all" whatever there is. Spaces within a
 * name are written as '_'. */
static const char *names_mask(char *text, const char *(*name)(unsigned), uint64_t all,
			      uint64_t *mask, const char **at)
{
	char *rest = NULL;

	*mask = !strcmp(text, "all") ? all : 0;
	if (!strcmp(text, "none") || !strcmp(text, "all"))
		return NULL;
	for (char *word = strtok_r(text, " \t,", &rest); word;
	     word = strtok_r(NULL, " \t,", &rest)) {
		unsigned i = 0;
		bool found = false;

		for (; name(i) && !found; i++) {
			const char *n = name(i);
			size_t k = 0;

			while (n[k] && (n[k] == word[k] || (n[k] == ' ' && word[k] == '_')))
				k++;
			found = !n[k] && !word[k];
		}
		*at = word;
		if (!found)
			return "no such name";
		*mask |= (uint64_t)1 << (i - 1);
	}
	return NULL;
}

static const char *read_instructions(char *t, struct fay_policy *p, const char **at)
{
	(void)at;
	return fay_policy_number(t, &p->max_instructions);
}
static const char *read_stack(char *t, struct fay_policy *p, const char **at)
{
	(void)at;
	return fay_policy_number(t, &p->max_stack);
}
static const char *read_local(char *t, struct fay_policy *p, const char **at)
{
	(void)at;
	return fay_policy_number(t, &p->max_local);
}
static const char *read_global(char *t, struct fay_policy *p, const char **at)
{
	(void)at;
	return fay_policy_number(t, &p->max_global);
}
static const char *read_solver(char *t, struct fay_policy *p, const char **at)
{
	(void)at;
	return milliseconds(t, &p->solver_ms);
}
static const char *read_total(char *t, struct fay_policy *p, const char **at)
{
	(void)at;
	return milliseconds(t, &p->total_ms);
}
static const char *read_vectors(char *t, struct fay_policy *p, const char **at)
{
	(void)at;
	return yes_no(t, &p->allow_vectors);
}
static const char *read_rdtsc(char *t, struct fay_policy *p, const char **at)
{
	(void)at;
	return yes_no(t, &p->allow_rdtsc);
}

static const char *read_certificates(char *t, struct fay_policy *p, const char **at)
{
	(void)at;
	return yes_no(t, &p->allow_certificates);
}

static const char *read_required(char *t, struct fay_policy *p, const char **at)
{
	(void)at;
	return yes_no(t, &p->require_certificate);
}

static const char *read_helpers(char *text, struct fay_policy *policy, const char **at)
{
	return names_mask(text, fay_helper_name, ((uint64_t)1 << FAY_HELPER_COUNT) - 1,
			  &policy->allow_helpers, at);
}

static const char *read_kinds(char *text, struct fay_policy *policy, const char **at)
{
	uint64_t mask;
	const char *wrong = names_mask(text, fay_probe_kind_name, UINT32_MAX, &mask, at);

	policy->allow_kinds = (uint32_t)mask;
	return wrong;
}

static const char *read_fields(char *text, struct fay_policy *policy, const char **at)
{
	uint64_t mask;
	const char *wrong = names_mask(text, fay_event_field_name, UINT32_MAX, &mask, at);

	policy->allow_fields = (uint32_t)mask;
	return wrong;
}

static bool is_operation(const char *word)
{
	for (unsigned op = 0; op < OP_COUNT; op++)
		if (!strcmp(fay_op_table[op].name, word))
			return true;
	return false;
}

static const char *read_denied(char *text, struct fay_policy *policy, const char **at)
{
	char *rest = NULL;

	for (char *word = strtok_r(text, " \t,", &rest); word;
	     word = strtok_r(NULL, " \t,", &rest)) {
		*at = word;
		if (!is_operation(word) || strlen(word) >= sizeof(policy->denied[0]))
			return "no such instruction; docs/internals/instructions.md has their "
			       "names";
		if (policy->denied_count == sizeof(policy->denied) / sizeof(*policy->denied))
			return "too many names";
		strcpy(policy->denied[policy->denied_count++], word);
	}
	return policy->denied_count ? NULL : "expected names of instructions";
}

static const char *read_patterns(char *text, struct fay_policy *policy, const char **at)
{
	char *rest = NULL;

	for (char *word = strtok_r(text, " \t,", &rest); word;
	     word = strtok_r(NULL, " \t,", &rest)) {
		*at = word;
		if (policy->pattern_count == sizeof(policy->patterns) / sizeof(*policy->patterns))
			return "more than 32 patterns";
		if (strlen(word) >= FAY_IMAGE_MAX_STRING)
			return "the pattern is too long";
		strcpy(policy->patterns[policy->pattern_count++], word);
	}
	return policy->pattern_count ? NULL : "expected patterns, such as libc!read";
}

static const char *read_speculation(char *text, struct fay_policy *policy, const char **at)
{
	(void)at;
	policy->speculation_confined = !strcmp(text, "confined");
	return policy->speculation_confined || !strcmp(text, "unrestricted")
		       ? NULL
		       : "expected `confined` or `unrestricted`";
}

/* How the stricter of two values is found. */
enum stricter {
	LESS_64, /* the smaller number */
	LESS_32,
	BOTH_64, /* what both allow */
	BOTH_32,
	BOTH_BOOL,
	EITHER_BOOL, /* what either demands */
	EITHER_LIST, /* all instructions that either denies */
	ONE_LIST,    /* patterns, of which there cannot be two lists */
};

static const struct {
	const char *name;
	reader *read;
	size_t offset;
	enum stricter stricter;
} names[] = {
#define AT(field) offsetof(struct fay_policy, field)
	{ "max_instructions", read_instructions, AT(max_instructions), LESS_64 },
	{ "max_stack", read_stack, AT(max_stack), LESS_64 },
	{ "max_local", read_local, AT(max_local), LESS_64 },
	{ "max_global", read_global, AT(max_global), LESS_64 },
	{ "solver_ms", read_solver, AT(solver_ms), LESS_32 },
	{ "total_ms", read_total, AT(total_ms), LESS_32 },
	{ "allow_helpers", read_helpers, AT(allow_helpers), BOTH_64 },
	{ "allow_vectors", read_vectors, AT(allow_vectors), BOTH_BOOL },
	{ "allow_rdtsc", read_rdtsc, AT(allow_rdtsc), BOTH_BOOL },
	{ "allow_certificates", read_certificates, AT(allow_certificates), BOTH_BOOL },
	{ "require_certificate", read_required, AT(require_certificate), EITHER_BOOL },
	{ "speculation", read_speculation, AT(speculation_confined), EITHER_BOOL },
	{ "tracepoints", read_patterns, AT(pattern_count), ONE_LIST },
	{ "probe_kinds", read_kinds, AT(allow_kinds), BOTH_32 },
	{ "allow_event_fields", read_fields, AT(allow_fields), BOTH_32 },
	{ "deny_instructions", read_denied, AT(denied_count), EITHER_LIST },
#undef AT
};

_Static_assert(sizeof(names) / sizeof(*names) == FAY_POLICY_NAMES, "policy_parts.h");

size_t fay_policy_key(const char *name)
{
	size_t i = 0;

	while (i < FAY_POLICY_NAMES && strcmp(names[i].name, name))
		i++;
	return i;
}

const char *fay_policy_key_name(size_t key)
{
	return names[key].name;
}

const char *fay_policy_key_read(size_t key, char *value, struct fay_policy *policy, const char **at)
{
	return names[key].read(value, policy, at);
}

/* *to: of the two, if `both` say something, else *from. */
static const char *take_lists(struct fay_policy *to, const struct fay_policy *from,
			      enum stricter stricter, bool both)
{
	if (stricter == ONE_LIST) {
		if (both)
			return "an included file has patterns, too, and lists of patterns cannot "
			       "be "
			       "put together";
		memcpy(to->patterns, from->patterns, sizeof(to->patterns));
		to->pattern_count = from->pattern_count;
		return NULL;
	}
	to->denied_count = both ? to->denied_count : 0;
	for (uint32_t i = 0; i < from->denied_count; i++) {
		if (to->denied_count == sizeof(to->denied) / sizeof(*to->denied))
			return "too many instructions together with those of included files";
		memcpy(to->denied[to->denied_count++], from->denied[i], sizeof(to->denied[0]));
	}
	return NULL;
}

const char *fay_policy_key_join(size_t name, struct fay_policy *to, const struct fay_policy *from,
				bool both)
{
	void *a = (char *)to + names[name].offset;
	const void *b = (const char *)from + names[name].offset;
	uint64_t *a64 = a;
	uint32_t *a32 = a;
	bool *flag = a;

	switch (names[name].stricter) {
	case LESS_64:
		*a64 = both ? at_most(*a64, *(const uint64_t *)b) : *(const uint64_t *)b;
		break;
	case LESS_32:
		*a32 = both ? (uint32_t)at_most(*a32, *(const uint32_t *)b) : *(const uint32_t *)b;
		break;
	case BOTH_64: *a64 = (both ? *a64 : UINT64_MAX) & *(const uint64_t *)b; break;
	case BOTH_32: *a32 = (both ? *a32 : UINT32_MAX) & *(const uint32_t *)b; break;
	case BOTH_BOOL: *flag = (!both || *flag) && *(const bool *)b; break;
	case EITHER_BOOL: *flag = (both && *flag) || *(const bool *)b; break;
	default: return take_lists(to, from, names[name].stricter, both);
	}
	return NULL;
}
