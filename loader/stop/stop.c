/* SPDX-License-Identifier: MIT */
/*
 * Stopping a process, and its memory. Seizing its threads: stop_seize.c; system calls in it:
 * stop_call.c.
 *
 * PTRACE_SEIZE and PTRACE_INTERRUPT leave no trace that the program can see: no SIGSTOP, and a
 * system call that was interrupted is restarted by the kernel when the registers are as they were,
 * orig_rax included. ptrace is also the lock between several fay processes: only one can hold a
 * thread.
 *
 * Limits: a thread that waits for its vfork child cannot be stopped, and the child runs in the same
 * memory; that is waited for, then an error. All calls on one struct fay_stop must come from one
 * thread (ptrace's rule).
 */
#include "stop.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "loader/process/process.h"
#include "stop_private.h"

#define LOOK_ROUNDS 8u
#define ENDS_ROUNDS 64u
#define LOOK_COUNTED_NS UINT64_C(100000000)
#define RELEASE_ROUNDS 1000u
#define INTERRUPT_ROUNDS 64u
#define STANDSTILL_FACTOR 10u /* a time to wait takes so many times as long by the clock at most */

/* The kernel tells of each stop by SIGCHLD, which a keeper has blocked. To sleep until then leaves
 * the processor to the thread that is to stop: on a busy machine it may be on this very one. */
void fay_stop_pause(void)
{
	const struct timespec nap = { 0, 50000 };
	sigset_t stops;

	sigemptyset(&stops);
	sigaddset(&stops, SIGCHLD);
	sigtimedwait(&stops, NULL, &nap);
}

static long yama_scope(void)
{
	FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	long scope = 0;

	if (file) {
		if (fscanf(file, "%ld", &scope) != 1)
			scope = 0;
		fclose(file);
	}
	return scope;
}

static int no_permission(pid_t pid, struct fay_error *error)
{
	long scope = yama_scope();
	long uid = fay_thread_field(pid, pid, "Uid:");

	if (scope == 3)
		return fay_error_set(error, FAY_E_REFUSED,
				     "cannot attach to process %d: kernel.yama.ptrace_scope is 3, "
				     "which forbids ptrace until the next boot",
				     (int)pid);
	if (scope > 0 && geteuid() != 0)
		return fay_error_set(error, FAY_E_REFUSED,
				     "cannot attach to process %d: kernel.yama.ptrace_scope is "
				     "%ld; run as root, give fay CAP_SYS_PTRACE, or set it to 0",
				     (int)pid, scope);
	return fay_error_set(error, FAY_E_REFUSED,
			     "cannot attach to process %d (uid %ld) as uid %ld: needs the same "
			     "user and a process that is dumpable, or CAP_SYS_PTRACE",
			     (int)pid, uid, (long)geteuid());
}

static void note_stop(struct fay_stopped_thread *thread, int status)
{
	if (!WIFSTOPPED(status)) {
		thread->gone = true;
		return;
	}
	thread->stopped = ptrace(PTRACE_GETREGS, thread->tid, 0, &thread->registers) == 0;
	if (!thread->stopped) /* killed since: its end is still to be waited for */
		return;
	if (status >> 16 == 0 && WSTOPSIG(status) != (SIGTRAP | 0x80)) { /* about to get a signal */
		thread->signal = WSTOPSIG(status);
		thread->have_siginfo =
			ptrace(PTRACE_GETSIGINFO, thread->tid, 0, &thread->siginfo) == 0;
	}
}

/*
 * A thread about to get a signal gets it first and stops at the handler's first instruction: were
 * the signal held back and given again on release, a system call run in this thread meanwhile would
 * cost it its siginfo (si_code, si_value, a fault's si_addr).
 */
static bool deliver_first(struct fay_stopped_thread *thread)
{
	if (!thread->stopped || !thread->signal || ptrace(PTRACE_INTERRUPT, thread->tid, 0, 0) ||
	    ptrace(PTRACE_CONT, thread->tid, 0, (long)thread->signal))
		return false;
	thread->stopped = thread->have_siginfo = false;
	thread->signal = 0;
	return true;
}

