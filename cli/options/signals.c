/* SPDX-License-Identifier: MIT */
/*
 * Signals that end a command. The first one lets what is being written be written to its end: the
 * kernel goes on with a write(2) that waits for a reader, and the result stays whole. From then on
 * a signal breaks a write off, so that a second Ctrl-C ends a command whose output nobody reads.
 */
#include <errno.h>
#include <signal.h>

#include "options.h"

static void (*ends)(int number);

static void on_end(int number);

static void catch_ends(int flags)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGQUIT, SIGXCPU, SIGHUP };
	const struct sigaction action = { .sa_handler = on_end, .sa_flags = flags };
	struct sigaction old;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (numbers[i] != SIGHUP || /* nohup */
		    (!sigaction(SIGHUP, NULL, &old) && old.sa_handler != SIG_IGN))
			sigaction(numbers[i], &action, NULL);
}

static void on_end(int number)
{
	int error = errno;
	catch_ends(0);
	ends(number);
	errno = error;
}

void fay_cli_catch_ends(void (*handler)(int number))
{
	ends = handler;
	catch_ends(SA_RESTART);
	signal(SIGPIPE, SIG_IGN);
	/* a file as large as `ulimit -f` lets it be is one that cannot be written */
	signal(SIGXFSZ, SIG_IGN);
}
