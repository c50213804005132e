/* SPDX-License-Identifier: MIT */
/* A session's end: detaching from the process and from the children that it forked while traced;
 * whether anybody is left. */
#include "fay/bpf.h"
#include "session.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "loader/process/process.h"

static bool is_code_of(const struct fay_session *session, const struct fay_map *map)
{
	for (size_t k = 0; k < session->plan.zone_count; k++)
		if (map->start == session->plan.zones[k].header.code &&
		    !strncmp(map->name, "/memfd:" FAY_ZONE_MEMFD, 15))
			return true;
	return false;
}

/* Whether a process maps a code memfd of one of the sessions that are not its own, as children do
 * that were forked while traced. in_use, if it is not NULL, is set for each of these. */
static bool maps_our_code(struct fay_session *const *sessions, size_t count, pid_t pid,
			  bool *in_use)
{
	struct fay_maps maps;
	bool found = false;

	if (fay_maps_read(pid, &maps, NULL))
		return false;
	for (size_t i = 0; i < maps.count; i++)
		for (size_t k = 0; k < count; k++)
			if (pid != sessions[k]->plan.pid &&
			    is_code_of(sessions[k], &maps.items[i])) {
				found = true;
				if (in_use)
					in_use[k] = true;
			}
	fay_maps_deinit(&maps);
	return found;
}

/* Those of the sessions that are still attached, from one process, in the same stops. *missed: one
 * of them was not found there. */
static int detach_from(struct fay_session *const *sessions, size_t count, pid_t pid, bool *missed,
		       struct fay_error *error)
{
	const struct fay_attach_options *options = &sessions[0]->plan.options;
	struct fay_zone_removal *removals = calloc(count, sizeof(*removals));
	uint64_t pause = 0;
	int code;

	if (!removals)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	for (size_t i = 0; i < count; i++)
		removals[i].session = sessions[i]->plan.id;
	code = fay_zones_remove_kept(pid, removals, count, options->stop_timeout_ms,
				     options->tracer_wait_ms, &pause, error);
	for (size_t i = 0; i < count; i++) {
		*missed |= !removals[i].found;
		if (pid == sessions[i]->plan.pid)
			sessions[i]->left_mapped = removals[i].left;
		if (pause > sessions[i]->longest_pause)
			sessions[i]->longest_pause = pause;
	}
	free(removals);
	return code;
}

/* Whether the process was there before the sessions' code. Its start is known to a clock tick. */
static bool is_older(struct fay_session *const *sessions, size_t count, pid_t pid)
{
	uint64_t start = fay_process_start(pid), first = UINT64_MAX;

	for (size_t i = 0; i < count; i++)
		if (sessions[i]->attach_ticks < first)
			first = sessions[i]->attach_ticks;
	return start && start + 2 < first;
}

static int detach_children(struct fay_session *const *sessions, size_t count,
			   struct fay_error *error)
{
	struct dirent *entry;
	int code = 0;
	DIR *proc = opendir("/proc");

	while (proc && (entry = readdir(proc))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
		bool missed = false;
		int one;

		if (pid <= 0 || pid == sessions[0]->plan.pid || pid == getpid() ||
		    is_older(sessions, count, pid) || !maps_our_code(sessions, count, pid, NULL))
			continue;
		one = detach_from(sessions, count, pid, &missed, error);
		if (one)
			code = one;
	}
	if (proc)
		closedir(proc);
	return code;
}

/* A process that still has a session's code, and in which nothing was found to remove, must not be
 * taken for one that is gone. */
static int not_found(struct fay_session *const *sessions, size_t count, struct fay_error *error)
{
	for (size_t i = 0; i < count; i++)
		if (fay_session_target_alive(sessions[i]))
			return fay_error_set(
				error, FAY_E_REFUSED,
				"process %d: what was patched there was not found, and stays",
				(int)sessions[i]->plan.pid);
	return 0;
}

int fay_sessions_detach(struct fay_session *const *sessions, size_t count, struct fay_error *error)
{
	struct fay_session **attached = calloc(count + 1, sizeof(*attached));
	size_t kept = 0;
	bool alive = false, missed = false;
	int code = 0, children;

	if (!attached)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	for (size_t i = 0; i < count; i++) {
		if (!sessions[i]->attached)
			continue;
		fay_rendezvous_release(sessions[i]);
		alive |= fay_session_target_alive(sessions[i]);
		attached[kept++] = sessions[i];
	}
	if (alive)
		code = detach_from(attached, kept, attached[0]->plan.pid, &missed, error);
	children = kept ? detach_children(attached, kept, error) : 0;
	if (!code)
		code = children;
	if (!code && missed)
		code = not_found(attached, kept, error);
	for (size_t i = 0; i < kept && !code; i++)
		attached[i]->attached = false;
	free(attached);
	return code;
}

