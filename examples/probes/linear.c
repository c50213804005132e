/* SPDX-License-Identifier: MIT */
/* Sizes asked of write(), in steps of 512 bytes up to 16 KiB. */
#include <fay/probe.h>

FAY_LINEAR_HISTOGRAM(sizes, 0, 512, 32);

FAY_ENTRY("libc!write")
{
	sizes_add((int64_t)event->arg[2]);
}
