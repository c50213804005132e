/* SPDX-License-Identifier: MIT */
/* What --budget has left out, in the end. */
#include <inttypes.h>

#include "session.h"

void fay_trace_departed_print(const struct trace *trace, const struct fay_departed *one)
{
	const struct fay_left_out *left = &one->left;
	if (trace->json) {
		fprintf(trace->json, "{\"type\":\"left_out\",\"process\":%d", (int)one->pid);
		fay_json_text(trace->json, ",\"module\":", one->module);
		fay_json_text(trace->json, ",\"function\":", one->function);
		fprintf(trace->json,
			",\"after_ns\":%" PRIu64 ",\"events\":%" PRIu64 ",\"event_ns\":%" PRIu64
			",\"share\":%.6f,\"times\":%" PRIu32 ",\"absent_ns\":%" PRIu64 "%s}\n",
			left->after, one->events, one->event_ns, left->share, left->times,
			left->absent, one->beside ? ",\"beside\":true" : "");
	}
	fprintf(trace->messages, "fay: left out: %s!%s from %.3f s on, for %.3f s; ", one->module,
		one->function, (double)left->after / 1e9, (double)left->absent / 1e9);
	if (one->beside)
		fprintf(trace->messages, "calls that went on there meanwhile ended at the jump\n");
	else
		fprintf(trace->messages,
			"the probes ran for %" PRIu64 " events, and for none meanwhile\n",
			one->events);
}
