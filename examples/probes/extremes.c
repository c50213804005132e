/* SPDX-License-Identifier: MIT */
/* Smallest, largest and mean size of malloc(), and the total: several values under one name. */
#include <fay/probe.h>

FAY_CELL(sizes, FAY_VALUES(FAY_VALUE_COUNT(calls), FAY_VALUE_SUM(total), FAY_VALUE_MIN(smallest),
			   FAY_VALUE_MAX(largest), FAY_VALUE_AVERAGE(mean)));

FAY_ENTRY("libc!malloc")
{
	int64_t size = (int64_t)event->arg[0];

	fay_count(&sizes.calls);
	fay_sum(&sizes.total, size);
	fay_min(&sizes.smallest, size);
	fay_max(&sizes.largest, size);
	fay_average(&sizes.mean, size);
}
