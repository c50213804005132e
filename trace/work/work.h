/* SPDX-License-Identifier: MIT */
/* What counting calls took of a program's processor time, by the work that the program did. */
#ifndef FAY_TRACE_WORK_WORK_H
#define FAY_TRACE_WORK_WORK_H

#include <signal.h>

#include "fay/loader.h"
#include "fay/verify.h"

/* A process whose calls were counted, and how many calls its functions had, by the
 * session's points. */
struct fay_work_counted {
	pid_t pid;
	const struct fay_verdict *verdict;        /* which functions they are */
	const volatile sig_atomic_t *interrupted; /* not 0: the user wants to end */
	struct fay_session *session;
	const uint64_t *calls;
	size_t count;
	uint64_t all; /* their sum */
	uint64_t cpu; /* ns of processor time that it used meanwhile */
	uint64_t ns;  /* how long that took */
};
/* Ends the session. Returns what the counting took a call, ns; 0: that is not known, or too little
 * to be told from chance. `options`: those that it was counted with. */
double fay_work_counting(struct fay_work_counted *counted,
			 const struct fay_attach_options *options);

#endif
