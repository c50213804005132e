/* SPDX-License-Identifier: MIT */
/* What lseek() is asked for, by a table of functions; the one chosen at entry is kept and sees the
 * result at return. */
#include <fay/probe.h>

FAY_CELL(seeks, FAY_VALUES(FAY_VALUE_COUNT(rewinds), FAY_VALUE_SUM(moved), FAY_VALUE_MAX(end),
			   FAY_VALUE_COUNT(others)));

typedef void handler(uint64_t offset, uint64_t result);

FAY_SCRATCH(
	struct {
		handler *chosen;
		uint64_t offset;
	},
	call);

static void set(uint64_t offset, uint64_t result)
{
	if (!offset && !result)
		fay_count(&seeks.rewinds);
}

static void move(uint64_t offset, uint64_t result)
{
	if ((int64_t)result >= 0)
		fay_sum(&seeks.moved, (int64_t)offset);
}

static void to_end(uint64_t offset, uint64_t result)
{
	(void)offset;
	fay_max(&seeks.end, (int64_t)result);
}

static handler *const by_whence[3] = { set, move, to_end };

FAY_ENTRY("libc!lseek64")
{
	uint64_t whence = event->arg[2];

	call.chosen = whence < 3 ? by_whence[whence] : NULL;
	call.offset = event->arg[1];
}

FAY_RETURN("libc!lseek64")
{
	if (call.chosen)
		call.chosen(call.offset, event->retval);
	else
		fay_count(&seeks.others);
}