static void collect(struct fay_stop *stop, struct fay_stopped_thread *thread)
{
	int status;
	pid_t got = waitpid(thread->tid, &status, __WALL | WNOHANG);

	/* if it stood, it was killed: or this is another thread by the same number, see
	 * leader_stands() */
	if (got == thread->tid) {
		thread->stopped = false;
		note_stop(thread, status);
		deliver_first(thread);
	} else if (got < 0) {
		thread->gone = true;
		/* it executes a program, and is the first one by now, which may not have been told
		 * to stop */
		ptrace(PTRACE_INTERRUPT, stop->pid, 0, 0);
	} else if (!thread->stopped && thread->tid == stop->pid &&
		   fay_thread_state(stop->pid, thread->tid) == 'Z') {
		thread->gone = true; /* a dead leader is reported only after its last thread */
	}
}

/*
 * One look at every thread that has not stopped yet, or at `all`: one that executes a program kills
 * the others, stopped or not, and waits until we have waited for their ends. Returns how many have
 * not stopped afterwards.
 */
static size_t collect_stops(struct fay_stop *stop, bool all)
{
	size_t running = 0;

	for (size_t i = 0; i < stop->count; i++) {
		struct fay_stopped_thread *thread = &stop->threads[i];

		if (!thread->gone && (all || !thread->stopped))
			collect(stop, thread);
		running += !thread->stopped && !thread->gone;
	}
	return running;
}

static int did_not_stop(struct fay_stop *stop, uint32_t timeout_ms, struct fay_error *error)
{
	for (size_t i = 0; i < stop->count; i++) {
		struct fay_stopped_thread *thread = &stop->threads[i];

		if (!thread->stopped && !thread->gone)
			return fay_error_set(
				error, FAY_E_LIMIT,
				"thread %d of process %d did not stop within %u ms (state %c%s)",
				(int)thread->tid, (int)stop->pid, timeout_ms,
				fay_thread_state(stop->pid, thread->tid),
				fay_thread_state(stop->pid, thread->tid) == 'D'
					? ": waiting in the kernel, e.g. for its vfork child"
					: "");
	}
	return fay_error_set(error, FAY_E_LIMIT,
			     "process %d makes threads faster than they can be stopped",
			     (int)stop->pid);
}

/*
 * Whether the first thread still stands as it was found: one that executes a program takes its
 * number and its place, while its own number vanishes. That one is then waited for like any other.
 */
static bool leader_stands(struct fay_stop *stop)
{
	struct fay_stopped_thread *leader = fay_stop_find(stop, stop->pid);
	struct user_regs_struct registers;

	if (!leader)
		return true;
	leader->stopped = ptrace(PTRACE_GETREGS, leader->tid, 0, &registers) == 0;
	if (!leader->stopped) {
		leader->have_siginfo = false;
		leader->signal = 0;
		ptrace(PTRACE_INTERRUPT, leader->tid, 0, 0);
	}
	return leader->stopped;
}

pid_t fay_stop_any(const struct fay_stop *stop)
{
	for (size_t i = 0; i < stop->count; i++)
		if (stop->threads[i].stopped && !stop->threads[i].gone)
			return stop->threads[i].tid;
	return 0;
}

/* A first thread that does not stop may be one that took the first one's place after it had been
 * told. */
static void tell_again(struct fay_stop *stop)
{
	struct fay_stopped_thread *leader = fay_stop_find(stop, stop->pid);

	if (leader && !leader->stopped)
		ptrace(PTRACE_INTERRUPT, leader->tid, 0, 0);
}

/* What is left of a time to wait. A machine, or this process, that stands still between two looks
 * uses up LOOK_COUNTED_NS of it at most: others did not get to run either. */
struct patience {
	uint64_t left, looked, end; /* ns */
};

static struct patience patience_of(uint32_t milliseconds)
{
	uint64_t now = fay_loader_clock_ns(), time = milliseconds * UINT64_C(1000000);

	return (struct patience){ time, now, now + STANDSTILL_FACTOR * time };
}

static bool patience_is_over(struct patience *patience)
{
	uint64_t now = fay_loader_clock_ns(), passed = now - patience->looked;

	if (passed > LOOK_COUNTED_NS)
		passed = LOOK_COUNTED_NS;
	patience->looked = now;
	patience->left -= passed < patience->left ? passed : patience->left;
	return patience->left == 0 || now >= patience->end;
}

/* Returns 0 stopped; -1 another tracer holds it (retry); else an error. */
static int stop_once(struct fay_stop *stop, uint32_t timeout_ms, pid_t *tracer,
		     struct fay_error *error)
{
	struct patience patience = patience_of(timeout_ms);
	bool settled = false;
	size_t running = 0;

