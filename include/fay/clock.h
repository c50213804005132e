/* SPDX-License-Identifier: MIT */
/* The kernel's clocks in nanoseconds. */
#ifndef FAY_CLOCK_H
#define FAY_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t fay_clock(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t fay_monotonic(void)
{
	return fay_clock(CLOCK_MONOTONIC);
}

/* Since the epoch. */
static inline uint64_t fay_realtime(void)
{
	return fay_clock(CLOCK_REALTIME);
}

/* Since the machine was started, also while it slept. */
static inline uint64_t fay_boottime(void)
{
	return fay_clock(CLOCK_BOOTTIME);
}

#endif
