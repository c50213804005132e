/* SPDX-License-Identifier: MIT */
/*
 * Sessions that lie in a process, whoever installed them: for the doctor, and for removing what a
 * killed fay left behind. The process is not stopped to look; what is read may be half-way through
 * a change, which removal, in a stop, looks at anew.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/process/process.h"
#include "loader/stop/stop.h"
#include "session.h"

#define OWNERS_ASKED 1024u /* zones of a process: anybody can make memory that looks like zones */

/* A session may have several zones, each within reach of its part of the program. */
static struct fay_installed_session *find_or_add(struct fay_installed_sessions *list, uint64_t id)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].id == id)
			return &list->items[i];
	struct fay_installed_session *grown =
		realloc(list->items, (list->count + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	list->items = grown;
	grown += list->count++;
	*grown = (struct fay_installed_session){ .id = id };
	return grown;
}

static void ask_owner(pid_t pid, const struct fay_maps *maps, const struct fay_zone_header *header,
		      struct fay_installed_session *session)
{
	enum fay_owner_state state =
		fay_owner_ask(pid, maps, &header->owner, header->shm, header->shm_size);

	/* zones of one session do not differ, unless the program writes them */
	if (state > session->owner_state)
		session->owner_state = state;
	session->owner = (pid_t)header->owner.pid;
	session->owner_namespace =
		fay_owner_is_near(&header->owner) ? 0 : header->owner.pid_namespace[1];
}

static int collect(pid_t pid, const struct fay_maps *maps, const struct fay_zones *zones,
		   struct fay_installed_sessions *list, struct fay_error *error)
{
	for (size_t i = 0; i < zones->count; i++) {
		const struct fay_zone *zone = &zones->items[i];
		struct fay_installed_session *session = find_or_add(list, zone->header.session);
		if (!session)
			return fay_error_set(error, FAY_E_LIMIT, "out of memory");
		if (i < OWNERS_ASKED)
			ask_owner(pid, maps, &zone->header, session);
		else if (session->owner_state == FAY_OWNER_DEAD)
			session->owner_state = FAY_OWNER_UNKNOWN;
		for (uint32_t k = 0; k < zone->header.patch_count; k++)
			session->points += !zone->patches[k].removed && zone->patches[k].first;
	}
	return FAY_OK;
}

int fay_installed_sessions(pid_t pid, struct fay_installed_sessions *list, struct fay_error *error)
{
	struct fay_maps maps;
	struct fay_zones zones;
	memset(list, 0, sizeof(*list));
	int code = fay_maps_read(pid, &maps, error);
	if (code)
		return code;
	int memory = fay_process_memory(pid, O_RDONLY);
	if (memory < 0) {
		code = fay_error_set(error, FAY_E_REFUSED, "memory of process %d: %s", (int)pid,
				     strerror(errno));
		fay_maps_deinit(&maps);
		return code;
	}
	code = fay_zones_read(&maps, memory, &zones, error);
	close(memory);
	if (!code) {
		list->foreign = zones.foreign;
		code = collect(pid, &maps, &zones, list, error);
		fay_zones_deinit(&zones);
	}
	fay_maps_deinit(&maps);
	if (code)
		fay_installed_sessions_deinit(list);
	return code;
}

void fay_installed_sessions_deinit(struct fay_installed_sessions *list)
{
	free(list->items);
	memset(list, 0, sizeof(*list));
}

struct removal {
	pid_t pid;
	struct fay_zone_removal *removals;
	size_t count;
	uint32_t stop_timeout_ms, tracer_wait_ms;
	uint64_t *longest_pause;
	struct fay_error *error;
};

static int remove_sessions(void *context)
{
	struct removal *r = context;
	return fay_zones_remove(r->pid, r->removals, r->count, r->stop_timeout_ms,
				r->tracer_wait_ms, r->longest_pause, r->error);
}

int fay_zones_remove_kept(pid_t pid, struct fay_zone_removal *removals, size_t count,
			  uint32_t stop_timeout_ms, uint32_t tracer_wait_ms,
			  uint64_t *longest_pause, struct fay_error *error)
{
	struct removal removal = { pid,           removals, count, stop_timeout_ms, tracer_wait_ms,
				   longest_pause, error };
	for (size_t i = 0; i < count; i++)
		removals[i].found = removals[i].left = false;
	if (count == 0 || fay_process_start(pid) == 0)
		return 0;
	return fay_keeper_run(remove_sessions, &removal, error);
}

int fay_leftovers_remove(pid_t pid, bool unknown, size_t *removed, size_t *kept,
			 struct fay_error *error)
{
	struct fay_installed_sessions list;
	int code = fay_installed_sessions(pid, &list, error);
	*removed = *kept = 0;
	if (code)
		return code;
	struct fay_zone_removal *removals = calloc(list.count + 1, sizeof(*removals));
	size_t count = 0;
	for (size_t i = 0; removals && i < list.count; i++) {
		if (list.items[i].owner_state > (unknown ? FAY_OWNER_UNKNOWN : FAY_OWNER_DEAD))
			continue;
		fay_rendezvous_release_other(pid, list.items[i].id);
		removals[count++].session = list.items[i].id;
	}
	fay_installed_sessions_deinit(&list);
	if (!removals)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	code = fay_zones_remove_kept(pid, removals, count, FAY_STOP_TIMEOUT_MS, FAY_TRACER_WAIT_MS,
				     NULL, error);
	for (size_t i = 0; !code && i < count; i++) {
		*removed += removals[i].found && !removals[i].left;
		*kept += removals[i].found && removals[i].left;
	}
	free(removals);
	return code;
}
