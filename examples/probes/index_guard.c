/* SPDX-License-Identifier: MIT */
/* An index that nothing in the source bounds: the compiler's guard keeps it inside the array (the
 * last element takes the excess). */
#include <fay/probe.h>

static const uint32_t weight[10] = { 1, 2, 3, 5, 8, 13, 21, 34, 55, 89 };

FAY_SUM(weights);

FAY_ENTRY("libc!lseek")
{
	fay_sum(&weights, weight[event->arg[2]]);
}
