/* SPDX-License-Identifier: MIT */
/* What the kernel's policy refuses and a process's allows: floating point. */
#include <fay/probe.h>

FAY_COUNT(calls);

FAY_ENTRY("kernel!vfs_read")
{
	volatile double half = 0.5;

	calls.n += (uint64_t)(half * (double)event->arg[2]);
}
