/* SPDX-License-Identifier: MIT */
/* Nothing: what a call costs. */
#include "kernel.h"

KERNEL(64)
{
	(void)data;
	return size + 1;
}
