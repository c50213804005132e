/* SPDX-License-Identifier: MIT */
/* Whether the owner of a session runs: by its number in its PID namespace, by its lock from others;
 * what programs can pretend, and what cannot be told. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "loader/zones/zone.h"

#define SIZE 8192u

static const struct fay_owner far = {
	.pid_namespace = { 1, 1 }, .pid = 1, .start = 1, .locked = 1
};

/* What is to be said of that owner, whose session's state is mapped at `state` in this process. */
static enum fay_owner_state ask(const struct fay_owner *owner, const void *state, uint64_t size)
{
	struct fay_error error;
	struct fay_maps maps;

	assert_int_equal(fay_maps_read(getpid(), &maps, &error), 0);
	enum fay_owner_state answer = fay_owner_ask(getpid(), &maps, owner, (uint64_t)state, size);
	fay_maps_deinit(&maps);
	return answer;
}

/* The traced program's mapping and open file. */
static void *program(const char *name, int *fd)
{
	*fd = memfd_create(name, MFD_CLOEXEC);
	assert_true(*fd >= 0 && ftruncate(*fd, SIZE) == 0);
	void *state = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	assert_true(state != MAP_FAILED);
	return state;
}

/* The answer where the file can be looked at, else nothing is said of it. */
static void equal_if_seen(const void *state, enum fay_owner_state got, enum fay_owner_state want)
{
	char path[80];

	snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", (unsigned long)state,
		 (unsigned long)state + SIZE);
	int fd = open(path, O_PATH | O_CLOEXEC);
	assert_int_equal(got, fd >= 0 ? want : FAY_OWNER_UNKNOWN);
	if (fd >= 0)
		close(fd);
}

static void test_lock(void **unused)
{
	int fd, status;
	bool locked;
	void *state = program(FAY_STATE_MEMFD, &fd), *own = fay_owner_map(fd, SIZE, &locked),
	     *second;

	assert_true(own != MAP_FAILED && locked);
	/* who may not look sees it in /proc/locks */
	assert_int_equal(ask(&far, state, SIZE), FAY_OWNER_LIVES);
	second = fay_owner_map(fd, SIZE, &locked);
	assert_true(second == MAP_FAILED && errno == EBUSY);
	/* A forked child has neither the mapping nor, by that, the lock. */
	pid_t child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	munmap(own, SIZE);
	equal_if_seen(state, ask(&far, state, SIZE), FAY_OWNER_DEAD);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	munmap(state, SIZE);
	close(fd);
}

/* The owner is killed, which nobody waits for. */
static void test_killed(void **unused)
{
	int fd, ends[2];
	void *state = program(FAY_STATE_MEMFD, &fd);
	char byte;

	assert_int_equal(pipe(ends), 0);
	pid_t owner = fork();
	if (owner == 0) {
		bool locked;

		if (fay_owner_map(fd, SIZE, &locked) == MAP_FAILED || !locked ||
		    write(ends[1], "r", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	close(fd);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	assert_int_equal(ask(&far, state, SIZE), FAY_OWNER_LIVES);
	siginfo_t info;
	kill(owner, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)owner, &info, WEXITED | WNOWAIT), 0);
	/* Who reads of its memory just now keeps it for as long. */
	for (unsigned i = 0; i < 5000 && ask(&far, state, SIZE) == FAY_OWNER_LIVES; i++)
		usleep(1000);
	equal_if_seen(state, ask(&far, state, SIZE), FAY_OWNER_DEAD);
	waitpid(owner, NULL, 0);
	munmap(state, SIZE);
	close(ends[0]);
	close(ends[1]);
}

/* A program that holds a lock itself keeps its leftover; nothing else of it is believed. */
static void test_pretended(void **unused)
{
	struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 100, .l_len = 1 };
	struct fay_owner unlocked = far;
	int fd, other;
	void *state = program(FAY_STATE_MEMFD, &fd), *else_where = program("fay-stat", &other);

	equal_if_seen(state, ask(&far, state, SIZE), FAY_OWNER_DEAD);
	assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
	assert_int_equal(ask(&far, state, SIZE), FAY_OWNER_LIVES);
	lock.l_type = F_UNLCK;
	assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
	unlocked.locked = 0;
	assert_int_equal(ask(&unlocked, state, SIZE), FAY_OWNER_UNKNOWN);
	assert_int_equal(ask(&far, (char *)state + 4096, SIZE), FAY_OWNER_UNKNOWN);
	assert_int_equal(ask(&far, else_where, SIZE), FAY_OWNER_UNKNOWN);
	assert_int_equal(ask(&far, NULL, SIZE), FAY_OWNER_UNKNOWN);
	assert_int_equal(ask(&far, NULL, 0), FAY_OWNER_DEAD); /* unmapped: its removal was begun */
	munmap(state, SIZE);
	munmap(else_where, SIZE);
	close(fd);
	close(other);
}

