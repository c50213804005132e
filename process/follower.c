/* SPDX-License-Identifier: MIT */
/*
 * The follower. It seizes every thread of the processes it is told to take, with the options that
 * make the kernel report fork, vfork, clone and exec and seize what is born, and lets all run on.
 * So no program that a followed process starts can escape, however short it runs.
 *
 * When a process has run execve, it is let run to the entry point of its new program (entry.c; its
 * libraries are there then, its main has not begun), stopped and let go of, so that fay can attach
 * to it as to any other; fay then orders it taken again.
 *
 * It is a process of its own, since fay must not wait for each thread's birth nor a thread's birth
 * for fay. If fay dies the pipe of orders ends: what stands stopped is let go on, and the kernel
 * lets all others go as the follower exits. Nothing is changed in them but the breakpoint at an
 * entry point, for the microseconds that the dynamic loader needs.
 *
 * Limits: nobody else (debugger, strace, another fay) can trace what is followed. A parent that
 * waits with WUNTRACED sees the stop. Followed by somebody without privilege, set-user-ID programs
 * run without theirs, as under strace.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "follow_private.h"
#include "process.h"

#define OPTIONS                                                                                    \
	(PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC)

struct follower {
	struct thread {
		pid_t tid, pid;
		pid_t parent;  /* the process that made it, if it was seen being born */
		bool is_there; /* it was seen stopped after its birth, or taken later */
	} *threads;
	size_t count, room;
	pid_t *waiting; /* processes that stand at their entry point */
	size_t waiting_count, waiting_room;
	pid_t releasing; /* 0: none */
	/* was released, and fay has not said yet whether it is taken again; 0: none */
	pid_t lent;
	bool taken; /* any, ever */
	bool holds; /* processes that are forked wait */
	int events;
	uint32_t *told;
};

static struct thread *find(struct follower *follower, pid_t tid)
{
	for (size_t i = 0; i < follower->count; i++)
		if (follower->threads[i].tid == tid)
			return &follower->threads[i];
	return NULL;
}

/* What stands at its entry point is traced by nobody: it must be told to go on. */
static void __attribute__((noreturn)) leave_all(const struct follower *follower, int code)
{
	for (size_t i = 0; i < follower->waiting_count; i++)
		kill(follower->waiting[i], SIGCONT);
	_exit(code);
}

static void *more(const struct follower *follower, void *items, size_t count, size_t *room,
		  size_t size)
{
	if (count < *room)
		return items;
	*room = *room ? 2 * *room : 64;
	items = realloc(items, *room * size);
	if (!items)
		leave_all(follower, 1);
	return items;
}

static struct thread *add(struct follower *follower, pid_t tid, pid_t pid)
{
	struct thread *known = find(follower, tid);
	if (known)
		return known;
	follower->threads = more(follower, follower->threads, follower->count, &follower->room,
				 sizeof(*follower->threads));
	follower->threads[follower->count] = (struct thread){ .tid = tid, .pid = pid };
	return &follower->threads[follower->count++];
}

static void forget(struct follower *follower, pid_t tid)
{
	struct thread *thread = find(follower, tid);
	if (thread)
		*thread = follower->threads[--follower->count];
}

