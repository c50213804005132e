/* SPDX-License-Identifier: MIT */
/* Fay's side of following: orders to the follower, events from it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "follow.h"

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
	fflush(NULL);
	follow->follower = fork();
	if (follow->follower == 0) {
		int null = open("/dev/null", O_RDWR);
		close(orders[1]);
		close(events[0]);
		for (int fd = 0; null >= 0 && fd < 3; fd++)
			dup2(null, fd);
		fay_follower_main(orders[0], events[1]);
	}
	close(orders[0]);
	close(events[1]);
	follow->orders = orders[1];
	follow->events = events[0];
	if (follow->follower > 0)
		return FAY_OK;
	follow->follower = 0;
	close(orders[1]);
	close(events[0]);
	return fay_error_set(error, FAY_E_LIMIT, "fork: %s", strerror(errno));
}

static void order(struct fay_follow *follow, int word, pid_t pid)
{
	struct fay_follow_message message = { word, pid };
	if (follow->follower && write(follow->orders, &message, sizeof(message)) != (ssize_t)sizeof(message))
		follow->ended = true;
}

void fay_follow_take(struct fay_follow *follow, pid_t pid)
{
	order(follow, FAY_FOLLOW_TAKE, pid);
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

void fay_follow_release(struct fay_follow *follow, pid_t pid)
{
	struct fay_follow_message message;
	order(follow, FAY_FOLLOW_RELEASE, pid);
	while (receive(follow, 2000, &message) && message.word != FAY_FOLLOW_RELEASED)
		if (message.word == FAY_FOLLOW_EXECUTED && follow->kept_count < sizeof(follow->kept) / sizeof(follow->kept[0]))
			follow->kept[follow->kept_count++] = message.pid;
		else
			fay_follow_take(follow, message.pid);
}

pid_t fay_follow_next(struct fay_follow *follow)
{
	struct fay_follow_message message;
	if (follow->kept_count)
		return follow->kept[--follow->kept_count];
	while (receive(follow, 0, &message))
		if (message.word == FAY_FOLLOW_EXECUTED)
			return message.pid;
	return 0;
}

void fay_follow_end(struct fay_follow *follow)
{
	if (!follow->follower)
		return;
	close(follow->orders);
	close(follow->events);
	waitpid(follow->follower, NULL, 0);
	follow->follower = 0;
}
