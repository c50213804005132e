/* SPDX-License-Identifier: MIT */
/* Sizes asked of read(), as powers of two. */
#include <fay/probe.h>

FAY_HISTOGRAM(sizes);

FAY_ENTRY("libc!read")
{
	fay_hist(&sizes, (int64_t)event->arg[2]);
}
