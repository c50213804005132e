/* SPDX-License-Identifier: MIT */
/* A session's end: detaching from the process and from the children that it forked while traced; whether anybody is left. */
#include "session.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "thread.h"

/* Processes other than ours that still map one of the session's code memfds: children forked while traced. */
static bool maps_our_code(const struct fay_session *session, pid_t pid)
{
	struct fay_maps maps;
	bool found = false;

	if (fay_maps_read(pid, &maps, NULL))
		return false;
	for (size_t i = 0; i < maps.count && !found; i++)
		for (size_t k = 0; k < session->zone_count && !found; k++)
			found = maps.items[i].start == session->zones[k].header.code &&
				!strncmp(maps.items[i].name, "/memfd:" FAY_ZONE_MEMFD, 15);
	fay_maps_deinit(&maps);
	return found;
}

static int detach_one(struct fay_session *session, pid_t pid, unsigned *left, struct fay_error *error)
{
	bool found, stayed;
	int code = fay_zone_remove_kept(pid, session->id, session->options.stop_timeout_ms,
					session->options.tracer_wait_ms, &found, &stayed, &session->longest_pause, error);

	*left += stayed;
	return code;
}

/* Whether the process was there before the session's code. Its start is known to a clock tick. */
static bool is_older(const struct fay_session *session, pid_t pid)
{
	uint64_t start = fay_process_start(pid);

	return start && start + 2 < session->attach_ticks;
}

static int detach_children(struct fay_session *session, unsigned *left, struct fay_error *error)
{
	struct dirent *entry;
	int code = 0;
	DIR *proc = opendir("/proc");

	while (proc && (entry = readdir(proc))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
		int one;

		if (pid <= 0 || pid == session->pid || pid == getpid() || is_older(session, pid) || !maps_our_code(session, pid))
			continue;
		one = detach_one(session, pid, left, error);
		if (one)
			code = one;
	}
	if (proc)
		closedir(proc);
	return code;
}

int fay_session_detach(struct fay_session *session, struct fay_error *error)
{
	unsigned left = 0;
	int code = 0, children;

	if (!session->attached)
		return 0;
	fay_rendezvous_release(session);
	if (fay_session_target_alive(session))
		code = detach_one(session, session->pid, &left, error);
	children = detach_children(session, &left, error);
	if (!code)
		code = children;
	if (code)
		return code;
	session->attached = false;
	return 0;
}

void fay_session_destroy(struct fay_session *session)
{
	if (!session)
		return;
	if (session->attached)
		fay_session_detach(session, NULL);
	if (session->memory >= 0)
		close(session->memory);
	if (session->shm)
		munmap(session->shm, session->shm_size);
	fay_host_destroy(session->host);
	fay_session_forget_plan(session);
	fay_points_deinit(session);
	free(session->known);
	free(session);
}

bool fay_session_target_alive(struct fay_session *session)
{
	char byte;

	if (session->attached && session->memory >= 0 && session->zone_count)
		return pread(session->memory, &byte, 1, (off_t)session->zones[0].header.code) == 1;
	return session->pid_start != 0 && fay_process_start(session->pid) == session->pid_start;
}

bool fay_session_in_use(const struct fay_session *session)
{
	struct dirent *entry;
	bool found = false;
	DIR *proc = opendir("/proc");

	while (proc && !found && (entry = readdir(proc))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		found = pid > 0 && pid != getpid() && pid != session->pid && maps_our_code(session, pid);
	}
	if (proc)
		closedir(proc);
	return found;
}

static bool is_of_file(const struct fay_map *map)
{
	return map->name[0] == '/' && strncmp(map->name, "/memfd:fay-", 11) != 0;
}

uint64_t fay_process_modules(pid_t pid)
{
	struct fay_maps maps;
	uint64_t number;
	size_t end;

	if (fay_maps_read(pid, &maps, NULL))
		return 0;
	number = maps.count ? 0xcbf29ce484222325u : 0; /* one that has ended and is not waited for yet has none */
	/* Of a file with code all mappings count: while it is being loaded some are not there yet. */
	for (size_t begin = 0; begin < maps.count; begin = end) {
		bool code = false;

		for (end = begin; end < maps.count && maps.items[end].inode == maps.items[begin].inode; end++)
			code = code || maps.items[end].permissions[2] == 'x';
		for (size_t i = begin; code && is_of_file(&maps.items[begin]) && i < end; i++) {
			number = (number ^ maps.items[i].start) * 0x100000001b3u;
			number = (number ^ maps.items[i].inode) * 0x100000001b3u;
		}
	}
	fay_maps_deinit(&maps);
	return number;
}
