/* SPDX-License-Identifier: MIT */
/* Between follow.c, fay's side of following, and follower.c, the process that follows. */
#ifndef FAY_PROCESS_FOLLOW_PRIVATE_H
#define FAY_PROCESS_FOLLOW_PRIVATE_H

#include <stdint.h>
#include <sys/types.h>

enum fay_follow_word {
	/* order: seize all threads, and the process's children; let go on if it is stopped */
	FAY_FOLLOW_TAKE,
	FAY_FOLLOW_RETAKE,  /* the same order; FAY_FOLLOW_TAKEN answers it */
	FAY_FOLLOW_RELEASE, /* order: let go of all its threads */
	FAY_FOLLOW_LEAVE,   /* order: let go on if it stands stopped, and do not take */
	FAY_FOLLOW_HOLD,    /* order: processes that are forked from now on wait to be left */
	/* event: stands stopped, and traced by nobody, before the first instruction of another
	 * program; wants to be taken again */
	FAY_FOLLOW_EXECUTED,
	FAY_FOLLOW_RELEASED, /* event */
	FAY_FOLLOW_TAKEN,    /* event */
	FAY_FOLLOW_FORKED,   /* event: stands before its first instruction; wants to be left */
};

struct fay_follow_message {
	int word;
	pid_t pid, parent; /* parent: of FORKED, the process that forked it */
};

/* The process's main function. `told`: counted up behind each event. */
void fay_follower_main(int orders, int events, uint32_t *told) __attribute__((noreturn));

#endif
