/* SPDX-License-Identifier: MIT */
/* As little as there can be: what sessions that do nothing are made with. */
#include <fay/probe.h>

FAY_COUNT(begins);

FAY_ENTRY("kernel!__x64_sys_getpgid")
{
	fay_count(&begins);
}
