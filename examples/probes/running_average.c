/* SPDX-License-Identifier: MIT */
/*
 * Mean and variance of the sizes written, in floating point, updated with every call (Welford
 * 1962), and an exponentially weighted mean that forgets. Readable as the bits of doubles: the
 * aggregates of a probe are integers, so the results are also kept in thousandths.
 */
#include <fay/probe.h>

struct running {
	uint64_t count;
	double mean, sum_of_squares, recent;
	int64_t mean_thousandths, deviation_thousandths, recent_thousandths;
};
FAY_SCRATCH(struct running, running);
FAY_MAX(highest_mean);
FAY_MAX(highest_deviation);

/* A double that fits; 0 for what does not (nan, infinity). */
static int64_t thousandths(double x)
{
	return x > -1e12 && x < 1e12 ? (int64_t)(x * 1000) : 0;
}

FAY_ENTRY("libc!write")
{
	double size = (double)event->arg[2], delta = size - running.mean;

	running.count++;
	running.mean += delta / (double)running.count;
	running.sum_of_squares += delta * (size - running.mean);
	running.recent += (size - running.recent) * 0.05;
	running.mean_thousandths = thousandths(running.mean);
	running.deviation_thousandths =
		thousandths(__builtin_sqrt(running.sum_of_squares / (double)running.count));
	running.recent_thousandths = thousandths(running.recent);
	fay_max(&highest_mean, running.mean_thousandths);
	fay_max(&highest_deviation, running.deviation_thousandths);
}
