/* SPDX-License-Identifier: MIT */
/*
 * A traced program that attacks its tracer: `hostile_target HOW [FILE]`. It says "ready", reads a
 * line, and calls work() until it is killed. A second process, or thread, meanwhile
 *
 *	truncate  shares the descriptors and cuts off each file that appears among them
 *	replace   shares the descriptors and puts FILE, opened for reading, in the place of each
 *		  file that appears among them, and back
 *	scribble  overwrites the session's shared state
 */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "fay/shm.h"
#include "tests/xorshift.h"

enum { FIRST = 3, LAST = 6, VICTIM = 20, ASIDE = 21 };

uint64_t work(uint64_t number, const char *text);

__attribute__((noinline, noclone)) uint64_t work(uint64_t number, const char *text)
{
	__asm__ volatile("" : : "r"(text) : "memory");
	return number * 3;
}

static int cut_off(void *unused)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		for (int fd = FIRST; fd < LAST; fd++)
			if (ftruncate(fd, 0) && fcntl(fd, F_GETFD) < 0)
				sched_yield();
	return 0;
}

static int replace(void *unused)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		for (int fd = FIRST; fd < LAST; fd++) {
			if (dup2(fd, ASIDE) < 0)
				continue;
			for (unsigned i = 0; i < 20; i++) {
				dup2(VICTIM, fd);
				for (unsigned spin = i * 100; spin; spin--)
					__asm__ volatile("");
				dup2(ASIDE, fd);
			}
		}
	return 0;
}

/* The mapping's first and last byte; false: there is none. */
static bool find_state(uint64_t *start, uint64_t *end)
{
	char line[512];
	bool found = false;
	FILE *maps = fopen("/proc/self/maps", "re");

	while (maps && !found && fgets(line, sizeof(line), maps))
		found = strstr(line, "/memfd:fay-state") &&
			sscanf(line, "%" SCNx64 "-%" SCNx64, start, end) == 2;
	if (maps)
		fclose(maps);
	return found;
}

static uint64_t next_random(uint64_t *seed)
{
	return xorshift(seed);
}

static void *scribble(void *unused)
{
	static const uint64_t values[] = { 0, 1, 7, 8, 4096, UINT32_MAX, 1ull << 63, UINT64_MAX };
	uint64_t start, end, seed = 88172645463325252u;

	for (;;) {
		/* Before the aggregator has it a wrong control page is merely refused. */
		if (!find_state(&start, &end) ||
		    !((volatile struct fay_shm_control *)start)->consumer_alive) {
			usleep(1000);
			continue;
		}
		/* The control page, GLOBAL and the first slots; far behind are pages that nobody
		 * has touched. */
		const uint64_t words = (end - start < 1u << 20 ? end - start : 1u << 20) / 8;
		for (unsigned i = 0; i < 2000; i++) {
			uint64_t random = next_random(&seed),
				 at = random % 3 ? random % 640 : random % words;

			if (at * 8 >= offsetof(struct fay_shm_control, wake) &&
			    at * 8 < offsetof(struct fay_shm_control, wake) + 8)
				continue; /* as long as it is 1 we go on */
			((volatile uint64_t *)start)[at] =
				random & 1u << 20 ? values[random >> 32 & 7]
						  : next_random(&seed) >> (random >> 32 & 63);
		}
		usleep(500);
	}
	return NULL;
}

static bool begin(const char *how, const char *file)
{
	static char stack[65536] __attribute__((aligned(16)));
	int (*other)(void *) = !strcmp(how, "truncate")  ? cut_off
			       : !strcmp(how, "replace") ? replace
							 : NULL;
	pthread_t thread;

	if (!strcmp(how, "scribble"))
		return pthread_create(&thread, NULL, scribble, NULL) == 0;
	if (other == replace && dup2(open(file ? file : "", O_RDONLY), VICTIM) < 0)
		return false;
	for (int fd = FIRST; fd < LAST; fd++)
		close(fd);
	return other && clone(other, stack + sizeof(stack), CLONE_FILES | SIGCHLD, NULL) > 0;
}

int main(int argc, char **argv)
{
	char text[32];

	if (argc < 2 || !begin(argv[1], argv[2]))
		return 2;
	puts("ready");
	fflush(stdout);
	if (getchar() < 0)
		return 1;
	for (uint64_t i = 0;; i++) {
		snprintf(text, sizeof(text), "text %u", (unsigned)(i % 100));
		work(i, text);
		if (i % 1000 == 0)
			usleep(100);
	}
}
