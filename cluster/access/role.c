/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "access.h"

/* --- the line --- */

static bool read_number(const char *text, uint64_t max, uint64_t *value)
{
	char *end;
	errno = 0;
	unsigned long long number = strtoull(text, &end, 10);
	if (errno || *end || end == text || text[0] == '-' || !number || number > max)
		return false;
	*value = number;
	return true;
}

static int add_user(struct fay_role *role, const char *name, struct fay_error *error)
{
	errno = 0;
	const struct passwd *user = getpwnam(name);
	if (!user)
		return fay_error_set(error, FAY_E_USAGE, "there is no user '%s' on this machine",
				     name);
	if (role->user_count == FAY_ROLE_USERS_MAX)
		return fay_error_set(error, FAY_E_LIMIT, "more than %u users", FAY_ROLE_USERS_MAX);
	role->users[role->user_count++] = user->pw_uid;
	return FAY_OK;
}

static int add_program(struct fay_role *role, const char *glob, struct fay_error *error)
{
	if (role->program_count == FAY_ROLE_PROGRAMS_MAX ||
	    strlen(glob) >= sizeof(role->programs[0]))
		return fay_error_set(error, FAY_E_LIMIT,
				     "more than %u programs, or a name of more than %zu bytes",
				     FAY_ROLE_PROGRAMS_MAX, sizeof(role->programs[0]) - 1);
	strcpy(role->programs[role->program_count++], glob);
	return FAY_OK;
}

static int each_of(struct fay_role *role, char *list,
		   int (*add)(struct fay_role *role, const char *item, struct fay_error *error),
		   struct fay_error *error)
{
	char *rest = NULL;
	int result =
		*list && *list != ',' ? FAY_OK : fay_error_set(error, FAY_E_USAGE, "an empty list");
	for (char *item = strtok_r(list, ",", &rest); item && !result;
	     item = strtok_r(NULL, ",", &rest))
		result = add(role, item, error);
	return result;
}

/* `kernel`: 0 not said, 1 no, 2 yes */
static int read_word(struct fay_role *role, char *word, int *kernel, struct fay_error *error)
{
	char *value = strchr(word, '=');
	uint64_t number;
	if (value)
		*value++ = 0;
	if (value && !strcmp(word, "users"))
		return each_of(role, value, add_user, error);
	if (value && !strcmp(word, "programs"))
		return each_of(role, value, add_program, error);
	if (value && !strcmp(word, "policy") && *value && strlen(value) < sizeof(role->policy)) {
		strcpy(role->policy, value);
		return FAY_OK;
	}
	if (value && !strcmp(word, "kernel") && (!strcmp(value, "yes") || !strcmp(value, "no"))) {
		*kernel = 1 + !strcmp(value, "yes");
		return FAY_OK;
	}
	if (value && !strcmp(word, "queries") && read_number(value, UINT32_MAX, &number)) {
		role->queries = (uint32_t)number;
		return FAY_OK;
	}
	if (value && !strcmp(word, "memory") && read_number(value, UINT64_MAX >> 20, &number)) {
		role->memory = number << 20;
		return FAY_OK;
	}
	if (value && !strcmp(word, "bytes-per-second") &&
	    read_number(value, UINT32_MAX, &role->bytes_per_second))
		return FAY_OK;
	return fay_error_set(error, FAY_E_USAGE, "a role has no `%s%s%s`", word, value ? "=" : "",
			     value ? value : "");
}

int fay_role_read(char *const *words, size_t count, struct fay_role *role, struct fay_error *error)
{
	int kernel = 0;
	memset(role, 0, sizeof(*role));
	if (count < 2 || strchr(words[1], '=') || strlen(words[1]) >= sizeof(role->name))
		return fay_error_set(
			error, FAY_E_USAGE,
			"expected `role NAME [policy=FILE] [users=A,B] [programs=GLOB,GLOB] "
			"[kernel=yes|no] [queries=N] [memory=MIB] [bytes-per-second=N]`");
	strcpy(role->name, words[1]);
	for (size_t i = 2; i < count; i++)
		if (read_word(role, words[i], &kernel, error))
			return error->code;
	role->kernel = kernel ? kernel == 2 : !role->user_count && !role->program_count;
	return FAY_OK;
}

/* --- processes --- */

/* Real, effective, saved and file system user. */
static bool read_users(pid_t pid, uid_t users[4])
{
	char path[64], line[256];
	bool found = false;
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	FILE *file = fopen(path, "re");
	while (file && !found && fgets(line, sizeof(line), file))
		found = sscanf(line, "Uid: %u %u %u %u", &users[0], &users[1], &users[2],
			       &users[3]) == 4;
	if (file)
		fclose(file);
	return found;
}

static bool has_user(const struct fay_role *role, uid_t user)
{
	for (size_t i = 0; i < role->user_count; i++)
		if (role->users[i] == user)
			return true;
	return !role->user_count;
}

static bool has_program(const struct fay_role *role, const char *path)
{
	const char *name = strrchr(path, '/');
	for (size_t i = 0; i < role->program_count; i++)
		if (!fnmatch(role->programs[i],
			     strchr(role->programs[i], '/') || !name ? path : name + 1, 0))
			return true;
	return !role->program_count;
}

int fay_role_admits(const struct fay_role *role, pid_t pid, struct fay_error *error)
{
	char link[64], path[PATH_MAX];
	uid_t users[4] = { 0 };
	if (!role || (!role->user_count && !role->program_count))
		return FAY_OK;
	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	ssize_t length = readlink(link, path, sizeof(path) - 1);
	if (length <= 0 || !read_users(pid, users))
		return fay_error_set(error, FAY_E_REFUSED,
				     "process %d is gone, or cannot be inspected", pid);
	path[length] = 0;
	for (int i = 0; i < 4; i++)
		if (!has_user(role, users[i]))
			return fay_error_set(
				error, FAY_E_REFUSED,
				"the role '%s' does not include processes of user %u, as %d is",
				role->name, users[i], pid);
	if (!has_program(role, path))
		return fay_error_set(error, FAY_E_REFUSED,
				     "the role '%s' does not include the program %s of process %d",
				     role->name, path, pid);
	return FAY_OK;
}
