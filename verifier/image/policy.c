/* SPDX-License-Identifier: MIT */
/*
 * Policies: what an operator allows beyond what is proved. docs/policy.md is the manual.
 *
 * A policy file has one `name = value` a line; '#' begins a comment. A name that is not known, a
 * value that does not parse, or a name given twice is an error with its line and column: a misspelt
 * limit must not silently be no limit.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy.h"
#include "verifier/isa/isa.h"

#define LINE_MAX_BYTES 1024

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

static const struct {
	const char *name;
	reader *read;
} names[] = {
	{ "max_instructions", read_instructions },
	{ "max_stack", read_stack },
	{ "max_local", read_local },
	{ "max_global", read_global },
	{ "solver_ms", read_solver },
	{ "total_ms", read_total },
	{ "allow_helpers", read_helpers },
	{ "allow_vectors", read_vectors },
	{ "allow_rdtsc", read_rdtsc },
	{ "allow_certificates", read_certificates },
	{ "speculation", read_speculation },
	{ "tracepoints", read_patterns },
	{ "probe_kinds", read_kinds },
	{ "allow_event_fields", read_fields },
	{ "deny_instructions", read_denied },
};
#define NAME_COUNT (sizeof(names) / sizeof(*names))

/* ---- lines ---- */

static char *trim(char *text)
{
	text += strspn(text, " \t\r\n");
	size_t length = strlen(text);
	while (length && strchr(" \t\r\n", text[length - 1]))
		text[--length] = 0;
	return text;
}

/* What a file is read into. */
struct reading {
	struct fay_policy *policy;
	const struct fay_policy_keys *more; /* or NULL */
	bool seen[NAME_COUNT], more_seen[FAY_POLICY_KEYS_MAX];
};

static const char *read_more(struct reading *reading, const char *name, char *value,
			     const char **at)
{
	const struct fay_policy_keys *more = reading->more;

	for (size_t i = 0; more && i < FAY_POLICY_KEYS_MAX && more->keys[i].name; i++) {
		if (strcmp(more->keys[i].name, name))
			continue;
		if (reading->more_seen[i])
			return "the name is given twice";
		reading->more_seen[i] = true;
		*at = value;
		return more->keys[i].read(value, more->context);
	}
	return "unknown name; docs/policy.md has them all";
}

/* NULL: fine. Otherwise what is wrong with the line; *at is where. */
static const char *read_line(char *line, struct reading *reading, const char **at)
{
	line[strcspn(line, "#")] = 0;
	char *name = trim(line), *equals = strchr(name, '=');

	*at = name;
	if (!*name)
		return NULL;
	if (!equals)
		return "expected `name = value`";
	*equals = 0;
	name = trim(name);
	for (size_t i = 0; i < NAME_COUNT; i++) {
		if (strcmp(names[i].name, name))
			continue;
		if (reading->seen[i])
			return "the name is given twice";
		reading->seen[i] = true;
		*at = trim(equals + 1);
		return names[i].read(trim(equals + 1), reading->policy, at);
	}
	return read_more(reading, name, trim(equals + 1), at);
}

/* "FILE:LINE:COLUMN: what", the line, a caret under the column. */
static void complain(char *message, size_t size, const char *path, unsigned number_of,
		     const char *line, size_t column, const char *what)
{
	int width = (int)strcspn(line, "\r\n"), printed;

	printed = snprintf(message, size, "%s:%u:%zu: %s\n  %.*s\n  ", path, number_of, column + 1,
			   what, width, line);
	for (size_t i = 0; i <= column && printed >= 0 && (size_t)printed + 1 < size; i++)
		message[printed++] = i == column ? '^' : line[i] == '\t' ? '\t' : ' ';
	if (printed >= 0 && (size_t)printed < size)
		message[printed] = 0;
	for (char *c = message; *c; c++) /* the file's own bytes: nothing that steers a terminal */
		if ((unsigned char)*c < 0x20 && *c != '\n' && *c != '\t')
			*c = '?';
}

int fay_policy_read(const char *path, struct fay_policy *policy, char *message, size_t message_size)
{
	fay_policy_default(policy);
	return fay_policy_read_with(path, policy, NULL, message, message_size);
}

int fay_policy_read_with(const char *path, struct fay_policy *policy,
			 const struct fay_policy_keys *more, char *message, size_t message_size)
{
	char line[LINE_MAX_BYTES], copy[LINE_MAX_BYTES];
	struct reading reading = { .policy = policy, .more = more };
	FILE *file = fopen(path, "re");
	unsigned number_of = 0;

	if (!file) {
		snprintf(message, message_size, "%s: %s", path, strerror(errno));
		return -1;
	}
	while (fgets(line, sizeof(line), file)) {
		const char *wrong, *at = line;

		number_of++;
		strcpy(copy, line);
		wrong = !strchr(line, '\n') && !feof(file) ? "the line is too long"
							   : read_line(line, &reading, &at);
		if (wrong) {
			complain(message, message_size, path, number_of, copy, (size_t)(at - line),
				 wrong);
			fclose(file);
			return -1;
		}
	}
	int failed = ferror(file);
	fclose(file);
	if (failed) {
		snprintf(message, message_size, "%s: cannot read", path);
		return -1;
	}
	return 0;
}
