/* SPDX-License-Identifier: MIT */
/* Bytes asked for, by thread: a table whose rows are made as threads appear. */
#include <fay/probe.h>

FAY_TABLE(by_thread, 1024, FAY_KEYS(FAY_KEY_U64(tid)),
	  FAY_VALUES(FAY_VALUE_COUNT(reads), FAY_VALUE_SUM(bytes), FAY_VALUE_MAX(largest)));

FAY_ENTRY("libc!read")
{
	struct by_thread_row *row = by_thread_at((struct by_thread_key){ .tid = event->tid });

	if (!row)
		return;
	fay_count(&row->reads);
	fay_sum(&row->bytes, (int64_t)event->arg[2]);
	fay_max(&row->largest, (int64_t)event->arg[2]);
}