/* A file of that name on a disk is not opened for its lock. */
static void test_not_in_memory(void **unused)
{
	struct stat status;
	const char *path = "/memfd:" FAY_STATE_MEMFD;
	int fd = geteuid() == 0 && stat(path, &status)
			 ? open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)
			 : -1;
	struct statfs system;

	if (fd < 0) {
		print_message("skipped: no file can be made in the root directory: %s\n",
			      geteuid() ? "needs root" : strerror(errno));
		skip();
	}
	unlink(path);
	assert_int_equal(ftruncate(fd, SIZE), 0);
	assert_int_equal(fstatfs(fd, &system), 0);
	void *state = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(state != MAP_FAILED);
	assert_int_equal(ask(&far, state, SIZE),
			 system.f_type == TMPFS_MAGIC ? FAY_OWNER_DEAD : FAY_OWNER_UNKNOWN);
	munmap(state, SIZE);
	close(fd);
}

static void test_number(void **unused)
{
	struct fay_owner self, other;

	fay_owner_self(&self);
	assert_true(fay_owner_is_near(&self) && self.start);
	assert_int_equal(ask(&self, NULL, SIZE), FAY_OWNER_LIVES);
	other = self;
	/* of a time namespace whose offset is no whole ticks it may be one apart */
	other.start += 2;
	assert_int_equal(ask(&other, NULL, SIZE), FAY_OWNER_DEAD);
	other.start = self.start - 2;
	assert_int_equal(ask(&other, NULL, SIZE), FAY_OWNER_DEAD);
	other.start = 0;
	assert_int_equal(ask(&other, NULL, SIZE), FAY_OWNER_UNKNOWN);
	other.pid = 0;
	assert_int_equal(ask(&other, NULL, SIZE), FAY_OWNER_UNKNOWN);
	other.pid = (uint32_t)-5;
	assert_int_equal(ask(&other, NULL, SIZE), FAY_OWNER_UNKNOWN);
	/* One that nobody waits for, then one that is gone. */
	siginfo_t info;
	pid_t child = fork();
	if (child == 0)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	other = self;
	other.pid = (uint32_t)child;
	assert_int_equal(ask(&other, NULL, SIZE), FAY_OWNER_DEAD);
	waitpid(child, NULL, 0);
	assert_int_equal(ask(&other, NULL, SIZE), FAY_OWNER_DEAD);
}

/* Zones of another version are no sessions, but are counted. */
static void test_version(void **unused)
{
	struct fay_installed_sessions list;
	struct fay_error error;
	int code = memfd_create(FAY_ZONE_MEMFD, MFD_CLOEXEC);

	assert_true(code >= 0 && ftruncate(code, 4096) == 0);
	uint8_t *at = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(at != MAP_FAILED &&
		    mmap(at, 4096, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_FIXED, code, 0) == at);
	struct fay_zone_header header = { .magic = FAY_ZONE_MAGIC,
					  .version = FAY_ZONE_VERSION,
					  .session = 7,
					  .code = (uint64_t)at,
					  .code_size = 4096,
					  .data = (uint64_t)at + 4096,
					  .data_size = 4096,
					  .shm = 4096,
					  .shm_size = SIZE,
					  .owner = far };
	*(struct fay_zone_header *)(at + 4096) = header;
	assert_int_equal(fay_installed_sessions(getpid(), &list, &error), 0);
	assert_int_equal(list.count, 1);
	assert_int_equal(list.foreign, 0);
	assert_int_equal(list.items[0].owner_state, FAY_OWNER_UNKNOWN);
	assert_int_equal(list.items[0].owner_namespace, 1);
	fay_installed_sessions_deinit(&list);
	((struct fay_zone_header *)(at + 4096))->version = FAY_ZONE_VERSION - 1;
	assert_int_equal(fay_installed_sessions(getpid(), &list, &error), 0);
	assert_int_equal(list.count, 0);
	assert_int_equal(list.foreign, 1);
	fay_installed_sessions_deinit(&list);
	munmap(at, 8192);
	close(code);
}

/* As long as the program, or a child that was forked with it, has the code mapped. */
static void test_users(void **unused)
{
	int fd = memfd_create(FAY_ZONE_MEMFD, MFD_CLOEXEC | MFD_ALLOW_SEALING), watch;
	void *code;
	pid_t child;

	(void)unused;
	assert_int_equal(ftruncate(fd, 4096), 0);
	watch = fay_users_watch(fd);
	assert_true(watch >= 0);
	code = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(code, MAP_FAILED);
	close(fd);
	assert_true(fay_users_any(watch));
	child = fork();
	if (!child) {
		pause();
		_exit(0);
	}
	assert_int_equal(munmap(code, 4096), 0);
	assert_true(fay_users_any(watch));
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_false(fay_users_any(watch));
	close(watch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lock),      cmocka_unit_test(test_killed),
		cmocka_unit_test(test_pretended), cmocka_unit_test(test_not_in_memory),
		cmocka_unit_test(test_number),    cmocka_unit_test(test_version),
		cmocka_unit_test(test_users)
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
