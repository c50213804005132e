/* SPDX-License-Identifier: MIT */
/*
 * `fay bench`: scripts/bench of the source tree that this program was built in, or that it lies in
 * (build/bin/fay). The benchmarks are not part of what is installed: they compile targets for the
 * tools that they compare.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include <stdio.h>

#include "fay/error.h"

#include "commands.h"

static const char *script_path(char *buffer, size_t size)
{
	char exe[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (length > 0) {
		exe[length] = 0;
		*strrchr(exe, '/') = 0;
		if ((size_t)snprintf(buffer, size, "%s/../../scripts/bench", exe) < size &&
		    !access(buffer, X_OK))
			return buffer;
	}
	return FAY_SOURCE_BENCH;
}

int fay_bench_main(int argc, char **argv)
{
	char buffer[PATH_MAX + 32];
	const char *script = script_path(buffer, sizeof(buffer));

	argv[0] = (char *)script;
	execv(script, argv);
	fprintf(stderr, "fay bench: %s: %s; the benchmarks are in fay's source tree\n", script,
		strerror(errno));
	return FAY_E_REFUSED;
}
