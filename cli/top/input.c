/* SPDX-License-Identifier: MIT */
/* `fay top` sleeps until a program wants something, which futexes tell, or a key is pressed, which
 * a descriptor tells: a thread that waits for the latter makes a futex of it. */
#include <linux/futex.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "parts.h"

static void *watch_input(void *context)
{
	struct fay_top_watch *watch = context;
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	for (;;) {
		if (poll(&input, 1, -1) < 0)
			continue;
		__atomic_fetch_add(&watch->word, 1, __ATOMIC_RELEASE);
		syscall(SYS_futex, &watch->word, FUTEX_WAKE, 1, NULL, NULL, 0);
		while (sem_wait(&watch->go_on))
			;
	}
	return NULL;
}

int fay_top_watch_begin(struct fay_top_watch *watch, struct fay_error *error)
{
	sigset_t all, before;
	watch->word = watch->seen = 0;
	sem_init(&watch->go_on, 0, 0);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for who waits */
	int code = pthread_create(&watch->thread, NULL, watch_input, watch);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return code ? fay_error_set(error, FAY_E_LIMIT, "no thread for the keys: %s",
				    strerror(code))
		    : FAY_OK;
}

void fay_top_watch_seen(struct fay_top_watch *watch, uint32_t seen)
{
	if (watch->seen != seen)
		sem_post(&watch->go_on);
	watch->seen = seen;
}

void fay_top_watch_end(struct fay_top_watch *watch)
{
	pthread_cancel(watch->thread);
	pthread_join(watch->thread, NULL);
	sem_destroy(&watch->go_on);
}
