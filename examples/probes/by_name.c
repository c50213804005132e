/* SPDX-License-Identifier: MIT */
/* Calls and sizes by thread name and processor: a key of text and number. */
#include <fay/probe.h>

FAY_TABLE(by_name, 256, FAY_KEYS(FAY_KEY_STRING(comm, FAY_COMM_SIZE), FAY_KEY_U64(cpu)),
	  FAY_VALUES(FAY_VALUE_COUNT(calls), FAY_VALUE_HISTOGRAM(sizes)));

FAY_ENTRY("libc!write")
{
	struct by_name_key key = { .cpu = event->cpu };
	struct by_name_row *row;

	__builtin_memcpy(key.comm, event->comm, sizeof(key.comm));
	row = by_name_at(key);
	if (row) {
		fay_count(&row->calls);
		fay_hist(&row->sizes, (int64_t)event->arg[2]);
	}
}
