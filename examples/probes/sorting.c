/* SPDX-License-Identifier: MIT */
/* The median of the arguments, by a sorting network for six values on the stack (12 comparators,
 * Knuth, TAOCP vol. 3, 5.3.4). */
#include <fay/probe.h>

FAY_HISTOGRAM(medians);

static void order(uint64_t *v, unsigned i, unsigned j)
{
	uint64_t a = v[i], b = v[j];

	v[i] = a < b ? a : b;
	v[j] = a < b ? b : a;
}

FAY_ENTRY("libc!mmap")
{
	static const uint8_t pairs[12][2] = { { 0, 5 }, { 1, 3 }, { 2, 4 }, { 1, 2 },
					      { 3, 4 }, { 0, 3 }, { 2, 5 }, { 0, 1 },
					      { 2, 3 }, { 4, 5 }, { 1, 2 }, { 3, 4 } };
	uint64_t v[6];

	for (unsigned i = 0; i < 6; i++)
		v[i] = event->arg[i];
	for (unsigned i = 0; i < 12; i++)
		order(v, pairs[i][0], pairs[i][1]);
	fay_hist(&medians, (int64_t)(v[2] / 2 + v[3] / 2));
}
