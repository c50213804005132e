/* SPDX-License-Identifier: MIT */
/*
 * The standalone verifier. Everything is in the library, so that `fay verify` and this program
 * cannot differ.
 */
#include "verifier/review/command.h"

#include <string.h>

int main(int argc, char **argv)
{
	char *folder = argc > 0 ? strrchr(argv[0], '/') : NULL;
	if (folder)
		argv[0] = folder + 1; /* as messages begin, wherever it is installed */
	return fay_verify_main(argc, argv);
}
