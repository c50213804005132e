#include <fay/probe.h>

FAY_COUNT(entries);
FAY_COUNT(returns);
FAY_COUNT(exceptions);
FAY_HISTOGRAM(durations);

FAY_ENTRY("PROGRAM!traced_*")
{
	fay_count(&entries);
}
FAY_RETURN("PROGRAM!traced_*")
{
	fay_count(&returns);
	fay_hist(&durations, event->duration);
}
FAY_EXCEPTION("PROGRAM!traced_*")
{
	fay_count(&exceptions);
	fay_hist(&durations, event->duration);
}
