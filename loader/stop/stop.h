/* SPDX-License-Identifier: MIT */
/*
 * A stopped process: all its threads held by ptrace, with access to its memory and registers, and
 * system calls run in it.
 */
#ifndef FAY_LOADER_STOP_H
#define FAY_LOADER_STOP_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "fay/error.h"
#include "loader/process/process.h"

#define FAY_STOP_TIMEOUT_MS 2000u /* give up if the threads cannot be stopped in this time */
#define FAY_TRACER_WAIT_MS 5000u  /* wait for another tracer to let go */
/* pauses, some 10 s in which this process itself got to run: time alone also passes while a machine
 * stands still */
#define FAY_SYSCALL_ROUNDS 100000u
/* of each call after one that did not end: all threads stand meanwhile, and undoing takes several
 * calls */
#define FAY_SYSCALL_ROUNDS_AGAIN 1000u

struct fay_stopped_thread {
	pid_t tid;
	bool stopped;
	bool gone;
	int signal; /* to be delivered on release; 0 none */
	bool have_siginfo;
	siginfo_t siginfo;
	/* as found; changed ones are written back on release if `dirty` */
	struct user_regs_struct registers;
	bool dirty;
	/* the signals that it has blocked, once they are asked for */
	bool have_mask;
	uint64_t mask;
	/* whether a system call run in it may kill it; it cannot come to be so while it stands */
	enum { FAY_CONFINED_UNKNOWN, FAY_CONFINED, FAY_NOT_CONFINED } confined;
};

struct fay_stop {
	pid_t pid;
	int memory; /* /proc/PID/mem */
	struct fay_stopped_thread *threads;
	size_t count, capacity;
	/* where threads are by their numbers: 2 * capacity of those in `threads`, from 1 on; 0 none
	 */
	uint32_t *places;
	uint64_t since; /* CLOCK_MONOTONIC ns of the first interrupt */
	int priority;   /* of the calling thread before */
	bool hurried;
	struct fay_maps maps; /* fay_stop_maps(); read again behind each system call there */
	/* address of a `syscall` instruction in the target; 0 not looked for yet */
	uint64_t syscall_insn;
	bool no_room;            /* a system call there answered ENOMEM */
	unsigned syscall_rounds; /* pauses for which a system call there is waited for */
	unsigned looks_missed;   /* how often looking for one's end without a pause was in vain */
};

/* Stops every thread, or none. FAY_E_REFUSED: no permission or another tracer; FAY_E_LIMIT: a
 * thread would not stop; FAY_E_USAGE: no such process. */
int fay_stop_all(pid_t pid, uint32_t stop_timeout_ms, uint32_t tracer_wait_ms,
		 struct fay_stop *stop, struct fay_error *error);
/* What it has mapped. NULL: that cannot be read. Valid until the next system call there. */
const struct fay_maps *fay_stop_maps(struct fay_stop *stop);
/* Lets all threads go on. Returns for how many nanoseconds they were stopped. Safe if the process
 * is gone. */
uint64_t fay_stop_release(struct fay_stop *stop);

/* A thread that stands: the first thread may have ended long before. 0: none does. */
pid_t fay_stop_any(const struct fay_stop *stop);
int fay_stop_read(const struct fay_stop *stop, uint64_t address, void *to, size_t size);
/* Also to pages that are not writable there (the kernel copies private ones first). */
int fay_stop_write(const struct fay_stop *stop, uint64_t address, const void *from, size_t size);

/*
 * Runs one system call in the target. *result is the kernel's (negative errno). FAY_E_LIMIT: it did
 * not end in stop->syscall_rounds and was interrupted; the thread is as it was, and further calls
 * in this stop are waited for FAY_SYSCALL_ROUNDS_AGAIN at most.
 */
int fay_stop_syscall(struct fay_stop *stop, long number, const uint64_t arguments[6],
		     int64_t *result, struct fay_error *error);

/* No thread may run one: all are under seccomp, or have their system calls sent to themselves. */
bool fay_stop_confined(struct fay_stop *stop);

/*
 * Every aligned word on every thread's stack, from rsp up; where signal handlers have stacks of
 * their own, on the interrupted ones, too. Stops early if the visitor returns true, and returns
 * that; true too if it cannot look.
 */
typedef bool fay_word_visitor(void *context, uint64_t address, uint64_t word);
bool fay_stop_visit_words(struct fay_stop *stop, fay_word_visitor *visit, void *context);
/*
 * For visitors. A signal frame holds rip, eflags and the segment selectors, cs lowest, in this
 * order (Linux, struct sigcontext). The kernel sets bit 1 of eflags always, and those of gs and fs
 * to 0. The rip, if this word may be the selectors; else 0. `before` are the two words before it, 0
 * at first.
 */
