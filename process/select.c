/* SPDX-License-Identifier: MIT */
/*
 * Processes by what /proc says of them: name, command line, user, cgroup. Of a process that goes
 * meanwhile nothing is known, so it is not among them; nor is fay itself, or what has started it,
 * whose command lines have the same words.
 */
#include <errno.h>
#include <fnmatch.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "process.h"

#define CMDLINE_MAX (64u << 10) /* bytes that are looked at */

bool fay_selection_is_given(const struct fay_selection *selection)
{
	return selection->cmdline || selection->user || selection->cgroup;
}

static int find_user(struct fay_selection *selection, struct fay_error *error)
{
	char *end;
	const struct passwd *user = getpwnam(selection->user);
	errno = 0;
	unsigned long number = strtoul(selection->user, &end, 10);
	if (!user && (errno || *end || end == selection->user || number >= UINT32_MAX))
		return fay_error_set(error, FAY_E_USAGE, "there is no user '%s'", selection->user);
	selection->uid = user ? user->pw_uid : (uid_t)number;
	return FAY_OK;
}

int fay_selection_init(struct fay_selection *selection, struct fay_error *error)
{
	char why[128];
	if (selection->cmdline) {
		int code = regcomp(&selection->expression, selection->cmdline,
				   REG_EXTENDED | REG_NOSUB);
		if (code) {
			regerror(code, &selection->expression, why, sizeof(why));
			return fay_error_set(error, FAY_E_USAGE,
					     "'%s' is not a regular expression: %s",
					     selection->cmdline, why);
		}
	}
	return selection->user ? find_user(selection, error) : FAY_OK;
}

/* --- one process --- */

static FILE *open_of(pid_t pid, const char *what)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/%s", pid, what);
	return fopen(path, "re");
}

static bool has_command_line(const struct fay_selection *selection, pid_t pid)
{
	static char text[CMDLINE_MAX];
	FILE *file = open_of(pid, "cmdline");
	size_t size = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
	if (file)
		fclose(file);
	while (size && !text[size - 1])
		size--;
	for (size_t i = 0; i < size; i++)
		if (!text[i])
			text[i] = ' ';
	text[size] = 0;
	return size && !regexec(&selection->expression, text, 0, NULL, 0);
}

/* The effective one: whose rights it has. */
static bool has_user(const struct fay_selection *selection, pid_t pid)
{
	char line[128];
	unsigned effective;
	return fay_process_status(pid, "Uid:", line) &&
	       sscanf(line, "Uid: %*u %u", &effective) == 1 && effective == selection->uid;
}

/* "/system.slice/nginx.service": the path itself or above, or one of its parts. */
static bool is_in(const char *wanted, char *path)
{
	size_t length = strlen(wanted);
	if (strchr(wanted, '/')) {
		const char *from = path + (wanted[0] != '/');
		return !strncmp(from, wanted, length) && (!from[length] || from[length] == '/');
	}
	char *rest = path;
	for (char *part; (part = strsep(&rest, "/"));)
		if (*part && !fnmatch(wanted, part, 0))
			return true;
	return false;
}

static bool has_cgroup(const struct fay_selection *selection, pid_t pid)
{
	char line[4096];
	bool is = false;
	FILE *file = open_of(pid, "cgroup");
	while (file && !is && fgets(line, sizeof(line), file)) {
		char *controllers = strchr(line, ':'),
		     *path = controllers ? strchr(controllers + 1, ':') : NULL;
		line[strcspn(line, "\n")] = 0;
		is = path && is_in(selection->cgroup, path + 1);
	}
	if (file)
		fclose(file);
	return is;
}

static bool has_name(const struct fay_selection *selection, pid_t pid)
{
	char name[FAY_COMM_SIZE];
	bool is = !selection->comm_count;
	if (!is && !fay_process_name(pid, name))
		return false;
	for (size_t i = 0; i < selection->comm_count && !is; i++)
		is = !strncmp(name, selection->comms[i], FAY_COMM_SIZE - 1);
	return is;
}

static pid_t parent_of(pid_t pid)
{
	char line[128];
	pid_t parent = 0;
	return fay_process_status(pid, "PPid:", line) && sscanf(line, "PPid: %d", &parent) == 1
		       ? parent
		       : 0;
}

static bool has_started_us(pid_t pid)
{
	for (pid_t at = getpid(); at > 0; at = parent_of(at))
		if (at == pid)
			return true;
	return false;
}

static bool is_selected(const void *context, pid_t pid)
{
	const struct fay_selection *selection = context;
	return has_name(selection, pid) && (!selection->user || has_user(selection, pid)) &&
	       (!selection->cgroup || has_cgroup(selection, pid)) &&
	       (!selection->cmdline || has_command_line(selection, pid)) && !has_started_us(pid);
}

size_t fay_selection_find(const struct fay_selection *selection, pid_t *pids, size_t max)
{
	return fay_process_find(is_selected, selection, pids, max);
}