	stop->since = fay_loader_clock_ns();
	for (unsigned round = 0;; round++) {
		size_t fresh = 0;
		int code = 0;
		enum fay_seized result = FAY_SEIZED;

		/* While threads are still to stop, a look at the list of all of them is seldom
		 * worth its time. */
		if (running == 0 || round % LOOK_ROUNDS == 0)
			result = fay_stop_seize(stop, &fresh, tracer, &code, error);
		if (code)
			return code;
		if (result == FAY_SEIZED_BY_OTHER)
			return -1;
		if (result == FAY_SEIZED_FORBIDDEN)
			return no_permission(stop->pid, error);
		running = collect_stops(stop, result == FAY_SEIZED_BUSY || settled ||
						      round % ENDS_ROUNDS == ENDS_ROUNDS - 1);
		/* A thread that still ran during the look may have made another behind it: only a
		 * look with all stopped counts. */
		if (result == FAY_SEIZED && fresh == 0 && running == 0 && settled &&
		    leader_stands(stop))
			return fay_stop_any(stop) ? 0
						  : fay_error_set(error, FAY_E_REFUSED,
								  "process %d is exiting or gone",
								  (int)stop->pid);
		if (result == FAY_SEIZED_GONE && running == 0)
			return fay_error_set(error, FAY_E_REFUSED, "no such process: %d",
					     (int)stop->pid);
		if (round % ENDS_ROUNDS == ENDS_ROUNDS - 1)
			tell_again(stop);
		if (patience_is_over(&patience))
			return did_not_stop(stop, timeout_ms, error);
		settled = running == 0;
		if (!settled)
			fay_stop_pause();
	}
}

/*
 * While a program is stopped, each moment for which this thread waits for a processor is one for
 * which the program waits too: on a busy machine that is most of the pause. So it goes first, if it
 * may.
 */
static void hurry(struct fay_stop *stop)
{
	errno = 0;
	stop->priority = getpriority(PRIO_PROCESS, 0);
	stop->hurried = errno == 0 && setpriority(PRIO_PROCESS, 0, -20) == 0;
}

int fay_stop_all(pid_t pid, uint32_t stop_timeout_ms, uint32_t tracer_wait_ms,
		 struct fay_stop *stop, struct fay_error *error)
{
	struct patience patience = patience_of(tracer_wait_ms);
	char path[80], comm[64];
	pid_t tracer = 0;
	bool tried = false;
	int code;

	for (;;) {
		memset(stop, 0, sizeof(*stop));
		stop->pid = pid;
		stop->memory = -1;
		stop->syscall_rounds = FAY_SYSCALL_ROUNDS;
		hurry(stop);
		code = stop_once(stop, stop_timeout_ms, &tracer, error);
		if (code == 0)
			break;
		fay_stop_release(stop);
		if (code > 0)
			return code;
		if (!tracer && !tried) { /* perhaps there is none */
			int refusal = fay_stop_refusal();

			if (refusal)
				return fay_error_set(
					error, FAY_E_REFUSED,
					"cannot attach to process %d: ptrace is refused even for a "
					"child of fay: %s (a sandbox, as of a container)",
					(int)pid, strerror(refusal));
			tried = true;
		}
		if (patience_is_over(&patience)) {
			if (!tracer)
				return fay_error_set(
					error, FAY_E_REFUSED,
					"process %d is being traced from another PID namespace, by "
					"a tracer that did not detach within %u ms",
					(int)pid, tracer_wait_ms);
			fay_process_comm(tracer, comm);
			return fay_error_set(error, FAY_E_REFUSED,
					     "process %d is being traced by process %d (%s), which "
					     "did not detach within %u ms; end that one first, "
					     "or ask for system calls, which need no ptrace",
					     (int)pid, (int)tracer, comm, tracer_wait_ms);
		}
		usleep(500 + (unsigned)(fay_loader_clock_ns() / 1000 % 1000));
	}
	snprintf(path, sizeof(path), "/proc/%d/task/%d/mem", (int)pid, (int)fay_stop_any(stop));
	stop->memory = open(path, O_RDWR | O_CLOEXEC);
	if (stop->memory < 0) {
		int saved = errno;

		fay_stop_release(stop);
		return fay_error_set(error, FAY_E_REFUSED, "%s: %s", path, strerror(saved));
	}
	fay_rseq_abort(stop);
	return 0;
}

