/* SPDX-License-Identifier: MIT */
/* The traps of a trace: where the kernel runs a query, since no jump fits
 * (docs/internals/traps.md). */
#ifndef FAY_TRACE_TRAPS_H
#define FAY_TRACE_TRAPS_H

#include "fay/bpf.h"
#include "fay/loader.h"
#include "process/process.h"

/* Of a place one; of a function's ends one for all exits alike, and one for its entry. Processes
 * that have the same file share them. */
#define FAY_TRAP_PROGRAMS_MAX 256u
#define FAY_TRAPS_MAX 4096u

struct fay_traps {
	FILE *messages; /* what is said goes there */
	struct fay_trap_item {
		const struct fay_session *session;
		struct fay_trap trap;
		pid_t pid;
		uint32_t program;
		uint32_t number; /* of the session's traps */
		bool set;
	} *items;
	size_t count;
	size_t set;      /* functions and markers, in each process, that have all theirs */
	size_t left_out; /* of these so many were given up again */
	/* what each program is for, of one process */
	const struct fay_trap *programs[FAY_TRAP_PROGRAMS_MAX];
	uint32_t program_count;
	pid_t processes[FAY_TARGETS_MAX];
	bool ended[FAY_TARGETS_MAX]; /* its first thread has, which was said */
	size_t process_count;
	/* at the last look: processor time of all processes in ns, events by program; monotonic ns
	 * when the next one is due */
	uint64_t cpu, events[FAY_TRAP_PROGRAMS_MAX], next;
	uint64_t next_check;
};

/* Takes up what the session has listed, as far as there is room. False: out of memory. */
bool fay_traps_take(struct fay_traps *traps, const struct fay_session *session, pid_t pid);
/* Sets those that can be, by an object that was made for `programs`. Of the others the first one's
 * error is in *first, if that has none yet. */
void fay_traps_set(struct fay_traps *traps, struct fay_bpf_session *session,
		   struct fay_error *first);
/* Whether one was set of the session, or instead of that skipped point of it. */
bool fay_traps_any(const struct fay_traps *traps, const struct fay_session *session);
bool fay_traps_has(const struct fay_traps *traps, const struct fay_session *session,
		   size_t skipped);
/* The kernel knows a process by its first thread, and sets no traps without it: says so where that
 * has ended. */
void fay_traps_check(struct fay_traps *traps, uint64_t now);
/* spending.c: to be called again and again. Gives up traps that take more than `share` of their
 * processes' processor time, and says so; 0: whatever they take. */
void fay_traps_look(struct fay_traps *traps, struct fay_bpf_session *session, double share,
		    uint64_t now);
void fay_traps_deinit(struct fay_traps *traps);

#endif
