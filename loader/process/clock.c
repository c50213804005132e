/* SPDX-License-Identifier: MIT */
/*
 * The time stamp counter against CLOCK_REALTIME: two readings at least 20 ms apart, each the
 * tightest of many. A reading is good to some 30 ns, so the rate is good to about 3 in 10^6 at
 * worst, and event.time drifts from the system's clock by up to some microseconds per second of
 * session. The first reading is made when the program starts: a trace begins some tenths of a
 * second later, which makes the rate ten times as good. Who attaches again and again has a first
 * reading from fay_clock_keep(), and need not wait for it. The rate is that of the monotonic
 * clock: a system clock that is set between the readings does not change it.
 */
#include "process.h"

#define APART_MIN 20000000u /* ns */
#define APART_MAX 2000000000u
#define RENEWED 500000000u /* a reading is kept when the last one is older */

#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

struct reading {
	uint64_t tsc, ns; /* of the monotonic clock */
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* From the monotonic clock to the epoch of the system's, as it is set now: of many readings the
 * tightest. */
static uint64_t epoch(void)
{
	uint64_t best = 0, tightest = UINT64_MAX;
	for (int i = 0; i < 64; i++) {
		uint64_t before = clock_ns(CLOCK_MONOTONIC), now = clock_ns(CLOCK_REALTIME),
			 after = clock_ns(CLOCK_MONOTONIC);
		if (after - before < tightest) {
			tightest = after - before;
			best = now - (before + (after - before) / 2);
		}
	}
	return best;
}

static struct reading read_both(void)
{
	struct reading best = { 0 };
	uint64_t tightest = UINT64_MAX;

	for (int i = 0; i < 64; i++) {
		uint64_t before = __rdtsc(), now = clock_ns(CLOCK_MONOTONIC), after = __rdtsc();
		if (after - before < tightest) {
			tightest = after - before;
			best.tsc = before + (after - before) / 2;
			best.ns = now;
		}
	}
	return best;
}

/* The last two that were kept: the older one is never too near. */
static struct reading earlier, latest;

__attribute__((constructor)) static void read_at_start(void)
{
	earlier = latest = read_both();
}

void fay_clock_keep(void)
{
	if (clock_ns(CLOCK_MONOTONIC) - latest.ns < RENEWED)
		return;
	earlier = latest;
	latest = read_both();
}

static bool is_apart(const struct reading *first, const struct reading *second)
{
	return second->ns - first->ns >= APART_MIN && second->ns - first->ns <= APART_MAX;
}

void fay_clock_calibrate(uint64_t *multiplier, uint64_t *offset)
{
	struct reading first = earlier, second = read_both();

	if (!is_apart(&first, &second))
		first = latest;
	if (!is_apart(&first, &second)) {
		first = second;
		usleep(APART_MIN / 1000);
		second = read_both();
	}
	*multiplier = (uint64_t)(((unsigned __int128)(second.ns - first.ns) << 32) /
				 (second.tsc - first.tsc));
	*offset = epoch() + second.ns -
		  (uint64_t)(((unsigned __int128)second.tsc * *multiplier) >> 32);
	fay_clock_keep();
}

uint64_t fay_loader_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
