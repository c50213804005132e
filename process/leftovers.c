/* SPDX-License-Identifier: MIT */
/*
 * What fays left in processes: a session goes on in its target when its fay is killed with SIGKILL,
 * and costs a little for nothing. `fay doctor` shows such sessions, `fay doctor --clean` removes
 * them, and `fay trace` does so in what it attaches to.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "process.h"

/* Calls `each` for every process that can be looked into and carries a session. */
static void each_process(void (*each)(void *context, pid_t pid,
				      const struct fay_installed_sessions *list),
			 void *context)
{
	struct fay_installed_sessions list;
	struct fay_error ignored; /* the process is gone, or not ours to look into */
	DIR *proc = opendir("/proc");
	pid_t pid;
	while (fay_process_next(proc, &pid)) {
		if (pid <= 0 || fay_installed_sessions(pid, &list, &ignored))
			continue;
		if (list.count || list.foreign)
			each(context, pid, &list);
		fay_installed_sessions_deinit(&list);
	}
	if (proc)
		closedir(proc);
}

static size_t count_state(const struct fay_installed_sessions *list, enum fay_owner_state state)
{
	size_t count = 0;
	for (size_t i = 0; i < list->count; i++)
		count += list->items[i].owner_state == state;
	return count;
}

static void name_process(char names[160], pid_t pid, size_t sessions)
{
	size_t used = strlen(names);
	if (sessions && used + 16 < 160)
		snprintf(names + used, 160 - used, " %d", pid);
}

static void note_process(void *context, pid_t pid, const struct fay_installed_sessions *list)
{
	struct fay_leftovers *all = context;
	size_t abandoned = count_state(list, FAY_OWNER_DEAD),
	       unknown = count_state(list, FAY_OWNER_UNKNOWN);
	all->abandoned += abandoned;
	all->unknown += unknown;
	all->traced += list->count - abandoned - unknown;
	name_process(all->abandoned_in, pid, abandoned);
	name_process(all->unknown_in, pid, unknown);
	struct fay_leftover *grown =
		realloc(all->items, (all->count + list->count + 1) * sizeof(*grown));
	if (!grown)
		return;
	all->items = grown;
	for (size_t i = 0; i < list->count; i++)
		all->items[all->count++] =
			(struct fay_leftover){ .pid = pid, .session = list->items[i] };
	if (list->foreign)
		all->items[all->count++] = (struct fay_leftover){ .pid = pid, .foreign = true };
}

void fay_leftovers_find(struct fay_leftovers *all)
{
	memset(all, 0, sizeof(*all));
	each_process(note_process, all);
}

void fay_leftovers_deinit(struct fay_leftovers *all)
{
	free(all->items);
	memset(all, 0, sizeof(*all));
}

/* Of those that are to be removed. */
static bool any_patched(const struct fay_installed_sessions *list, bool unknown)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].points &&
		    list->items[i].owner_state <= (unknown ? FAY_OWNER_UNKNOWN : FAY_OWNER_DEAD))
			return true;
	return false;
}

int fay_leftovers_clean_pid(pid_t pid, bool unknown, FILE *messages, struct fay_error *error)
{
	struct fay_installed_sessions list;
	struct fay_error unseen;
	size_t removed, kept;
	if (fay_installed_sessions(pid, &list, &unseen))
		return FAY_OK; /* attaching will say why it cannot be looked into */
	size_t abandoned = count_state(&list, FAY_OWNER_DEAD),
	       doubtful = count_state(&list, FAY_OWNER_UNKNOWN);
	bool ended = !any_patched(&list, unknown); /* as they should, but a thread was inside */
	fay_installed_sessions_deinit(&list);
	if (doubtful && !unknown)
		fprintf(messages,
			"fay: process %d: did not remove %zu session%s of a fay in another PID "
			"namespace, which may still run (`fay doctor`)\n",
			pid, doubtful, doubtful == 1 ? "" : "s");
	if (!abandoned && !(doubtful && unknown))
		return FAY_OK;
	if (fay_leftovers_remove(pid, unknown, &removed, &kept, error))
		return error->code;
	if (!removed && !kept)
		return FAY_OK; /* it was being removed when it was looked at */
	if (ended && kept)
		fprintf(messages,
			"fay: process %d: left %zu session%s mapped that an earlier trace had "
			"left, since a thread may still be inside\n",
			pid, kept, kept == 1 ? "" : "s");
	if (ended && removed)
		fprintf(messages,
			"fay: process %d: removed %zu session%s left mapped by an earlier trace\n",
			pid, removed, removed == 1 ? "" : "s");
	if (!ended)
		fprintf(messages, "fay: process %d: removed %zu session%s%s\n", pid, removed + kept,
			removed + kept == 1 ? "" : "s",
			doubtful && unknown ? "" : " of a killed fay");
	return FAY_OK;
}

static void clean_process(void *context, pid_t pid, const struct fay_installed_sessions *list)
{
	int *result = context;
	struct fay_error error = { 0 };
	if (!count_state(list, FAY_OWNER_DEAD) ||
	    !fay_leftovers_clean_pid(pid, false, stderr, &error))
		return;
	fprintf(stderr, "fay: %s\n", error.message);
	*result = error.code;
}

int fay_leftovers_clean(void)
{
	int result = FAY_OK;
	each_process(clean_process, &result);
	return result;
}
