/* SPDX-License-Identifier: MIT */
/*
 * System calls in a stopped process: one of its threads is borrowed. They run by PTRACE_SYSCALL
 * twice (entry and exit stop), not by single-stepping: a step's SIGTRAP would be forced on the
 * program, which changes its disposition if it ignores SIGTRAP. All signals are blocked meanwhile
 * (PTRACE_SETSIGMASK).
 */
#include "stop.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "loader/process/process.h"

/* bytes of a mapping, and of all, that are searched: the process stands meanwhile */
#define SEARCHED_EACH (UINT64_C(16) << 20)
#define SEARCHED_MAX (UINT64_C(1) << 30)

#define LOOKS 100u /* some 30 us */
#define LOOKS_MISSED 2u

/* A `syscall` instruction: in the vDSO if there is one, else in any executable mapping. */
static uint64_t find_syscall_insn(struct fay_stop *stop)
{
	const struct fay_maps *maps = fay_stop_maps(stop);
	uint64_t found = 0, searched = 0;
	uint8_t *bytes = malloc(1 << 16);

	if (!bytes || !maps) {
		free(bytes);
		return 0;
	}
	for (int pass = 0; pass < 2 && !found; pass++)
		for (size_t i = 0; i < maps->count && !found; i++) {
			const struct fay_map *map = &maps->items[i];
			bool vdso = !strcmp(map->name, "[vdso]");

			if (map->permissions[2] != 'x' || (pass == 0) != vdso || map->start >> 47)
				continue;
			for (uint64_t at = map->start;
			     at < map->end && at - map->start < SEARCHED_EACH &&
			     searched < SEARCHED_MAX && !found;
			     at += 1 << 16) {
				uint64_t left = map->end - at;
				size_t size = left < 1 << 16 ? left : 1 << 16;

				searched += size;
				if (fay_stop_read(stop, at, bytes, size))
					continue;
				for (size_t k = 0; k + 1 < size && !found; k++)
					if (bytes[k] == 0x0f && bytes[k + 1] == 0x05)
						found = at + k;
			}
		}
	free(bytes);
	return found;
}

/*
 * Whether the thread has stopped by now. Most calls take a few microseconds, less than it takes to
 * sleep and be woken where the thread runs on another processor. Where it does not, looking on
 * would only keep it from running: after LOOKS_MISSED looks for nothing it is waited for at once.
 */
static pid_t look_for_stop(struct fay_stop *stop, pid_t tid, int *status)
{
	pid_t got = waitpid(tid, status, __WALL | WNOHANG);

	for (unsigned look = 1; got == 0 && look < LOOKS && stop->looks_missed < LOOKS_MISSED;
	     look++)
		got = waitpid(tid, status, __WALL | WNOHANG);
	stop->looks_missed += got == 0 && stop->looks_missed < LOOKS_MISSED;
	return got;
}

/*
 * Resumes to the next system-call stop. 0, or -1: the thread is gone; or 1: it did not get there in
 * time, and has been stopped. A thread that cannot be interrupted, either (it sleeps in the kernel,
 * or is frozen), is waited for without limit: it has our registers, and to give up would let it go
 * with them.
 */
static int run_to_syscall_stop(struct fay_stop *stop, struct fay_stopped_thread *thread)
{
	bool interrupted = false;

	if (ptrace(PTRACE_SYSCALL, thread->tid, 0, 0))
		return -1;
	for (unsigned round = 0;; round++) {
		int status;
		pid_t got = look_for_stop(stop, thread->tid, &status);

		if (got < 0 || (got > 0 && !WIFSTOPPED(status)))
			return -1;
		if (got == 0) {
			/* A killed leader is reported only after its last thread, which waits for
			 * us. */
			if (round >= FAY_LEADER_ROUNDS &&
			    fay_thread_state(stop->pid, thread->tid) == 'Z')
				return -1;
			if (round >= stop->syscall_rounds && !interrupted)
				interrupted = ptrace(PTRACE_INTERRUPT, thread->tid, 0, 0) == 0;
			fay_stop_pause();
			continue;
		}
		if (WSTOPSIG(status) == (SIGTRAP | 0x80))
			return 0;
		if (interrupted && status >> 16 == PTRACE_EVENT_STOP)
			return 1;
		if (status >> 16 == 0 && !thread->signal) { /* SIGSTOP cannot be blocked: later */
			thread->signal = WSTOPSIG(status);
			thread->have_siginfo =
				ptrace(PTRACE_GETSIGINFO, thread->tid, 0, &thread->siginfo) == 0;
		}
		if (ptrace(PTRACE_SYSCALL, thread->tid, 0, 0))
			return -1;
	}
}

/* ERESTART_RESTARTBLOCK to ERESTARTSYS: results of interrupted system calls, which programs never
 * see */
#define ERESTART_FIRST (-516)
#define ERESTART_LAST (-512)

