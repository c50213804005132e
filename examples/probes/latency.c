/* SPDX-License-Identifier: MIT */
/* Time spent in read(): two probes that share state. The entry leaves its time in a cell, the
 * return takes it. */
#include <fay/probe.h>

FAY_CELL(pending, FAY_VALUES(FAY_VALUE_MAX(since)));
FAY_HISTOGRAM(nanoseconds);

FAY_ENTRY("libc!read")
{
	pending.since.held = event->time;
}

FAY_RETURN("libc!read")
{
	uint64_t since = pending.since.held;

	if (!since)
		return;
	pending.since.held = 0;
	fay_hist(&nanoseconds, (int64_t)(event->time - since));
}
