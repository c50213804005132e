/* SPDX-License-Identifier: MIT */
/* Between job.c (windows and life), kept.c (what is sent and not yet acknowledged) and reduce.c
 * (the children's partials). */
#ifndef FAY_CLUSTER_JOB_PARTS_H
#define FAY_CLUSTER_JOB_PARTS_H

#include "job.h"

#define SECOND 1000000000ull

/* --- kept.c --- */

/* to 0: the root */
void fay_job_send(struct fay_job *job, uint64_t to, const void *bytes, size_t size);
/* To the root, or the stream that stands for it. */
void fay_job_send_kept(struct fay_job *job, const struct fay_kept *kept);
/* Keeps a copy of the message in `out`; false: no memory. */
bool fay_job_keep(struct fay_job *job, uint64_t window);
/* Lets go of what is kept up to a window or a sequence. */
void fay_job_acknowledge(struct fay_job *job, uint64_t window, uint64_t sequence);
/* The server's answers to what it was to store. */
void fay_job_receive_stored(struct fay_job *job);
/* What is not acknowledged for long, or was sent before the connection was lost, goes to the root
 * again, alone. */
void fay_job_resend(struct fay_job *job);

/* --- reduce.c --- */

bool fay_job_is_inner(const struct fay_job *job);
void fay_job_assign(struct fay_job *job, const struct fay_wire_assign *assign);
/* A partial of a child, or of the job itself. */
void fay_job_collect(struct fay_job *job, const struct fay_wire_head *head);
/* The same of another agent, in the bytes of the message: one whose sender knows a newer tree is
 * kept until this agent has heard of it. */
void fay_job_collect_message(struct fay_job *job, const struct fay_wire_head *head,
			     const void *bytes, size_t size);
/* Sends what is pending if it is due, or `always`. */
void fay_job_forward(struct fay_job *job, bool always);
void fay_job_collect_deinit(struct fay_job *job);

#endif
