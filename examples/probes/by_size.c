/* SPDX-License-Identifier: MIT */
/* The first query of the Fay paper by hand: reads by size in KiB. */
#include <fay/probe.h>

FAY_TABLE(by_size, 1024, FAY_KEYS(FAY_KEY_U64(size_kib)), FAY_VALUES(FAY_VALUE_COUNT(reads)));

FAY_ENTRY("libc!read")
{
	struct by_size_row *row =
		by_size_at((struct by_size_key){ .size_kib = event->arg[2] / 1024 });

	if (row)
		fay_count(&row->reads);
}
