/* SPDX-License-Identifier: MIT */
/* The fay-cc program: `fay cc` on its own, for build systems that need no more of Fay than its
 * compiler. */
#include "fay/compiler.h"

int main(int argc, char **argv)
{
	return fay_cc_main(argc, argv);
}
