/* SPDX-License-Identifier: MIT */
/*
 * Policies: what an operator allows beyond what is proved. docs/policy.md is the manual.
 *
 * A policy file has one `name = value` a line; '#' begins a comment. A name that is not known, a value that does not parse, or a name given twice is an
 * error with its line: a misspelt limit must not silently be no limit.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fay/verify.h"

#define LINE_MAX_BYTES 1024

void fay_policy_default(struct fay_policy *policy)
{
	memset(policy, 0, sizeof(*policy));
	policy->max_instructions = 1000000;
	policy->max_stack = 4096;
	policy->max_local = FAY_IMAGE_MAX_LOCAL;
	policy->max_global = FAY_IMAGE_MAX_GLOBAL;
	policy->allow_helpers = ((uint64_t)1 << FAY_HELPER_COUNT) - 1;
	policy->allow_vectors = true;
	policy->solver_ms = 2000;
	policy->total_ms = 30000;
}

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

static bool parse_bool(const char *text, bool *value)
{
	*value = !strcmp(text, "yes");
	return *value || !strcmp(text, "no");
}

/* A list of names or "none". */
static bool parse_helpers(char *text, uint64_t *mask)
{
	char *rest = NULL;

	*mask = 0;
	if (!strcmp(text, "none"))
		return true;
	for (char *word = strtok_r(text, " \t,", &rest); word; word = strtok_r(NULL, " \t,", &rest)) {
		unsigned helper = 0;

		while (fay_helper_name(helper) && strcmp(fay_helper_name(helper), word))
			helper++;
		if (!fay_helper_name(helper))
			return false;
		*mask |= (uint64_t)1 << helper;
	}
	return true;
}

static bool parse_patterns(char *text, struct fay_policy *policy)
{
	char *rest = NULL;

	for (char *word = strtok_r(text, " \t,", &rest); word; word = strtok_r(NULL, " \t,", &rest)) {
		if (policy->pattern_count == sizeof(policy->patterns) / sizeof(*policy->patterns) ||
		    strlen(word) >= FAY_IMAGE_MAX_STRING)
			return false;
		strcpy(policy->patterns[policy->pattern_count++], word);
	}
	return policy->pattern_count > 0;
}

static bool parse_speculation(const char *text, bool *confined)
{
	*confined = !strcmp(text, "confined");
	return *confined || !strcmp(text, "unrestricted");
}

static bool parse_ms(const char *text, uint32_t *ms)
{
	uint64_t number;

	if (!parse_number(text, &number) || !number || number > UINT32_MAX)
		return false;
	*ms = (uint32_t)number;
	return true;
}

static const char *const names[] = {
	"max_instructions", "max_stack",     "max_local",	"max_global",  "solver_ms",   "total_ms",
	"allow_helpers",    "allow_vectors", "allow_rdtsc",	"speculation", "tracepoints",
};
#define NAME_COUNT (sizeof(names) / sizeof(*names))

static bool set(struct fay_policy *policy, size_t name, char *value)
{
	switch (name) {
	case 0:
		return parse_number(value, &policy->max_instructions);
	case 1:
		return parse_number(value, &policy->max_stack);
	case 2:
		return parse_number(value, &policy->max_local);
	case 3:
		return parse_number(value, &policy->max_global);
	case 4:
		return parse_ms(value, &policy->solver_ms);
	case 5:
		return parse_ms(value, &policy->total_ms);
	case 6:
		return parse_helpers(value, &policy->allow_helpers);
	case 7:
		return parse_bool(value, &policy->allow_vectors);
	case 8:
		return parse_bool(value, &policy->allow_rdtsc);
	case 9:
		return parse_speculation(value, &policy->speculation_confined);
	case 10:
		return parse_patterns(value, policy);
	}
	return false;
}

static char *trim(char *text)
{
	text += strspn(text, " \t\r\n");
	size_t length = strlen(text);
	while (length && strchr(" \t\r\n", text[length - 1]))
		text[--length] = 0;
	return text;
}

/* NULL: fine. Otherwise what is wrong with the line; *about is then the name it is about, in `line`, or NULL. */
static const char *read_line(char *line, struct fay_policy *policy, bool seen[NAME_COUNT], const char **about)
{
	line[strcspn(line, "#")] = 0;
	char *name = trim(line), *equals = strchr(name, '=');

	if (!*name)
		return NULL;
	if (!equals)
		return "expected `name = value`";
	*equals = 0;
	name = trim(name);
	*about = name;
	for (size_t i = 0; i < NAME_COUNT; i++) {
		if (strcmp(names[i], name))
			continue;
		if (seen[i])
			return "the name is given twice";
		seen[i] = true;
		return set(policy, i, trim(equals + 1)) ? NULL : "the value does not fit the name";
	}
	return "unknown name";
}

int fay_policy_read(const char *path, struct fay_policy *policy, char *message, size_t message_size)
{
	char line[LINE_MAX_BYTES];
	bool seen[NAME_COUNT] = { false };
	FILE *file = fopen(path, "re");
	unsigned number = 0;

	fay_policy_default(policy);
	if (!file) {
		snprintf(message, message_size, "%s: %s", path, strerror(errno));
		return -1;
	}
	while (fgets(line, sizeof(line), file)) {
		const char *wrong = NULL, *about = NULL;

		number++;
		if (!strchr(line, '\n') && !feof(file))
			wrong = "the line is too long";
		else
			wrong = read_line(line, policy, seen, &about);
		if (wrong) {
			snprintf(message, message_size, "%s:%u: %s%s%s%s", path, number, wrong, about ? " (`" : "", about ? about : "",
				 about ? "`); docs/policy.md has the names" : "");
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
