/* SPDX-License-Identifier: MIT */
/* `--follow`: a process that holds others by ptrace to learn of their forks and execs. follow.c is
 * fay's side, follower.c the process. */
#ifndef FAY_CLI_FOLLOW_H
#define FAY_CLI_FOLLOW_H

#include <stdbool.h>
#include <sys/types.h>

#include "fay/error.h"

struct fay_follow {
	pid_t follower;     /* 0: not following */
	int orders, events; /* pipes */
	bool ended;         /* no process is left to follow */
	pid_t kept[64];     /* events not told yet */
	size_t kept_count;
};

enum fay_follow_word {
	/* order: seize all threads, and the process's children; let go on if it is stopped */
	FAY_FOLLOW_TAKE,
	FAY_FOLLOW_RELEASE, /* order: let go of all its threads */
	FAY_FOLLOW_LEAVE,   /* order: let go on if it stands stopped, and do not take */
	/* event: stands stopped, and traced by nobody, before the first instruction of another
	 * program; wants to be taken again */
	FAY_FOLLOW_EXECUTED,
	FAY_FOLLOW_RELEASED, /* event */
};

struct fay_follow_message {
	int word;
	pid_t pid;
};

int fay_follow_start(struct fay_follow *follow, struct fay_error *error);
void fay_follow_take(struct fay_follow *follow, pid_t pid);
/* Instead of taking one that fay_follow_next() has told, or that was released. */
void fay_follow_leave(struct fay_follow *follow, pid_t pid);
/* Returns when nobody holds it any more. An event that comes meanwhile is kept for
 * fay_follow_next(). */
void fay_follow_release(struct fay_follow *follow, pid_t pid);
/* The next process that runs another program; 0: none now. */
pid_t fay_follow_next(struct fay_follow *follow);
/* Lets all go. */
void fay_follow_end(struct fay_follow *follow);

/* follower.c: the process's main function. */
void fay_follower_main(int orders, int events) __attribute__((noreturn));

#endif
