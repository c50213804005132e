/* SPDX-License-Identifier: MIT */
/* Windows of so many events, as `fay explain` shows them. */
#include "explain_private.h"

#include <inttypes.h>

#include "aggregator/streams/order.h"

void fay_print_events(FILE *out, const struct fay_plan *plan)
{
	fprintf(out,
		"window       of %" PRIu64
		" events each, counted in the aggregator in the order of their times\n",
		plan->window_events);
	fprintf(out,
		"  order      within %u ms, in %" PRIu64
		" MiB; later events are counted, and put into a later window\n",
		(unsigned)(FAY_ORDER_LATENESS / 1000000), FAY_ORDER_BYTES >> 20);
	fay_print_filters(out, fay_plan_private(plan));
	fay_print_columns(out, fay_plan_private(plan));
}

void fay_print_json_events(FILE *out, const struct fay_plan *plan)
{
	fprintf(out, ",\"window\":{\"events\":%" PRIu64 ",\"rows\":", plan->window_events);
	fay_print_json_stage(out, fay_plan_private(plan));
	fputc('}', out);
}
