#include <fay/probe.h>

FAY_COUNT(begins);
FAY_COUNT(ends);
FAY_COUNT(ticks);
FAY_COUNT(thread_begins);
FAY_COUNT(thread_ends);
FAY_COUNT(entries);
FAY_STREAM(says, FAY_COLUMNS(FAY_KEY_TIME(when), FAY_KEY_U64(pid), FAY_KEY_STRING(comm, 16)));

FAY_BEGIN()
{
	struct says_row row = { .when = event->time, .pid = event->pid };

	fay_count(&begins);
	__builtin_memcpy(row.comm, event->comm, 16);
	says_emit(&row);
}
FAY_END()
{
	fay_count(&ends);
}
FAY_TIMER(20000000)
{
	fay_count(&ticks);
}
FAY_THREAD_BEGIN()
{
	fay_count(&thread_begins);
}
FAY_THREAD_END()
{
	fay_count(&thread_ends);
}
FAY_ENTRY("calls_target!traced_*")
{
	fay_count(&entries);
}
