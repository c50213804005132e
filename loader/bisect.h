/* SPDX-License-Identifier: MIT */
/* Searching in arrays that are sorted by an address. */
#ifndef FAY_LOADER_BISECT_H
#define FAY_LOADER_BISECT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* How many of `count` items of `stride` bytes each have an address, `offset` bytes behind their
 * begin, below `address`. */
static inline size_t fay_count_below(const void *items, size_t offset, size_t stride, size_t count,
				     uint64_t address)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		uint64_t there;

		memcpy(&there, (const char *)items + middle * stride + offset, sizeof(there));
		if (there < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* How many of the items have a `member`, a uint64_t, below `address`; below it or at it. */
#define FAY_COUNT_BELOW(items, count, member, address)                                             \
	fay_count_below(items, offsetof(__typeof__(*(items)), member), sizeof(*(items)), count,    \
			address)
#define FAY_COUNT_UNTIL(items, count, member, address)                                             \
	((address) == UINT64_MAX ? (count) : FAY_COUNT_BELOW(items, count, member, (address) + 1))

#endif
