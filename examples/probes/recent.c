/* SPDX-License-Identifier: MIT */
/* The last 16 sizes, in a ring in state, and how often a size was among them. */
#include <fay/probe.h>

FAY_COUNT(seen_before);
FAY_CELL(ring, FAY_VALUES(FAY_VALUE_HISTOGRAM(slots)));
FAY_COUNT(calls);

FAY_ENTRY("libc!realloc")
{
	uint64_t size = event->arg[1] + 1;

	for (unsigned i = 0; i < 16; i++)
		if (ring.slots.bucket[i] == size) {
			fay_count(&seen_before);
			break;
		}
	ring.slots.bucket[calls.n++ % 16] = size;
}
