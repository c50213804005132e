/* SPDX-License-Identifier: MIT */
/*
 * The keeper. While a process is stopped by ptrace, its threads may hold registers that are not
 * theirs (a system call is run in one of them) and its text may be half changed; if the tracer dies
 * then, the kernel lets the threads go on as they are. So what stops a process does not do so
 * itself: it lets a child do it, in a session of its own, that a SIGKILL sent to fay or to its
 * process group, a closed terminal or Ctrl-C do not reach. The child brings the process back to a
 * state in which it runs rightly, as if nobody had died, and ends.
 *
 * The child shares memory and files with fay (CLONE_VM, as of vfork): the transaction works on the
 * session itself, nothing has to be passed from one to the other, and the memory is there as long
 * as one of the two is. It also shares the thread-local storage of the caller, which is sound
 * because the caller does nothing meanwhile but wait in one system call, with all signals blocked
 * (so that no handler and no EINTR writes errno). When fay dies its kernel-side exit clears the
 * caller's thread id in its control block; nothing here reads it. Other threads of fay do run, and
 * a lock of the C library that one of them holds when fay is killed stays held:
 * docs/decisions/0011-keeper.md, What remains.
 *
 * Limit: a SIGKILL sent to the keeper itself, by its own pid, hits the stopped process as it would
 * have hit it without a keeper. PTRACE_O_EXITKILL is not set: a program that goes on, perhaps
 * wrongly, is not made better by being killed for certain. docs/decisions/0011-keeper.md.
 */
#include "stop.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STACK_SIZE (1u << 20)
#define GUARD_SIZE 4096u

struct keeper {
	int (*transaction)(void *context);
	void *context;
	int result;
	bool done;
};

/* Of the transaction under way; fay's memory is the keeper's. 0: none. */
static pid_t fay_pid;

bool fay_keeper_orphaned(void)
{
	return fay_pid && syscall(SYS_getpid) != fay_pid && syscall(SYS_getppid) != fay_pid;
}

/* Once it is, it is not tried again. */
static bool oom_refused;

#define OOM_NEVER "-1000"
#define OOM_ROOM 16u

/* What /proc says of how readily the memory killer takes this process, and fay with it: it is one
 * value for all that share memory, as one is killed with the other. "": not known. */
static void oom_read(char value[OOM_ROOM])
{
	int fd = open("/proc/self/oom_score_adj", O_RDONLY | O_CLOEXEC);
	ssize_t got = fd >= 0 ? read(fd, value, OOM_ROOM - 1) : 0;

	value[got > 0 ? got : 0] = 0;
	if (fd >= 0)
		close(fd);
}

static bool oom_write(const char *value)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	bool written = fd >= 0 && write(fd, value, strlen(value)) > 0;

	if (fd >= 0)
		close(fd);
	return written;
}

static int keeper_main(void *argument)
{
	struct keeper *keeper = argument;
	char before[OOM_ROOM] = "";

	setsid();
	prctl(PR_SET_NAME, "fay-keeper");
	if (!oom_refused)
		oom_read(before);
	/* To lower it takes CAP_SYS_RESOURCE. */
	if (*before)
		oom_refused = !oom_write(OOM_NEVER) && errno == EACCES;
	keeper->result = keeper->transaction(keeper->context);
	if (*before && !oom_refused)
		oom_write(before);
	__atomic_store_n(&keeper->done, true, __ATOMIC_RELEASE);
	return 0;
}

int fay_keeper_run(int (*transaction)(void *context), void *context, struct fay_error *error)
{
	struct keeper keeper = { .transaction = transaction, .context = context };
	sigset_t all, before;
	uint8_t *stack;
	pid_t pid;
	int saved;

	stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
	if (stack == MAP_FAILED)
		return fay_error_set(error, FAY_E_LIMIT, "no memory for the keeper: %s",
				     strerror(errno));
	mprotect(stack, GUARD_SIZE, PROT_NONE);
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	fay_pid = getpid();
	/* No exit signal: a handler of SIGCHLD, and who waits for other children, learn nothing of
	 * it. */
	pid = clone(keeper_main, stack + STACK_SIZE, CLONE_VM | CLONE_FS | CLONE_FILES, &keeper);
	saved = errno;
	while (pid > 0 && waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	fay_pid = 0;
	sigprocmask(SIG_SETMASK, &before, NULL);
	munmap(stack, STACK_SIZE);
	if (pid < 0)
		return fay_error_set(error, FAY_E_LIMIT, "cannot start the keeper: %s",
				     strerror(saved));
	if (!__atomic_load_n(&keeper.done, __ATOMIC_ACQUIRE))
		return fay_error_set(
			error, FAY_E_INTERNAL,
			"the keeper (process %d) was killed while it held the traced process",
			(int)pid);
	return keeper.result;
}
