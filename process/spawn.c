/* SPDX-License-Identifier: MIT */
/*
 * `fay trace ... -- COMMAND`: start a program so that not one call of it is missed.
 *
 * The child is traced over its exec; a breakpoint at the executable's entry point (AT_ENTRY of its
 * auxiliary vector) lets the dynamic loader do its work first, since only then are the libraries
 * there whose functions are to be patched. The byte is put back and the process left in an ordinary
 * group stop, which the loader's session then attaches to like to any other process. Limit:
 * constructors of shared libraries run inside the dynamic loader, before the entry point.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process.h"

/* What kept the command from being run, traced. */
struct failure {
	int code; /* errno */
	bool untraced;
};

static void fail(int pipe, bool untraced)
{
	struct failure failure = { errno, untraced };
	if (write(pipe, &failure, sizeof(failure)) != sizeof(failure))
		_exit(126);
	_exit(127);
}

static void child_main(char **command, int failure)
{
	signal(SIGPIPE, SIG_DFL); /* which fay ignores */
	signal(SIGXFSZ, SIG_DFL);
	/* fay attaches through a child of its own (loader/stop/keeper.c), which Yama lets trace
	 * descendants only, unless they agree. */
	prctl(PR_SET_PTRACER, (unsigned long)getppid(), 0, 0, 0);
	/* Should fay be killed before it lets the command go, the command goes on, untraced. */
	prctl(PR_SET_PDEATHSIG, SIGCONT);
	if (ptrace(PTRACE_TRACEME, 0, 0, 0))
		fail(failure, true);
	execvp(command[0], command);
	fail(failure, false);
}

static int cannot_run(const char *command, int pipe, struct fay_error *error)
{
	struct failure failure;
	if (read(pipe, &failure, sizeof(failure)) != sizeof(failure))
		failure = (struct failure){ ENOEXEC, false };
	if (failure.untraced)
		return fay_error_set(
			error, FAY_E_REFUSED,
			"'%s' was not started, since it cannot be traced: ptrace is refused even "
			"for a child of fay: %s (a sandbox, or fay itself is traced)",
			command, strerror(failure.code));
	return fay_error_set(error, FAY_E_USAGE, "cannot run '%s': %s", command,
			     strerror(failure.code));
}

static int spawn(char **command, bool to_entry, pid_t *pid, struct fay_error *error)
{
	int pipes[2];
	if (pipe2(pipes, O_CLOEXEC))
		return fay_error_set(error, FAY_E_INTERNAL, "pipe: %s", strerror(errno));
	fflush(NULL);
	pid_t child = fork();
	if (child < 0) {
		close(pipes[0]);
		close(pipes[1]);
		return fay_error_set(error, FAY_E_INTERNAL, "fork: %s", strerror(errno));
	}
	if (child == 0)
		child_main(command, pipes[1]);
	close(pipes[1]);
	int status;
	waitpid(child, &status, 0);
	if (!WIFSTOPPED(status)) {
		cannot_run(command[0], pipes[0], error);
		close(pipes[0]);
		return error->code;
	}
	close(pipes[0]);
	/* Up to its entry point the command has a breakpoint in it and does nothing of its own: it
	 * ends with fay. */
	ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_EXITKILL);
	int result = to_entry ? fay_process_run_to_entry(child, error) : FAY_OK;
	if (!result && ptrace(PTRACE_DETACH, child, 0, SIGSTOP))
		result = fay_error_set(error, FAY_E_INTERNAL, "cannot release the command: %s",
				       strerror(errno));
	if (result) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		return result;
	}
	/* The stop that the detach ordered takes effect when the process is next scheduled. */
	waitpid(child, &status, WUNTRACED);
	*pid = child;
	return FAY_OK;
}

int fay_process_spawn(char **command, pid_t *pid, struct fay_error *error)
{
	return spawn(command, true, pid, error);
}

int fay_process_spawn_early(char **command, pid_t *pid, struct fay_error *error)
{
	return spawn(command, false, pid, error);
}

void fay_process_start_early(pid_t pid, void (*look)(void *context, pid_t pid), void *context)
{
	struct fay_error error; /* the command goes on as it is, or has ended */
	int status;
	bool held = !ptrace(PTRACE_ATTACH, pid, 0, 0) && waitpid(pid, &status, __WALL) == pid;
	kill(pid, SIGCONT); /* ends the stop that attaching orders, too */
	if (!held)
		return;
	ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_EXITKILL);
	if (!fay_process_run_to_entry(pid, &error))
		look(context, pid);
	ptrace(PTRACE_DETACH, pid, 0, 0);
}
