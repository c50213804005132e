/* SPDX-License-Identifier: MIT */
/*
 * The standalone verifier. Everything is in the library, so that `fay verify` and this program
 * cannot differ.
 */
#include "verifier/review/command.h"

int main(int argc, char **argv)
{
	return fay_verify_main(argc, argv);
}
