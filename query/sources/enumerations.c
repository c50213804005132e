/* SPDX-License-Identifier: MIT */
/* Values that have names: of system calls' arguments, and what a query calls them. */
#include "sources.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <linux/falloc.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <asm/prctl.h>

#define CONSTANT(name) { #name, name, -1 },
#define KERNEL(name, number) { #name, number, -1 },
#define FLAG(name) { #name, name, name },
#define NUMBER(name, number) { #name, number, number },
#define CHOICE(mask, name) { #name, name, mask },
#define COUNT(...) (sizeof((struct item[]){ __VA_ARGS__ }) / sizeof(struct item))

struct item {
	const char *name;
	int64_t value, mask;
};

#define VALUES(set, what, how, items_)                                                             \
	static const struct fay_enumeration set = {                                                \
		.name = what, .rest = how, .count = COUNT(items_), .items = { items_ }             \
	};
#include "syscall_values.def"

#define CASE(value, set) { value, &set },
#define CASES(set, what, other, cases_)                                                            \
	static const struct fay_enumeration set = {                                                \
		.name = what,                                                                      \
		.by = &other,                                                                      \
		.cases = (const struct fay_enumeration_case[]){ cases_ },                          \
		.case_count = sizeof((struct fay_enumeration_case[]){ cases_ }) /                  \
			      sizeof(struct fay_enumeration_case)                                  \
	};
#include "syscall_options.def"
#undef CASES
#undef VALUES

static const struct fay_enumeration pointers = { .name = "pointer", .rest = FAY_REST_HEX };

const struct fay_enumeration *const fay_pointers = &pointers;
const struct fay_enumeration *const fay_syscall_errors = &errors, *const fay_syscall_modes = &octal;

static const struct {
	const char *call, *argument;
	const struct fay_enumeration *values;
} arguments[] = {
#define ARGUMENT(call, name, set) { call, name, &set },
#include "syscall_values.def"
};

const struct fay_enumeration *fay_syscall_values(const char *call, const char *argument)
{
	for (size_t i = 0; i < sizeof(arguments) / sizeof(arguments[0]); i++)
		if (!fnmatch(arguments[i].argument, argument, 0) &&
		    !fnmatch(arguments[i].call, call, 0))
			return arguments[i].values;
	return NULL;
}

/* --- what a query calls them --- */

static bool find_constant(const struct fay_enumeration *enumeration, const char *name,
			  int64_t *value)
{
	for (uint32_t i = 0; i < enumeration->count; i++) {
		*value = enumeration->items[i].value;
		if (strcmp(enumeration->items[i].name, name) == 0)
			return true;
	}
	return false;
}

/* What has no name is written as it is shown. */
static bool read_number(const struct fay_enumeration *enumeration, const char *text, int64_t *value)
{
	char *end;
	errno = 0;
	*value = (int64_t)strtoull(text, &end, 0);
	return enumeration->rest != FAY_REST_DECIMAL && *text >= '0' && *text <= '9' && !*end &&
	       !errno;
}

static bool no_constant(struct fay_checked *checked, const struct fay_node *at,
			const struct fay_enumeration *enumeration, const char *name)
{
	struct fay_query *query = checked->exprs.query;
	const char **names = fay_query_alloc(query, (enumeration->count + 1) * sizeof(*names));
	for (uint32_t i = 0; names && i < enumeration->count; i++)
		names[i] = enumeration->items[i].name;
	if (!names)
		return false;
	const char *hint = fay_query_did_you_mean(query, name, names, enumeration->count);
	return fay_query_fail(query, FAY_E_USAGE, at->span,
			      enumeration->type ? "`enum %s` has no constant `%s`%s"
						: "the %s have no `%s`%s",
			      enumeration->name, name, hint) != NULL;
}

/* Names of one set, several with "|" between them; false: `part` is none, or there is no memory. */
static bool read_names(struct fay_query *query, const struct fay_enumeration *enumeration,
		       const char *names, int64_t *value, const char **unknown)
{
	char *copy = fay_query_copy(query, names, strlen(names)), *rest = NULL;
	bool joined = enumeration->rest != FAY_REST_DECIMAL; /* flags, several of them */
	int64_t all = 0;
	*unknown = copy;
	if (!copy)
		return false;
	for (char *part = joined ? strtok_r(copy, "|", &rest) : copy; part;
	     part = joined ? strtok_r(NULL, "|", &rest) : NULL) {
		*unknown = part;
		if (!find_constant(enumeration, part, value) &&
		    !read_number(enumeration, part, value))
			return false;
		all |= *value;
	}
	*value = all;
	return true;
}

bool fay_check_enumerator(struct fay_checked *checked, const struct fay_node *at,
			  const struct fay_enumeration *enumeration, const char *name,
			  int64_t *value)
{
	struct fay_query *query = checked->exprs.query;
	const char *unknown = NULL;
	/* what another argument decides has the names of each case */
	for (uint32_t i = 0; i < enumeration->case_count; i++)
		if (read_names(query, enumeration->cases[i].values, name, value, &unknown))
			return true;
	if (!enumeration->case_count && read_names(query, enumeration, name, value, &unknown))
		return true;
	return unknown && no_constant(checked, at, enumeration, unknown);
}
