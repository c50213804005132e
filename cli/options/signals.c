/* SPDX-License-Identifier: MIT */
/* Signals that end a command. */
#include <signal.h>

#include "options.h"

void fay_cli_catch_ends(void (*handler)(int number))
{
	static const int ends[] = { SIGINT, SIGTERM, SIGQUIT, SIGXCPU };
	const struct sigaction action = { .sa_handler = handler };
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		sigaction(ends[i], &action, NULL);
	struct sigaction old;
	if (!sigaction(SIGHUP, NULL, &old) && old.sa_handler != SIG_IGN) /* nohup */
		sigaction(SIGHUP, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	/* a file as large as `ulimit -f` lets it be is one that cannot be written */
	signal(SIGXFSZ, SIG_IGN);
}
