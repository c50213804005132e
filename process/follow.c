/* SPDX-License-Identifier: MIT */
/* Fay's side of following: orders to the follower, events from it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "follow_private.h"
#include "process.h"

/* Keeps the two pipes only: the end of orders must be closed once fay closes its own, also if an
 * agent has other followers that were started later. */
static void become_follower(int orders, int events, uint32_t *told)
{
	enum { ORDERS = 3, EVENTS = 4, FREE = 5 };
	int null = open("/dev/null", O_RDWR);
	int high_orders = fcntl(orders, F_DUPFD, FREE), high_events = fcntl(events, F_DUPFD, FREE);
	if (null < 0 || high_orders < 0 || high_events < 0)
		_exit(1);
	for (int fd = 0; fd < ORDERS; fd++)
		dup2(null, fd);
	dup2(high_orders, ORDERS);
	dup2(high_events, EVENTS);
	close_range(FREE, ~0u, 0);
	fay_follower_main(ORDERS, EVENTS, told);
}

int fay_follow_start(struct fay_follow *follow, struct fay_error *error)
{
	int orders[2], events[2];
	if (pipe2(orders, O_CLOEXEC))
		return fay_error_set(error, FAY_E_LIMIT, "pipe: %s", strerror(errno));
	if (pipe2(events, O_CLOEXEC)) {
		close(orders[0]);
		close(orders[1]);
		return fay_error_set(error, FAY_E_LIMIT, "pipe: %s", strerror(errno));
	}
	uint32_t *told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	fflush(NULL);
	follow->follower = told == MAP_FAILED ? -1 : fork();
	if (follow->follower == 0)
		become_follower(orders[0], events[1], told);
	close(orders[0]);
	close(events[1]);
	follow->orders = orders[1];
	follow->events = events[0];
	if (follow->follower > 0) {
		follow->told = told;
		return FAY_OK;
	}
	follow->follower = 0;
	int code = fay_error_set(error, FAY_E_LIMIT, "fork: %s", strerror(errno));
	if (told != MAP_FAILED)
		munmap(told, sizeof(*told));
	close(orders[1]);
	close(events[0]);
	return code;
}

static void order(struct fay_follow *follow, int word, pid_t pid)
{
	struct fay_follow_message message = { .word = word, .pid = pid };
	if (follow->follower &&
	    write(follow->orders, &message, sizeof(message)) != (ssize_t)sizeof(message))
		follow->ended = true;
}

void fay_follow_take(struct fay_follow *follow, pid_t pid)
{
	order(follow, FAY_FOLLOW_TAKE, pid);
}

void fay_follow_leave(struct fay_follow *follow, pid_t pid)
{
	order(follow, FAY_FOLLOW_LEAVE, pid);
}

void fay_follow_hold(struct fay_follow *follow)
{
	if (!follow->holds)
		order(follow, FAY_FOLLOW_HOLD, 0);
	follow->holds = true;
}

/* One message; false: none within the time, or the follower has ended. */
static bool receive(struct fay_follow *follow, int timeout_ms, struct fay_follow_message *message)
{
	struct pollfd wait = { .fd = follow->events, .events = POLLIN };
	if (!follow->follower || follow->ended || poll(&wait, 1, timeout_ms) <= 0)
		return false;
	if (read(follow->events, message, sizeof(*message)) == (ssize_t)sizeof(*message))
		return true;
	follow->ended = true;
	return false;
}

/* Until the answer to an order; what comes before it is kept for fay_follow_next(). */
static void await_answer(struct fay_follow *follow, int word, pid_t pid)
{
	struct fay_follow_message message;
	while (receive(follow, 2000, &message) && (message.word != word || message.pid != pid))
		if (message.word == FAY_FOLLOW_RELEASED || message.word == FAY_FOLLOW_TAKEN)
			continue; /* it came too late */
		else if (follow->kept_count < sizeof(follow->kept) / sizeof(follow->kept[0]))
			follow->kept[follow->kept_count++] =
				(struct fay_followed){ message.pid, message.parent };
		else if (message.word == FAY_FOLLOW_EXECUTED)
			fay_follow_take(follow, message.pid);
		else
			fay_follow_leave(follow, message.pid);
}

void fay_follow_release(struct fay_follow *follow, pid_t pid)
{
	order(follow, FAY_FOLLOW_RELEASE, pid);
	await_answer(follow, FAY_FOLLOW_RELEASED, pid);
}

void fay_follow_retake(struct fay_follow *follow, pid_t pid)
{
	order(follow, FAY_FOLLOW_RETAKE, pid);
	await_answer(follow, FAY_FOLLOW_TAKEN, pid);
}

bool fay_follow_next(struct fay_follow *follow, struct fay_followed *followed)
{
	struct fay_follow_message message;
	if (follow->kept_count) {
		*followed = follow->kept[--follow->kept_count];
		return true;
	}
	follow->seen = __atomic_load_n(follow->told, __ATOMIC_ACQUIRE);
	while (receive(follow, 0, &message))
		if (message.word == FAY_FOLLOW_EXECUTED || message.word == FAY_FOLLOW_FORKED) {
			*followed = (struct fay_followed){ message.pid, message.parent };
			return true;
		}
	return false;
}

void fay_follow_end(struct fay_follow *follow)
{
	if (!follow->follower)
		return;
	close(follow->orders);
	close(follow->events);
	waitpid(follow->follower, NULL, 0);
	follow->follower = 0;
	munmap(follow->told, sizeof(*follow->told));
	follow->told = NULL;
}
