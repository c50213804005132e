/* SPDX-License-Identifier: MIT */
/*
 * Seizing threads. PTRACE_SEIZE waits while the process executes a program (execve), and that waits
 * until the process's other threads are gone: for the end of one that is traced its tracer has to
 * wait, which is us. So that neither waits for the other for ever, a timer breaks the seizing off,
 * and stop.c waits for the threads before it tries again. The kernel would restart the system call
 * behind a signal's handler; this one has it answer EINTR, if it has not been made. Other requests,
 * which do not wait, are let be: a thread that is not told to stop would run on. A look that finds
 * no thread that is new needs no timer.
 *
 * The kernel's workers among the threads (of io_uring, say) are let be: they run no code of the
 * program, and the request that one waits for would be broken off.
 *
 * The thread that executes a program takes over the first thread's number. If we had seized it by
 * its own number, it is ours by the new one.
 */
#include "stop_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "loader/process/process.h"

#define THREADS_MAX 65536u
#define SEIZE_NS 5000000L /* for which one is waited for, at least */
#define SEIZE_SIGNAL (SIGRTMAX - 1)

/* Where the search for a thread begins; `capacity` is a power of two. */
static size_t place_of(const struct fay_stop *stop, pid_t tid)
{
	return ((uint32_t)tid * 0x9e3779b1u) & (2 * stop->capacity - 1);
}

static size_t next_place(const struct fay_stop *stop, size_t place)
{
	return (place + 1) & (2 * stop->capacity - 1);
}

/* Half of the places at least are free, so that each search ends. */
struct fay_stopped_thread *fay_stop_find(const struct fay_stop *stop, pid_t tid)
{
	if (stop->capacity == 0)
		return NULL;
	for (size_t at = place_of(stop, tid); stop->places[at]; at = next_place(stop, at)) {
		struct fay_stopped_thread *thread = &stop->threads[stop->places[at] - 1];

		if (thread->tid == tid && !thread->gone)
			return thread;
	}
	return NULL;
}

static void place_thread(struct fay_stop *stop, size_t index)
{
	size_t at = place_of(stop, stop->threads[index].tid);

	while (stop->places[at])
		at = next_place(stop, at);
	stop->places[at] = (uint32_t)index + 1;
}

/* Room for as many threads again. */
static bool grow(struct fay_stop *stop)
{
	size_t more = stop->capacity ? 2 * stop->capacity : 32;
	struct fay_stopped_thread *threads;
	uint32_t *places;

	if (more > THREADS_MAX)
		return false;
	threads = realloc(stop->threads, more * sizeof(*threads));
	if (!threads)
		return false;
	stop->threads = threads;
	places = calloc(2 * more, sizeof(*places));
	if (!places)
		return false;
	free(stop->places);
	stop->places = places;
	stop->capacity = more;
	for (size_t i = 0; i < stop->count; i++)
		place_thread(stop, i);
	return true;
}

static int thread_add(struct fay_stop *stop, pid_t tid, struct fay_error *error)
{
	if (stop->count == stop->capacity && !grow(stop))
		return fay_error_set(error, FAY_E_LIMIT, "process %d has too many threads",
				     (int)stop->pid);
	stop->threads[stop->count] = (struct fay_stopped_thread){ .tid = tid };
	place_thread(stop, stop->count++);
	return 0;
}

static void break_off(int number, siginfo_t *information, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
	const uint8_t *at = (const uint8_t *)registers[REG_RIP];

	(void)number, (void)information;
	/* `syscall`, to be run, or run again */
	if (registers[REG_RAX] == SYS_ptrace && registers[REG_RDI] == PTRACE_SEIZE &&
	    at[0] == 0x0f && at[1] == 0x05) {
		registers[REG_RIP] += 2;
		registers[REG_RAX] = -EINTR;
	}
}

/* What was before the timer. */
struct breaker {
	timer_t timer;
	bool begun, armed;
	struct sigaction action;
	sigset_t mask;
};

static void breaker_start(struct breaker *breaker)
{
	struct sigaction action = { .sa_sigaction = break_off,
				    .sa_flags = SA_SIGINFO | SA_RESTART };
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SEIZE_SIGNAL };
	const struct itimerspec often = { { 0, SEIZE_NS }, { 0, SEIZE_NS } };
	sigset_t only;

	if (breaker->begun)
		return;
	breaker->begun = true;
	event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	breaker->armed = timer_create(CLOCK_MONOTONIC, &event, &breaker->timer) == 0;
	if (!breaker->armed)
		return;
	sigaction(SEIZE_SIGNAL, &action, &breaker->action);
	sigemptyset(&only);
	sigaddset(&only, SEIZE_SIGNAL);
	sigprocmask(SIG_UNBLOCK, &only, &breaker->mask);
	timer_settime(breaker->timer, 0, &often, NULL);
}

