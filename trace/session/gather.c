/* SPDX-License-Identifier: MIT */
/* What the machines of a cluster have, put together for a picture. */
#include "session.h"

int fay_trace_cluster_gather(struct trace *trace, struct fay_error *error)
{
	struct fay_aggregator *fresh;
	if (!trace->root || !fay_root_replaces(trace->root))
		return FAY_OK;
	if (fay_aggregator_create(trace->schema, &fresh, error))
		return error->code;
	trace->aggregator = fresh;
	return fay_root_gather(trace->root, fresh, error);
}

void fay_trace_cluster_gathered(struct trace *trace)
{
	if (!trace->root || trace->aggregator == trace->cluster_rows)
		return;
	fay_aggregator_destroy(trace->aggregator);
	trace->aggregator = trace->cluster_rows;
}
