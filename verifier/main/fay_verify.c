/* SPDX-License-Identifier: MIT */
/*
 * The standalone verifier. Everything is in the library, so that `fay verify` and this program
 * cannot differ.
 */
#include "verifier/review/command.h"

int main(int argc, char **argv)
{
	char name[] = "fay-verify"; /* as messages begin, wherever it is installed */
	if (argc > 0)
		argv[0] = name;
	return fay_verify_main(argc, argv);
}
