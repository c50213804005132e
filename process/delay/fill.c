/* SPDX-License-Identifier: MIT */
/* What stubs call: apart, since it may end the program, and no library has stubs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "delay.h"

void fay_delay_fill(void **slot)
{
	const struct fay_delayed *delayed = fay_delayed;
	const char *why;

	while (slot < delayed->first || slot >= delayed->end)
		delayed++;
	why = fay_delay_load(delayed);
	if (!why)
		return;
	fprintf(stderr,
		"fay: a library that is needed for this cannot be loaded: %s; the package %s "
		"brings it\n",
		why,
		strncmp(delayed->library, "libmicrohttpd", 13) ? "fay-compiler"
							       : "libmicrohttpd12");
	exit(FAY_E_REFUSED);
}
