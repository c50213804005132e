/* SPDX-License-Identifier: MIT */
/* idle.c's probe, two times at one function. */
#include <fay/probe.h>

FAY_COUNT(begins);

FAY_ENTRY("kernel!__x64_sys_getpgid")
{
	fay_count(&begins);
}
FAY_ENTRY("kernel!__x64_sys_getpgid")
{
	fay_count(&begins);
}