/*
 * System calls that answer EINTR after any interruption, where others are restarted by the kernel
 * (signal(7)): with a time limit that is the socket's (SO_RCVTIMEO, SO_SNDTIMEO) all that receive,
 * send, accept and connect. The program would see that it was stopped. With ERESTARTNOHAND in rax
 * the kernel restarts them, as it restarts them itself on sockets without a limit, unless a signal
 * handler is to run: then the program gets its EINTR. What was transferred in part has its number
 * as answer, not EINTR. close() is not among them: the descriptor is gone.
 */
static void restart_silently(struct fay_stopped_thread *thread)
{
	static const unsigned short calls[] = { SYS_epoll_wait,
						SYS_epoll_pwait,
						441 /* epoll_pwait2 */,
						SYS_semop,
						SYS_semtimedop,
						SYS_rt_sigtimedwait,
						SYS_io_getevents,
						333 /* io_pgetevents */,
						426 /* io_uring_enter */,
						SYS_accept,
						SYS_accept4,
						SYS_connect,
						SYS_read,
						SYS_readv,
						SYS_preadv2,
						SYS_recvfrom,
						SYS_recvmsg,
						SYS_recvmmsg,
						SYS_write,
						SYS_writev,
						SYS_pwritev2,
						SYS_sendto,
						SYS_sendmsg,
						SYS_sendmmsg,
						SYS_sendfile,
						SYS_splice };

	if (!thread->stopped || (int64_t)thread->registers.rax != -EINTR)
		return;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (thread->registers.orig_rax == calls[i]) {
			thread->registers.rax = (unsigned long)-514; /* ERESTARTNOHAND */
			thread->dirty = true;
		}
}

/*
 * Whether a thread has been let go, or is gone. One that was interrupted but did not get to its
 * stop must get there first; one that was killed, be it by another of the process that has been let
 * go and executes a program, must have its end waited for, or that one waits for it.
 */
static bool let_go(struct fay_stopped_thread *thread)
{
	int status;
	pid_t got;

	if (thread->gone)
		return true;
	do {
		restart_silently(thread);
		if (thread->dirty)
			ptrace(PTRACE_SETREGS, thread->tid, 0, &thread->registers);
		if (thread->have_siginfo)
			ptrace(PTRACE_SETSIGINFO, thread->tid, 0, &thread->siginfo);
		if (ptrace(PTRACE_DETACH, thread->tid, 0, (long)thread->signal) == 0)
			return true;
		thread->stopped = thread->dirty = thread->have_siginfo = false;
		got = waitpid(thread->tid, &status, __WALL | WNOHANG);
		if (got == thread->tid)
			note_stop(thread, status);
	} while (got == thread->tid && !thread->gone);
	return got != 0;
}

/* All together are waited for so long: a thread may get to its end only after others have. What is
 * left then is let go by the end of this process, a keeper. */
static void let_all_go(struct fay_stop *stop)
{
	size_t left = stop->count;

	for (unsigned round = 0; left > 0 && round < RELEASE_ROUNDS; round++) {
		if (round > 0)
			fay_stop_pause();
		left = 0;
		for (size_t i = 0; i < stop->count; i++) {
			struct fay_stopped_thread *thread = &stop->threads[i];

			thread->gone = let_go(thread);
			left += !thread->gone;
			/* it may have taken the first one's place, untold */
			if (!thread->gone && round % INTERRUPT_ROUNDS == INTERRUPT_ROUNDS - 1)
				ptrace(PTRACE_INTERRUPT, thread->tid, 0, 0);
		}
	}
}

const struct fay_maps *fay_stop_maps(struct fay_stop *stop)
{
	return stop->maps.count || !fay_maps_read(stop->pid, &stop->maps, NULL) ? &stop->maps
										: NULL;
}

uint64_t fay_stop_release(struct fay_stop *stop)
{
	uint64_t since = stop->since;

	let_all_go(stop);
	if (stop->memory >= 0)
		close(stop->memory);
	if (stop->hurried)
		setpriority(PRIO_PROCESS, 0, stop->priority);
	free(stop->threads);
	free(stop->places);
	fay_maps_deinit(&stop->maps);
	memset(stop, 0, sizeof(*stop));
	stop->memory = -1;
	return since ? fay_loader_clock_ns() - since : 0;
}

int fay_stop_read(const struct fay_stop *stop, uint64_t address, void *to, size_t size)
{
	return pread(stop->memory, to, size, (off_t)address) == (ssize_t)size ? 0 : -1;
}

int fay_stop_write(const struct fay_stop *stop, uint64_t address, const void *from, size_t size)
{
	return pwrite(stop->memory, from, size, (off_t)address) == (ssize_t)size ? 0 : -1;
}
