/* SPDX-License-Identifier: MIT */
/*
 * `fay bench`: scripts/bench of the source tree that this program lies in (build/bin/fay). The
 * benchmarks are not part of what is installed: they compile targets for the tools that they
 * compare.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include <stdio.h>

#include "fay/error.h"

#include "commands.h"

int fay_bench_main(int argc, char **argv)
{
	char script[PATH_MAX + 32], exe[PATH_MAX] = "";
	ssize_t length = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (length > 0)
		*strrchr(exe, '/') = 0;
	snprintf(script, sizeof(script), "%s/../../scripts/bench", exe);
	argv[0] = script;
	execv(script, argv);
	fprintf(stderr, "fay bench: %s: %s; the benchmarks are in fay's source tree\n", script,
		strerror(errno));
	return FAY_E_REFUSED;
}
