/* SPDX-License-Identifier: MIT */
/* Counts that all threads share, by atomic addition, and a division whose divisor the traced
 * program gives. */
#include <fay/probe.h>

FAY_SHARED_COUNT(calls);
FAY_SHARED_SUM(per_item);

FAY_ENTRY("libc!fwrite")
{
	fay_count_shared(&calls);
	fay_sum_shared(&per_item, (int64_t)(event->arg[2] / event->arg[1]));
}
