/* SPDX-License-Identifier: MIT */
/* A program that waits when its modules have changed (loader/plan/rendezvous.c): whether it does,
 * and the answer. */
#include "session.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loader/process/process.h"

const char *fay_session_unhooked(const struct fay_session *session)
{
	return *session->plan.unhooked ? session->plan.unhooked : NULL;
}

bool fay_session_modules_asked(struct fay_session *session, uint32_t *number)
{
	struct fay_shm_control *control = session->install.shm;

	*number = control ? __atomic_load_n(&control->modules_asked, __ATOMIC_ACQUIRE) : 0;
	if (!control || !session->plan.geometry.modules_follow)
		return false;
	if (__atomic_load_n(&control->modules_answered, __ATOMIC_RELAXED) == *number) {
		/* A thread whose time was up just when it was answered may have cleared it after
		 * the answer. */
		if (!__atomic_load_n(&control->modules_follow, __ATOMIC_RELAXED))
			__atomic_store_n(&control->modules_follow, 1, __ATOMIC_RELEASE);
		return false;
	}
	__atomic_store_n(&control->modules_seen, *number, __ATOMIC_RELEASE);
	return true;
}

void fay_session_modules_answer(struct fay_session *session, uint32_t number)
{
	struct fay_shm_control *control = session->install.shm;

	__atomic_store_n(&control->modules_follow, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&control->modules_answered, number, __ATOMIC_RELEASE);
	syscall(SYS_futex, &control->modules_answered, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

uint32_t fay_session_modules_late(const struct fay_session *session)
{
	return session->install.shm
		       ? __atomic_load_n(&session->install.shm->modules_late, __ATOMIC_RELAXED)
		       : 0;
}

void fay_rendezvous_release(struct fay_session *session)
{
	if (!session->install.shm)
		return;
	fay_session_modules_answer(
		session, __atomic_load_n(&session->install.shm->modules_asked, __ATOMIC_ACQUIRE));
	session->plan.geometry.modules_follow = 0; /* from now on nobody is asked */
	__atomic_store_n(&session->install.shm->modules_follow, 0, __ATOMIC_RELEASE);
}

void fay_rendezvous_release_other(pid_t pid, uint64_t id)
{
	const uint32_t follow = 0;
	struct fay_zones zones = { 0 };
	struct fay_maps maps;
	int memory;

	if (fay_maps_read(pid, &maps, NULL))
		return;
	memory = fay_process_memory(pid, O_RDWR);
	if (memory >= 0 && !fay_zones_read(&maps, memory, &zones, NULL)) {
		for (size_t i = 0; i < zones.count; i++)
			if (zones.items[i].header.session == id && zones.items[i].header.shm_size &&
			    pwrite(memory, &follow, sizeof(follow),
				   (off_t)(zones.items[i].header.shm +
					   offsetof(struct fay_shm_control, modules_follow))) < 0)
				break; /* whoever waits there does so to the end of his time */
		fay_zones_deinit(&zones);
	}
	if (memory >= 0)
		close(memory);
	fay_maps_deinit(&maps);
}
