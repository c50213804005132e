/* SPDX-License-Identifier: MIT */
/*
 * What fays left in processes: a session goes on in its target when its fay is killed with SIGKILL, and costs a little for nothing.
 * `fay doctor` shows such sessions, `fay doctor --clean` removes them, and `fay trace` does so in what it attaches to.
 */
#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* Calls `each` for every process that can be looked into and carries a session. */
static void each_process(void (*each)(void *context, pid_t pid, const struct fay_installed_sessions *list), void *context)
{
	struct fay_installed_sessions list;
	struct fay_error ignored; /* the process is gone, or not ours to look into */
	struct dirent *entry;
	DIR *proc = opendir("/proc");
	while (proc && (entry = readdir(proc))) {
		pid_t pid = isdigit((unsigned char)entry->d_name[0]) ? (pid_t)strtol(entry->d_name, NULL, 10) : 0;
		if (pid <= 0 || fay_installed_sessions(pid, &list, &ignored))
			continue;
		if (list.count)
			each(context, pid, &list);
		fay_installed_sessions_deinit(&list);
	}
	if (proc)
		closedir(proc);
}

static size_t count_abandoned(const struct fay_installed_sessions *list)
{
	size_t abandoned = 0;
	for (size_t i = 0; i < list->count; i++)
		abandoned += !list->items[i].owner_alive;
	return abandoned;
}

static void count_process(void *context, pid_t pid, const struct fay_installed_sessions *list)
{
	struct fay_cli_leftovers *all = context;
	size_t abandoned = count_abandoned(list), used = strlen(all->abandoned_in);
	all->abandoned += abandoned;
	all->traced += list->count - abandoned;
	if (abandoned && used + 16 < sizeof(all->abandoned_in))
		snprintf(all->abandoned_in + used, sizeof(all->abandoned_in) - used, " %d", pid);
}

void fay_cli_leftovers_count(struct fay_cli_leftovers *all)
{
	memset(all, 0, sizeof(*all));
	each_process(count_process, all);
}

int fay_cli_leftovers_clean_pid(pid_t pid, struct fay_error *error)
{
	struct fay_installed_sessions list;
	struct fay_error unseen;
	size_t removed, kept;
	if (fay_installed_sessions(pid, &list, &unseen))
		return FAY_OK; /* attaching will say why it cannot be looked into */
	size_t abandoned = count_abandoned(&list);
	fay_installed_sessions_deinit(&list);
	if (!abandoned)
		return FAY_OK;
	if (fay_leftovers_remove(pid, &removed, &kept, error))
		return error->code;
	fprintf(stderr, "fay: process %d: removed %zu session%s of a fay that was killed\n", pid, removed + kept,
		removed + kept == 1 ? "" : "s");
	return FAY_OK;
}

static void clean_process(void *context, pid_t pid, const struct fay_installed_sessions *list)
{
	int *result = context;
	struct fay_error error = { 0 };
	if (count_abandoned(list) && fay_cli_leftovers_clean_pid(pid, &error))
		*result = fay_cli_fail(&error);
}

int fay_cli_leftovers_clean(void)
{
	int result = FAY_OK;
	each_process(clean_process, &result);
	return result;
}
