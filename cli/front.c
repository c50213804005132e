/* SPDX-License-Identifier: MIT */
/*
 * The program `fay` that users start: it becomes the one that does the job. Most subcommands are in
 * one program, which lies in ../libexec and is linked with LLVM; loading that takes longer than a
 * verification, so `fay verify` is the program fay-verify, which lies beside this one. Both take
 * over the process: its id, its name and its arguments stay.
 */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fay/error.h"

/* This program's directory, and `relative` after it; false if it cannot be told or is too long. */
static bool beside(const char *relative, char path[PATH_MAX])
{
	ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
	char *end;

	if (length <= 0)
		return false;
	path[length] = 0;
	end = strrchr(path, '/') + 1;
	return snprintf(end, PATH_MAX - (size_t)(end - path), "%s", relative) <
	       PATH_MAX - (end - path);
}

int main(int argc, char **argv)
{
	char path[PATH_MAX], title[] = "fay verify", *verb = argc > 1 ? argv[1] : NULL;

	if (verb && !strcmp(verb, "verify") && beside("fay-verify", path)) {
		argv[1] = title;
		execv(path, argv + 1);
		argv[1] = verb; /* it is not there: the other one can do it, too */
	}
	if (beside("../libexec/fay", path))
		execv(path, argv);
	else
		snprintf(path, sizeof(path), "/proc/self/exe");
	fprintf(stderr, "fay: cannot run '%s': %s\n", path, strerror(errno));
	return FAY_E_INTERNAL;
}
