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
#define FAY_TRAP_OBJECTS_MAX 32u
#define FAY_TRAPS_MAX 4096u /* at once */

struct fay_traps {
	bool places_only; /* functions' beginnings are for native probes alone */
	FILE *messages;   /* what is said goes there */
	struct fay_trap_item {
		/* by which it was found; NULL: that is gone, or it was found for another process */
		const struct fay_session *session;
		struct fay_trap trap; /* the file is the trace's, strings its program's */
		pid_t pid;
		uint32_t program;
		uint64_t point;  /* all traps of a function, or marker, in a process have it */
		uint32_t number; /* of the object's traps */
		bool set;
		/* another one has this number: the process has the place mapped more than once,
		 * and what is set once is at both */
		bool shared;
	} *items;
	size_t count;
	uint64_t points; /* the last one's */
	size_t set;      /* functions and markers, in each process, that had all theirs */
	size_t left_out; /* of these so many were given up again */
	struct fay_trap_program {
		struct fay_trap trap; /* one that it is for; its strings are ours */
		uint32_t object, number;
		uint64_t events; /* at the last look */
		bool given_up;   /* what it is for is not traced any more, */
		uint64_t since;  /* from then on (monotonic ns) */
	} *programs;
	uint32_t program_count;
	/* The programs that are made together. The last object may not be there yet: its programs
	 * are taken up, and given by fay_traps_new(). */
	struct fay_bpf_session *objects[FAY_TRAP_OBJECTS_MAX];
	uint32_t object_count;
	struct fay_trap_file { /* file_count of them */
		uint64_t device, inode;
		int fd;
	} *files;
	size_t file_count;
	struct fay_trap_process {
		pid_t pid;
		uint64_t born, stack; /* fay_process_start(), fay_process_stack_begin() */
		uint64_t cpu;         /* ns, at the last look */
		bool said;            /* that its first thread has ended */
	} *processes;                 /* that have traps */
	size_t process_count;
	size_t process_ended; /* since the last look */
	/* monotonic ns of the last look; when the next one is due; and of the next check */
	uint64_t looked, next, next_check;
};

/* Takes up what the session has listed, as far as there is room. False: out of memory. */
bool fay_traps_take(struct fay_traps *traps, const struct fay_session *session, pid_t pid);
/* Forgets what was taken up of the session, and is not set; programs that were made stay. */
void fay_traps_put_back(struct fay_traps *traps, const struct fay_session *session);
/* The programs that have to be made for what was taken up, FAY_TRAP_PROGRAMS_MAX at most: how many
 * there are. */
uint32_t fay_traps_new(const struct fay_traps *traps, const struct fay_trap **programs);
/* Those are made: the object is the caller's. NULL: they cannot be, and what they are for is
 * forgotten. */
void fay_traps_made(struct fay_traps *traps, struct fay_bpf_session *object);
/* Sets what was taken up; what cannot be is forgotten, and the first one's error is in *first, if
 * that has none yet. Their events count once all are set. */
void fay_traps_set(struct fay_traps *traps, struct fay_error *first);
/* Setting a function's trap takes some 10 ms. For more functions than these no process waits that
 * is forked or executed while it is followed. */
#define FAY_TRAPS_LATER 4u
/* In a child that `parent` has just forked, and that does not run yet: the same as there. False:
 * these are at more functions than that, and none is set. */
bool fay_traps_set_child(struct fay_traps *traps, pid_t parent, pid_t child);
/* Whether some process has so few that its children can have them. */
bool fay_traps_for_children(const struct fay_traps *traps);
/* Whether one was set of the session, or instead of that skipped point of it; how many of its
 * functions and markers. */
bool fay_traps_any(const struct fay_traps *traps, const struct fay_session *session);
bool fay_traps_has(const struct fay_traps *traps, const struct fay_session *session,
		   size_t skipped);
/* The session is gone. */
void fay_traps_forget(struct fay_traps *traps, const struct fay_session *session);
/* Takes away what was set in the process for the program before the one that it runs, or before
 * another process had its number; what is not mapped there any more; or what is in all that have
 * ended or run another program. */
void fay_traps_release_before(struct fay_traps *traps, pid_t pid);
void fay_traps_release_unloaded(struct fay_traps *traps, pid_t pid);
void fay_traps_release_ended(struct fay_traps *traps);
/* Whether events count, of all. */
void fay_traps_count(struct fay_traps *traps, bool counted);
/* To be called again and again: releases what has ended. Where a trap is by a perf event, the
 * kernel knows a process by its first thread, and sets none without it: says so where that has
 * ended. */
void fay_traps_check(struct fay_traps *traps, uint64_t now);
/* spending.c: to be called again and again. Gives up traps that take more than `share` of their
 * processes' processor time, and says so; 0: whatever they take. */
void fay_traps_look(struct fay_traps *traps, double share, uint64_t now);
void fay_traps_deinit(struct fay_traps *traps);

/* Between the files: takes away those items that `which` chooses, and forgets them. */
void fay_traps_remove(struct fay_traps *traps,
		      bool (*which)(const struct fay_traps *traps, const struct fay_trap_item *item,
				    const void *context),
		      const void *context);

#endif
