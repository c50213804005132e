/* SPDX-License-Identifier: MIT */
/* Executes itself again and again, from its first thread or, more often, from another one, while
 * further threads run and sleep; until its standard input ends. It counts on in its argument. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define THREADS 24

static char **arguments;
static unsigned long turn;

static void again(void)
{
	struct pollfd input = { .fd = 0, .events = POLLIN };
	char next[32];

	usleep(turn % 7 * 150);
	if (poll(&input, 1, 0) != 0)
		_exit(0);
	snprintf(next, sizeof(next), "%lu", turn + 1);
	execl(arguments[0], arguments[0], next, NULL);
	_exit(3);
}

static void *idle(void *spins)
{
	for (volatile unsigned long i = 0; spins; i++)
		;
	for (;;)
		pause();
	return NULL;
}

static void *execute(void *unused)
{
	again();
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	arguments = argv;
	turn = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	for (int i = 0; i < THREADS; i++) /* a busy system may have no room for one at the moment */
		while (pthread_create(&thread, NULL, i == THREADS / 2 && turn % 4 ? execute : idle,
				      i % 8 ? NULL : argv))
			usleep(1000);
	if (turn % 4 == 0)
		again();
	for (;;)
		pause();
}