uint64_t fay_stop_interrupted_at(uint64_t before[2], uint64_t word);

/* A wait of 50 us at most between two looks, shorter if a thread stops meanwhile. */
void fay_stop_pause(void);
/* pauses after which a thread without an answer is looked at: is it a leader that was killed? */
#define FAY_LEADER_ROUNDS 100u
/* Of restartable sequences (rseq(2)): as the kernel looks at them. */
struct rseq_cs;
bool fay_rseq_is_valid(const struct rseq_cs *section);

/* --- text.c --- */
/*
 * A copy of the pages that hold many patched places, so that thousands of them are read and written
 * with a handful of system calls while the target is stopped.
 *
 *	make room     before the stop: one buffer, neighbouring pages side by side, its memory
 *		      already present
 *	read          in the stop: one read a run of neighbouring pages
 *	at, change    the bytes of a place; changing marks its pages
 *	write         one read and one write a run of changed pages
 *
 * or, instead of the last three, for places whose bytes are known before:
 *
 *	replace       one run after the other is read, changed and written
 *	swap          compares and changes the bytes of a place in that run
 *
 * Whole pages are written. While the target is stopped the kernel may still change its text, when
 * somebody sets a uprobe or takes one away: so a run is read again right before it is written, what
 * others have changed stays as it is, and a place that is not what it was when it was changed here
 * is a failure.
 */
struct fay_text_buffer;
struct fay_text_page {
	uint64_t address;
	bool readable, changed;
};
#define FAY_TEXT_CHANGE_MAX 8u
struct fay_text_edit {
	uint64_t address, order;
	uint8_t size, was[FAY_TEXT_CHANGE_MAX], bytes[FAY_TEXT_CHANGE_MAX];
};
struct fay_text {
	struct fay_text_page *pages; /* sorted */
	size_t count, capacity;
	uint8_t *bytes; /* count pages */
	size_t near;    /* the page that was changed last */
	pid_t thread;
	struct fay_text_buffer *buffer; /* that they lie in */
	/* in the order of their making, and sorted by address when written */
	struct fay_text_edit *edits;
	size_t edit_count, edit_capacity;
};

/* The bytes [address, address + size) will be wanted. Any order, any number of times. */
int fay_text_want(struct fay_text *text, uint64_t address, size_t size, struct fay_error *error);
/* All is said: allocates. */
int fay_text_ready(struct fay_text *text, struct fay_error *error);
/* `memory` is /proc/PID/mem, `thread` one of the process's that stands stopped; 0: none is known.
 * Pages that cannot be read are marked; that is no failure. */
void fay_text_read(struct fay_text *text, int memory, pid_t thread);
/* NULL if it was not wanted or is not readable. Valid until fay_text_deinit(). */
const uint8_t *fay_text_at(const struct fay_text *text, uint64_t address, size_t size);
/* FAY_TEXT_CHANGE_MAX bytes at most. False: a byte is missing, or out of memory. */
bool fay_text_change(struct fay_text *text, uint64_t address, const void *bytes, size_t size);
/* Writes the changed pages. On failure errno is set (EBUSY: somebody has changed a place
 * meanwhile), and some may have been written; those that have not stay marked. */
int fay_text_write(struct fay_text *text, int memory);
/* Changes what was wanted of [start, end), which has just been read, by fay_text_swap(). False: not
 * all is as it should be, and nothing of it is written. */
typedef bool fay_text_changer(void *context, uint64_t start, uint64_t end);
/* -1: errno is set; EBUSY: a changer has found something else, or what was wanted is gone. Runs
 * before that may have been written. */
int fay_text_replace(struct fay_text *text, int memory, pid_t thread, fay_text_changer *change,
		     void *context);
/* The place's first `size` bytes, if it still has `was`. False: it has not, or was not wanted. */
bool fay_text_swap(struct fay_text *text, uint64_t address, const void *was, size_t was_size,
		   const void *bytes, size_t size);
void fay_text_deinit(struct fay_text *text);

/* --- keeper.c: a transaction on a stopped process that goes on to its end whatever becomes of fay
 * --- */
/*
 * Runs the transaction in a process of its own that shares this one's memory and files, and waits
 * for it. Its result, or FAY_E_LIMIT: no process could be made, nothing was done; or
 * FAY_E_INTERNAL: it was killed.
 */
int fay_keeper_run(int (*transaction)(void *context), void *context, struct fay_error *error);
/* Within a transaction: fay is gone, nobody waits for the result. */
bool fay_keeper_orphaned(void);

#endif
