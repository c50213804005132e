/* SPDX-License-Identifier: MIT */
/* Only the threads named redis-server: a comparison of text without a loop. */
#include <fay/probe.h>

FAY_COUNT(theirs);
FAY_COUNT(others);

FAY_ENTRY("libc!write")
{
	if (fay_comm_is(event, "redis-server"))
		fay_count(&theirs);
	else
		fay_count(&others);
}
