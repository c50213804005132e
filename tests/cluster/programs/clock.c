/* SPDX-License-Identifier: MIT */
/*
 * Preloaded: the wall clock is off by as many seconds as the file $CLOCK_FILE says, from the moment
 * it says so. Waiting until a moment of that clock (libnats does) takes as long as it would by such
 * a clock.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long seconds_off(void)
{
	const char *path = getenv("CLOCK_FILE");
	FILE *file = path ? fopen(path, "re") : NULL;
	long seconds = 0;
	if (file) {
		if (fscanf(file, "%ld", &seconds) != 1)
			seconds = 0;
		fclose(file);
	}
	return seconds;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	long result = syscall(SYS_clock_gettime, clock, now);
	if (clock == CLOCK_REALTIME)
		now->tv_sec += seconds_off();
	return (int)result;
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
			   const struct timespec *until)
{
	static int (*wait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
	struct timespec real = *until;
	if (!wait)
		wait = (int (*)(pthread_cond_t *, pthread_mutex_t *,
				const struct timespec *))dlvsym(RTLD_NEXT, "pthread_cond_timedwait",
								"GLIBC_2.3.2");
	real.tv_sec -= seconds_off();
	return wait(condition, mutex, &real);
}
