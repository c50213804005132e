/* SPDX-License-Identifier: MIT */
/*
 * The time stamp counter against CLOCK_REALTIME: two readings at least 20 ms apart, each the tightest of many. A reading is good to some
 * 30 ns, so the rate is good to about 3 in 10^6, and event.time drifts from the system's clock by some microseconds per second of session.
 */
#include "session.h"

#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

struct reading {
	uint64_t tsc, ns;
};

static struct reading read_both(void)
{
	struct reading best = { 0 };
	uint64_t tightest = UINT64_MAX;

	for (int i = 0; i < 64; i++) {
		struct timespec now;
		uint64_t before = __rdtsc(), after;

		clock_gettime(CLOCK_REALTIME, &now);
		after = __rdtsc();
		if (after - before < tightest) {
			tightest = after - before;
			best.tsc = before + (after - before) / 2;
			best.ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
		}
	}
	return best;
}

void fay_clock_calibrate(uint64_t *multiplier, uint64_t *offset)
{
	struct reading first = read_both(), second;

	usleep(20000);
	second = read_both();
	*multiplier = (uint64_t)(((unsigned __int128)(second.ns - first.ns) << 32) / (second.tsc - first.tsc));
	*offset = second.ns - (uint64_t)(((unsigned __int128)second.tsc * *multiplier) >> 32);
}