static void breaker_end(struct breaker *breaker)
{
	if (!breaker->armed)
		return;
	timer_delete(breaker->timer); /* with a signal of it that is still to come */
	sigprocmask(SIG_SETMASK, &breaker->mask, NULL);
	sigaction(SEIZE_SIGNAL, &breaker->action, NULL);
}

/* To write a thread's memory takes the rights that to trace it takes, but no tracer is in the
 * way. */
static bool may_trace(pid_t pid, pid_t tid)
{
	char path[80];
	int memory;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/mem", (int)pid, (int)tid);
	memory = open(path, O_RDWR | O_CLOEXEC);
	if (memory >= 0)
		close(memory);
	return memory >= 0;
}

static enum fay_seized thread_seize(struct fay_stop *stop, pid_t tid, pid_t *tracer)
{
	/* Again, since another tracer may let go between the refusal and the look at its name. */
	for (unsigned round = 0; round < 4; round++) {
		char state;

		if (ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACESYSGOOD) == 0) {
			ptrace(PTRACE_INTERRUPT, tid, 0, 0);
			return FAY_SEIZED;
		}
		if (errno == ESRCH)
			return FAY_SEIZED_GONE;
		if (errno == EINTR)
			return FAY_SEIZED_BUSY;
		state = fay_thread_state(stop->pid, tid);
		if (state == 0 || state == 'Z' || state == 'X')
			return FAY_SEIZED_GONE;
		*tracer = (pid_t)fay_thread_field(stop->pid, tid, "TracerPid:");
		if (*tracer == (pid_t)syscall(SYS_gettid)) {
			ptrace(PTRACE_INTERRUPT, tid, 0, 0);
			return FAY_SEIZED;
		}
		if (*tracer > 0)
			return FAY_SEIZED_BY_OTHER;
	}
	/* A tracer in a PID namespace that is not below ours has no number here. */
	return *tracer == 0 && may_trace(stop->pid, tid) ? FAY_SEIZED_BY_OTHER
							 : FAY_SEIZED_FORBIDDEN;
}

/* The child ends with us, whatever becomes of us. No tracer of ours gets it, or it would be refused
 * for that. */
int fay_stop_refusal(void)
{
	int alive[2], code = 0;
	pid_t child;

	if (pipe2(alive, O_CLOEXEC))
		return 0;
	child = (pid_t)syscall(SYS_clone, CLONE_UNTRACED, NULL, NULL, NULL, NULL);
	if (child == 0) {
		char byte;

		close(alive[1]);
		while (read(alive[0], &byte, 1) < 0 && errno == EINTR)
			;
		_exit(0);
	}
	if (child > 0) {
		code = ptrace(PTRACE_SEIZE, child, 0, 0) ? errno : 0;
		kill(child, SIGKILL);
		while (waitpid(child, NULL, __WALL) < 0 && errno == EINTR)
			;
	}
	close(alive[0]);
	close(alive[1]);
	return code;
}

enum fay_seized fay_stop_seize(struct fay_stop *stop, size_t *fresh, pid_t *tracer, int *code,
			       struct fay_error *error)
{
	enum fay_seized result = FAY_SEIZED;
	struct breaker breaker = { .begun = false };
	struct dirent *entry;
	char path[64];
	DIR *tasks;

	*fresh = 0;
	*code = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)stop->pid);
	tasks = opendir(path);
	if (!tasks)
		return FAY_SEIZED_GONE;
	while (result == FAY_SEIZED && !*code && (entry = readdir(tasks))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
		enum fay_seized one;

		if (tid <= 0 || fay_stop_find(stop, tid) || fay_thread_is_worker(stop->pid, tid))
			continue;
		breaker_start(&breaker);
		one = thread_seize(stop, tid, tracer);
		if (one == FAY_SEIZED) {
			++*fresh;
			*code = thread_add(stop, tid, error);
		} else if (one != FAY_SEIZED_GONE) {
			result = one;
		}
	}
	breaker_end(&breaker);
	closedir(tasks);
	return result;
}
