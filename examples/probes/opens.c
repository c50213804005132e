/* SPDX-License-Identifier: MIT */
/* Every open() as a row of its own: time, thread and path. */
#include <fay/probe.h>

FAY_STREAM(opens, FAY_COLUMNS(FAY_KEY_TIME(when), FAY_KEY_U64(tid), FAY_KEY_STRING(path, 48)));

FAY_ENTRY("libc!open")
{
	struct opens_row row = { .when = event->time, .tid = event->tid };

	fay_try_read(row.path, sizeof(row.path), event->arg[0]);
	row.path[sizeof(row.path) - 1] = 0;
	opens_emit(&row);
}
