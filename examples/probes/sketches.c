/* SPDX-License-Identifier: MIT */
/* Reads in summary: quantiles of the sizes, how many different buffers, the most frequent sizes, a
 * sample, the first and the last. */
#include <fay/probe.h>

FAY_LOGLINEAR(shape);
FAY_QUANTILES(sizes);
FAY_DISTINCT(buffers);
FAY_TOP(frequent, 16);
FAY_SAMPLE(sample, 8);
FAY_FIRST(first);
FAY_LAST(last);

FAY_ENTRY("libc!read")
{
	uint64_t size = event->arg[2];

	fay_loglinear(&shape, (int64_t)size);
	fay_quantiles(&sizes, (int64_t)size);
	fay_distinct(&buffers, event->arg[1]);
	fay_top(&frequent, size);
	fay_sample(&sample, event, size);
	fay_first(&first, event->time, size);
	fay_last(&last, event->time, size);
}
