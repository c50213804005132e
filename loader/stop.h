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
};

struct fay_stop {
	pid_t pid;
	int memory; /* /proc/PID/mem */
	struct fay_stopped_thread *threads;
	size_t count, capacity;
	uint64_t since; /* CLOCK_MONOTONIC ns of the first interrupt */
	int priority;   /* of the calling thread before */
	bool hurried;
	/* address of a `syscall` instruction in the target; 0 not looked for yet */
	uint64_t syscall_insn;
	bool no_room;            /* a system call there answered ENOMEM */
	unsigned syscall_rounds; /* pauses for which a system call there is waited for */
};

/* Stops every thread, or none. FAY_E_REFUSED: no permission or another tracer; FAY_E_LIMIT: a
 * thread would not stop; FAY_E_USAGE: no such process. */
int fay_stop_all(pid_t pid, uint32_t stop_timeout_ms, uint32_t tracer_wait_ms,
		 struct fay_stop *stop, struct fay_error *error);
/* Lets all threads go on. Returns for how many nanoseconds they were stopped. Safe if the process
 * is gone. */
uint64_t fay_stop_release(struct fay_stop *stop);

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
 * order (Linux, struct sigcontext): the rip, if this word may be the selectors; else 0. `before`
 * are the two words before it, 0 at first.
 */
uint64_t fay_stop_interrupted_at(uint64_t before[2], uint64_t word);

/* A short wait between two looks, of which `round` is the number: spins first, then sleeps, so that
 * short stops stay short. */
void fay_stop_pause(unsigned round);
/* pauses after which a thread without an answer is looked at: is it a leader that was killed? */
#define FAY_LEADER_ROUNDS 100u

uint64_t fay_loader_clock_ns(void);

#endif