static void tell(struct follower *follower, int word, pid_t pid, pid_t parent)
{
	struct fay_follow_message message = { word, pid, parent };
	if (write(follower->events, &message, sizeof(message)) != (ssize_t)sizeof(message))
		leave_all(follower, 0); /* fay is gone */
	__atomic_fetch_add(follower->told, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, follower->told, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* --- orders --- */

static void take(struct follower *follower, pid_t pid);

/* Children that were born before their parent was held. */
static void take_children(struct follower *follower, pid_t pid, const char *tid)
{
	char path[64];
	int child;
	snprintf(path, sizeof(path), "/proc/%d/task/%.16s/children", pid, tid);
	FILE *file = fopen(path, "re");
	while (file && fscanf(file, "%d", &child) == 1)
		if (!find(follower, child))
			take(follower, child);
	if (file)
		fclose(file);
}

/* Whether it stood at its entry point, which is over now. */
static bool waits_no_more(struct follower *follower, pid_t pid)
{
	for (size_t i = 0; i < follower->waiting_count; i++)
		if (follower->waiting[i] == pid) {
			follower->waiting[i] = follower->waiting[--follower->waiting_count];
			return true;
		}
	return false;
}

/* Again until no new thread is found: one that is not held yet may make another. The depth is that
 * of the tree of processes. */
static void take(struct follower *follower, pid_t pid)
{
	char path[64];
	size_t before;
	follower->taken = true;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	do {
		struct dirent *entry;
		DIR *tasks = opendir(path);
		before = follower->count;
		while (tasks && (entry = readdir(tasks))) {
			pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
			if (tid > 0 && !find(follower, tid) &&
			    !ptrace(PTRACE_SEIZE, tid, 0, OPTIONS))
				add(follower, tid, pid)->is_there = true;
			if (tid > 0)
				take_children(follower, pid, entry->d_name);
		}
		if (tasks)
			closedir(tasks);
	} while (follower->count > before);
	waits_no_more(follower, pid);
	kill(pid, SIGCONT);
}

static bool any_thread(const struct follower *follower, pid_t pid)
{
	for (size_t i = 0; i < follower->count; i++)
		if (follower->threads[i].pid == pid)
			return true;
	return false;
}

static void released(struct follower *follower)
{
	if (!follower->releasing || any_thread(follower, follower->releasing))
		return;
	tell(follower, FAY_FOLLOW_RELEASED, follower->releasing, 0);
	follower->lent = follower->releasing;
	follower->releasing = 0;
}

static void release(struct follower *follower, pid_t pid)
{
	follower->releasing = pid;
	for (size_t i = 0; i < follower->count; i++)
		if (follower->threads[i].pid == pid)
			ptrace(PTRACE_INTERRUPT, follower->threads[i].tid, 0, 0);
	released(follower);
}

static void obey(struct follower *follower, int orders)
{
	struct fay_follow_message message;
	ssize_t got = read(orders, &message, sizeof(message));
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got != (ssize_t)sizeof(message)) /* fay is gone, or has had enough */
		leave_all(follower, 0);
	if (message.word != FAY_FOLLOW_RELEASE && message.pid == follower->lent)
		follower->lent = 0;
	switch (message.word) {
	case FAY_FOLLOW_TAKE:
	case FAY_FOLLOW_RETAKE:
		if (message.pid == follower->releasing) /* it was not let go of in time */
			follower->releasing = 0;
		take(follower, message.pid);
		if (message.word == FAY_FOLLOW_RETAKE)
			tell(follower, FAY_FOLLOW_TAKEN, message.pid, 0);
		break;
	case FAY_FOLLOW_RELEASE: release(follower, message.pid); break;
	case FAY_FOLLOW_HOLD: follower->holds = true; break;
	default: /* FAY_FOLLOW_LEAVE */
		if (waits_no_more(follower, message.pid))
			kill(message.pid, SIGCONT);
		else if (find(follower, message.pid))
			ptrace(PTRACE_CONT, message.pid, 0, 0); /* of one that was forked */
	}
}

/* --- events --- */

/* The process has one thread now, whatever it had before. */
static void executed(struct follower *follower, pid_t pid)
{
	struct fay_error error;
	for (size_t i = follower->count; i-- > 0;)
		if (follower->threads[i].pid == pid)
			follower->threads[i] = follower->threads[--follower->count];
	if (fay_process_run_to_entry(pid, &error)) {
		add(follower, pid, pid); /* it has ended, which is reported next, or goes on */
		ptrace(PTRACE_CONT, pid, 0, 0);
		return;
	}
	follower->waiting = more(follower, follower->waiting, follower->waiting_count,
				 &follower->waiting_room, sizeof(pid_t));
	/* It goes on stopped; fay has it taken again. */
	ptrace(PTRACE_DETACH, pid, 0, SIGSTOP);
	follower->waiting[follower->waiting_count++] = pid;
	tell(follower, FAY_FOLLOW_EXECUTED, pid, 0);
}

/*
 * What was just born is held as well, and says so itself, later, or has already: until then it is
 * known from its parent, or its process would be thought to be let go of when it is not. One that
 * has been let go of meanwhile is not added again.
 */
static void born(struct follower *follower, pid_t parent)
{
	unsigned long tid;
	if (ptrace(PTRACE_GETEVENTMSG, parent, 0, &tid) || find(follower, (pid_t)tid) ||
	    fay_process_tracer((pid_t)tid) != getpid())
		return;
	pid_t pid = fay_process_of_thread((pid_t)tid);
	add(follower, (pid_t)tid, pid ? pid : (pid_t)tid)->parent = find(follower, parent)->pid;
}

static pid_t parent_of(const struct thread *thread)
{
	char line[128];
	int parent = 0;
	if (!thread->parent && fay_process_status(thread->pid, "PPid:", line))
		sscanf(line, "PPid: %d", &parent);
	return thread->parent ? thread->parent : parent;
}

/* Its first stop. Whether it stays so: a process with memory of its own, which has what its parent
 * was patched with and not what the kernel does for the parent alone. */
static bool holds_born(struct follower *follower, struct thread *thread, int event)
{
	bool first = !thread->is_there && event == PTRACE_EVENT_STOP;
	thread->is_there = true;
	if (!first || !follower->holds || thread->tid != thread->pid ||
	    follower->releasing == thread->pid)
		return false;
	pid_t parent = parent_of(thread);
	if (!parent || !syscall(SYS_kcmp, parent, thread->pid, KCMP_VM, 0, 0))
		return false;
	tell(follower, FAY_FOLLOW_FORKED, thread->pid, parent);
	return true;
}

static void stopped(struct follower *follower, pid_t tid, int status)
{
	struct thread *thread = find(follower, tid);
	pid_t pid = thread ? thread->pid : fay_process_of_thread(tid);
	int event = status >> 16, number = WSTOPSIG(status);
	if (!thread)
		thread = add(follower, tid, pid ? pid : tid);
	if (event == PTRACE_EVENT_CLONE || event == PTRACE_EVENT_FORK ||
	    event == PTRACE_EVENT_VFORK) {
		born(follower, tid);
		thread = find(follower, tid); /* the list may have moved */
	}
	if (event == PTRACE_EVENT_EXEC) {
		executed(follower, tid);
	} else if (holds_born(follower, thread, event)) {
		/* until it is left */
	} else if (follower->releasing && thread->pid == follower->releasing) {
		ptrace(PTRACE_DETACH, tid, 0, event ? 0 : number);
		forget(follower, tid);
	} else if (event == PTRACE_EVENT_STOP && (number == SIGSTOP || number == SIGTSTP ||
						  number == SIGTTIN || number == SIGTTOU)) {
		ptrace(PTRACE_LISTEN, tid, 0, 0);
	} else {
		ptrace(PTRACE_CONT, tid, 0, event ? 0 : number);
	}
}

static void on_child(int number)
{
	(void)number;
}

void fay_follower_main(int orders, int events, uint32_t *told)
{
	struct follower follower = { .events = events, .told = told };
	struct pollfd wait = { .fd = orders, .events = POLLIN };
	struct sigaction action = { .sa_handler = on_child };
	sigset_t all, none;
	setsid();
	prctl(PR_SET_NAME, "fay-follower");
	sigfillset(&all);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &all, NULL);
	sigaction(SIGCHLD, &action, NULL);
	for (int number = 1; number < 32; number++)
		if (number != SIGCHLD && number != SIGKILL && number != SIGSTOP)
			signal(number, SIG_IGN);
	for (;;) {
		int status;
		pid_t tid = waitpid(-1, &status, __WALL | WNOHANG);
		if (tid > 0 && WIFSTOPPED(status)) {
			stopped(&follower, tid, status);
		} else if (tid > 0) {
			forget(&follower, tid);
		} else {
			if (follower.taken && !follower.count && !follower.waiting_count &&
			    !follower.releasing && !follower.lent)
				_exit(0); /* nobody is left; fay sees the end of the pipe */
			ppoll(&wait, 1, NULL, &none);
			if (wait.revents)
				obey(&follower, orders);
		}
		released(&follower);
	}
}
