/* SPDX-License-Identifier: MIT */
/* Seizing a process's threads, for stop.c alone. */
#ifndef FAY_LOADER_STOP_PRIVATE_H
#define FAY_LOADER_STOP_PRIVATE_H

#include "stop.h"

/* BUSY: the process executes a program; its threads' ends have to be waited for before it is tried
 * again. */
enum fay_seized {
	FAY_SEIZED,
	FAY_SEIZED_GONE,
	FAY_SEIZED_BY_OTHER,
	FAY_SEIZED_FORBIDDEN,
	FAY_SEIZED_BUSY
};

/* Seizes and interrupts the threads that are new. *fresh: how many; *tracer: who has one (BY_OTHER;
 * 0: somebody in another PID namespace); *code: an error, or 0. GONE: there is no such process. */
enum fay_seized fay_stop_seize(struct fay_stop *stop, size_t *fresh, pid_t *tracer, int *code,
			       struct fay_error *error);

/* Whether ptrace is refused to us for any process, a child of ours, too: errno; 0: it is not, or
 * that could not be tried. */
int fay_stop_refusal(void);

/* One that is not gone; NULL. */
struct fay_stopped_thread *fay_stop_find(const struct fay_stop *stop, pid_t tid);

/* rseq.c: each stopped thread that is in a restartable sequence goes to its abort handler, as the
 * kernel would have it go on its way back to the program. */
void fay_rseq_abort(struct fay_stop *stop);

#endif
