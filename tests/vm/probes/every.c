/* SPDX-License-Identifier: MIT */
/* Every function of the kernel, counted by function and processor. */
#include <fay/probe.h>

FAY_COUNT(calls);
FAY_TABLE(by_function, 65536, FAY_KEYS(FAY_KEY_FUNCTION(function)),
	  FAY_VALUES(FAY_VALUE_COUNT(calls)));

FAY_ENTRY("kernel!*")
{
	struct by_function_row *row =
		by_function_at((struct by_function_key){ .function = event->function });

	fay_count(&calls);
	if (row)
		fay_count(&row->calls);
}