int fay_session_detach(struct fay_session *session, struct fay_error *error)
{
	return fay_sessions_detach(&session, 1, error);
}

bool fay_session_left_mapped(const struct fay_session *session)
{
	return session->left_mapped;
}

void fay_session_destroy(struct fay_session *session)
{
	if (!session)
		return;
	if (session->attached)
		fay_session_detach(session, NULL);
	if (session->memory >= 0)
		close(session->memory);
	if (session->install.users >= 0)
		close(session->install.users);
	if (session->install.shm)
		munmap(session->install.shm, session->plan.shm_size);
	fay_host_destroy(session->host);
	fay_install_forget(&session->install);
	fay_plan_forget(&session->plan);
	fay_points_deinit(&session->plan);
	fay_counting_deinit(&session->counted);
	free(session->known);
	free(session);
}

bool fay_session_target_alive(struct fay_session *session)
{
	char byte;

	if (session->attached && session->memory >= 0 && session->plan.zone_count)
		return pread(session->memory, &byte, 1,
			     (off_t)session->plan.zones[0].header.code) == 1;
	if (session->plan.trap_count && !session->attached &&
	    session->plan.traps[0].stack != fay_process_stack_begin(session->plan.pid))
		return false;
	return session->pid_start != 0 &&
	       fay_process_start(session->plan.pid) == session->pid_start;
}

/* in_use[k]: some process other than the session's own has its code. */
static void look_for_code(struct fay_session *const *sessions, size_t count, bool *in_use)
{
	struct dirent *entry;
	DIR *proc = count ? opendir("/proc") : NULL;

	while (proc && (entry = readdir(proc))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid > 0 && pid != getpid() && !is_older(sessions, count, pid))
			maps_our_code(sessions, count, pid, in_use);
	}
	if (proc)
		closedir(proc);
}

bool fay_session_in_use(struct fay_session *session)
{
	bool in_use = false;

	if (session->install.users >= 0 && !fay_session_target_alive(session))
		return fay_users_any(session->install.users);
	look_for_code(&session, 1, &in_use);
	return in_use;
}

bool fay_sessions_include(struct fay_session *const *sessions, size_t count, pid_t pid)
{
	return maps_our_code(sessions, count, pid, NULL);
}

/* What is dead forks no more: that is found out first. */
void fay_sessions_let_go(struct fay_session *const *sessions, size_t count, bool *gone)
{
	struct fay_session **dead = calloc(count + 1, sizeof(*dead));
	bool *in_use = calloc(count + 1, sizeof(*in_use));
	size_t dead_count = 0, at = 0;

	for (size_t k = 0; k < count; k++) {
		gone[k] = dead && in_use && !fay_session_target_alive(sessions[k]);
		if (gone[k] && sessions[k]->install.users < 0)
			dead[dead_count++] = sessions[k];
	}
	look_for_code(dead, dead_count, in_use);
	for (size_t k = 0; k < count; k++) {
		int users = sessions[k]->install.users;

		if (gone[k])
			gone[k] = users >= 0 ? !fay_users_any(users) : !in_use[at++];
		sessions[k]->attached &= !gone[k];
	}
	free(dead);
	free(in_use);
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
	/* one that has ended and is not waited for yet has none */
	number = maps.count ? 0xcbf29ce484222325u : 0;
	/* Of a file with code all mappings count: while it is being loaded some are not there
	 * yet. */
	for (size_t begin = 0; begin < maps.count; begin = end) {
		bool code = false;

		for (end = begin;
		     end < maps.count && maps.items[end].inode == maps.items[begin].inode; end++)
			code = code || maps.items[end].permissions[2] == 'x';
		for (size_t i = begin; code && is_of_file(&maps.items[begin]) && i < end; i++) {
			number = (number ^ maps.items[i].start) * 0x100000001b3u;
			number = (number ^ maps.items[i].inode) * 0x100000001b3u;
		}
	}
	fay_maps_deinit(&maps);
	return number;
}
