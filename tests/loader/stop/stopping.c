/* SPDX-License-Identifier: MIT */
#include "stopping.h"

#include <string.h>
#include <sys/syscall.h>

void stop_child(pid_t child, struct fay_stop *stopped)
{
	struct fay_error error = { 0 };

	if (fay_stop_all(child, FAY_STOP_TIMEOUT_MS, FAY_TRACER_WAIT_MS, stopped, &error))
		fail_msg("stop: %s", error.message);
}

int stop_borrow(struct fay_stop *stopped, struct fay_error *error)
{
	const uint64_t none[6] = { 0 };
	int64_t result = 0;
	int code = fay_stop_syscall(stopped, SYS_getpid, none, &result, error);

	if (!code)
		assert_int_equal(result, stopped->pid);
	return code;
}
