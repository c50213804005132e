/* SPDX-License-Identifier: MIT */
/* A sandbox that refuses ptrace is not taken for a tracer in another PID namespace. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../sandbox.h"
#include "loader/stop/stop.h"
#include "loader/stop/stop_private.h"

/* The target is a child, which no setting of Yama's keeps from being traced. */
static int stop_from_sandbox(void)
{
	struct fay_error error = { 0 };
	struct fay_stop stop;
	pid_t target = fork();
	if (target == 0)
		for (;;)
			pause();
	int code = target > 0 && !refuse_call(SYS_ptrace)
			   ? fay_stop_all(target, FAY_STOP_TIMEOUT_MS, 100, &stop, &error)
			   : 77;
	if (target > 0) {
		kill(target, SIGKILL);
		waitpid(target, NULL, 0);
	}
	if (code == 77)
		return 77;
	if (code != FAY_E_REFUSED ||
	    !strstr(error.message,
		    "ptrace is refused even for a child of fay: Operation not permitted"))
		return fprintf(stderr, "from the sandbox: %d, %s\n", code, error.message), 1;
	if (waitpid(-1, NULL, __WALL) != -1 || errno != ECHILD)
		return fprintf(stderr, "the child that was tried is left\n"), 2;
	return 0;
}

static void test_sandbox(void **state)
{
	int status;
	(void)state;
	pid_t sandboxed = fork();
	if (sandboxed == 0)
		_exit(stop_from_sandbox());
	assert_int_equal(waitpid(sandboxed, &status, 0), sandboxed);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		print_message("skipped: no seccomp filter can be set here\n");
		skip();
	}
	assert_int_equal(status, 0);
}

static void test_not_refused(void **state)
{
	(void)state;
	assert_int_equal(fay_stop_refusal(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_sandbox),
					    cmocka_unit_test(test_not_refused) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