/* Runs the thread, which stands at a system call, to behind it. As run_to_syscall_stop(). */
static int run_syscall(struct fay_stop *stop, struct fay_stopped_thread *thread, int64_t *result)
{
	struct user_regs_struct after;
	int state = run_to_syscall_stop(stop, thread);

	if (state == 0)
		state = run_to_syscall_stop(stop, thread);
	if (state == 0 && ptrace(PTRACE_GETREGS, thread->tid, 0, &after))
		state = -1;
	if (state)
		return state;
	*result = (int64_t)after.rax;
	return *result >= ERESTART_FIRST && *result <= ERESTART_LAST;
}

/* PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG and what it tells, from the kernel's linux/ptrace.h
 * (6.4). */
#define GET_DISPATCH_CONFIGURATION 0x4211
struct dispatch_configuration {
	uint64_t mode, selector, offset, length;
};

/* Whether a system call run in the thread may kill it: by a filter, or as a signal to the program,
 * which handles its system calls itself (Syscall User Dispatch: Wine's way). */
static bool look_confined(const struct fay_stop *stop, const struct fay_stopped_thread *thread)
{
	struct dispatch_configuration configuration = { 0 };

	if (fay_thread_field(stop->pid, thread->tid, "Seccomp:") > 0)
		return true;
	return ptrace((enum __ptrace_request)GET_DISPATCH_CONFIGURATION, thread->tid,
		      sizeof(configuration), &configuration) == 0 &&
	       configuration.mode != 0;
}

static bool is_confined(const struct fay_stop *stop, struct fay_stopped_thread *thread)
{
	if (thread->confined == FAY_CONFINED_UNKNOWN)
		thread->confined = look_confined(stop, thread) ? FAY_CONFINED : FAY_NOT_CONFINED;
	return thread->confined == FAY_CONFINED;
}

/* The thread to borrow: one that is not confined, preferably one that is not about to handle a
 * signal. */
static struct fay_stopped_thread *pick_thread(struct fay_stop *stop, bool *confined)
{
	struct fay_stopped_thread *any = NULL;

	*confined = false;
	for (size_t i = 0; i < stop->count; i++) {
		struct fay_stopped_thread *thread = &stop->threads[i];

		if (!thread->stopped || thread->gone)
			continue;
		if (is_confined(stop, thread)) {
			*confined = true;
			continue;
		}
		if (!thread->signal)
			return thread;
		any = thread;
	}
	return any;
}

bool fay_stop_confined(struct fay_stop *stop)
{
	bool confined;

	return !pick_thread(stop, &confined) && confined;
}

int fay_stop_syscall(struct fay_stop *stop, long number, const uint64_t arguments[6],
		     int64_t *result, struct fay_error *error)
{
	bool confined;
	struct fay_stopped_thread *thread = pick_thread(stop, &confined);
	struct user_regs_struct work;
	uint64_t all = ~(uint64_t)0;
	int state = -1;

	if (!thread && confined)
		return fay_error_set(error, FAY_E_REFUSED,
				     "every thread of process %d runs under seccomp or uses "
				     "Syscall User Dispatch",
				     (int)stop->pid);
	if (!thread)
		return fay_error_set(error, FAY_E_REFUSED, "process %d is gone", (int)stop->pid);
	if (!stop->syscall_insn && !(stop->syscall_insn = find_syscall_insn(stop)))
		return fay_error_set(error, FAY_E_REFUSED,
				     "process %d has no `syscall` instruction to borrow",
				     (int)stop->pid);
	fay_maps_deinit(&stop->maps);
	work = thread->registers;
	work.rip = stop->syscall_insn;
	work.rax = (unsigned long)number;
	work.orig_rax = ~0ul; /* not in a system call: nothing to restart */
	work.rdi = arguments[0];
	work.rsi = arguments[1];
	work.rdx = arguments[2];
	work.r10 = arguments[3];
	work.r8 = arguments[4];
	work.r9 = arguments[5];
	if (!thread->have_mask)
		thread->have_mask = !ptrace(PTRACE_GETSIGMASK, thread->tid, 8, &thread->mask);
	if (thread->have_mask && !ptrace(PTRACE_SETSIGMASK, thread->tid, 8, &all) &&
	    !ptrace(PTRACE_SETREGS, thread->tid, 0, &work))
		state = run_syscall(stop, thread, result);
	if (state < 0) {
		thread->gone = true;
		return fay_error_set(error, FAY_E_REFUSED, "process %d is gone", (int)stop->pid);
	}
	ptrace(PTRACE_SETREGS, thread->tid, 0, &thread->registers);
	ptrace(PTRACE_SETSIGMASK, thread->tid, 8, &thread->mask);
	if (state && stop->syscall_rounds > FAY_SYSCALL_ROUNDS_AGAIN)
		stop->syscall_rounds = FAY_SYSCALL_ROUNDS_AGAIN;
	if (state)
		return fay_error_set(
			error, FAY_E_LIMIT,
			"process %d: system call %ld, which fay needs there, did not return",
			(int)stop->pid, number);
	return 0;
}
