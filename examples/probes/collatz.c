/* SPDX-License-Identifier: MIT */
/* A loop whose bound nobody knows: it has fuel, and the probe is left when that is used up. */
#include <fay/probe.h>

FAY_HISTOGRAM(steps);

FAY_ENTRY("libc!usleep")
{
	uint64_t x = event->arg[0];
	int64_t n = 0;

	while (x > 1) {
		x = x & 1 ? 3 * x + 1 : x / 2;
		n++;
	}
	fay_hist(&steps, n);
}
