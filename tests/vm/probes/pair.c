/* SPDX-License-Identifier: MIT */
/* Entry and return of a function, begin, end and a timer; rows by a helper. */
#include <fay/probe.h>

FAY_COUNT(entries);
FAY_COUNT(returns);
FAY_COUNT(begins);
FAY_COUNT(ends);
FAY_COUNT(ticks);
FAY_SUM(values);
FAY_STREAM(rows, FAY_COLUMNS(FAY_KEY_I64(value)));

FAY_ENTRY("kernel!__x64_sys_getpgid")
{
	fay_count(&entries);
}
FAY_RETURN("kernel!__x64_sys_getpgid")
{
	struct rows_row row = { .value = (int64_t)event->retval };

	fay_count(&returns);
	fay_sum(&values, (int64_t)event->retval);
	if ((int64_t)event->retval < 0)
		rows_emit(&row);
}
FAY_BEGIN()
{
	fay_count(&begins);
}
FAY_END()
{
	fay_count(&ends);
}
FAY_TIMER(10000000)
{
	fay_count(&ticks);
}
