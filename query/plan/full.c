/* SPDX-License-Identifier: MIT */
/* Whether what the query says of full rings, `WhenFull(...)`, goes with what it asks for. */
#include "planner_private.h"

bool fay_planner_when_full(struct fay_planner *planner)
{
	struct fay_plan *plan = planner->plan;
	const struct fay_checked *checked = planner->checked;
	if (!checked->when_full_at.end)
		return true;
	plan->when_full = checked->when_full;
	if (plan->domain == DOMAIN_FILE)
		return fay_query_fail(
			       planner->query, FAY_E_USAGE, checked->when_full_at,
			       "events of a saved trace are in no ring: leave out `WhenFull`") !=
		       NULL;
	if (plan->domain == DOMAIN_KERNEL && checked->when_full != FAY_FULL_DROP)
		return fay_query_fail(planner->query, FAY_E_REFUSED, checked->when_full_at,
				      "probes in the kernel neither wait nor overwrite: where a "
				      "ring is full they drop the event, `WhenFull(Drop)`") != NULL;
	for (unsigned side = 0;
	     checked->when_full == FAY_FULL_OVERWRITE && side < plan->source_count; side++)
		if (fay_plan_stage(plan, side)->kind != FAY_STATE_STREAM)
			return fay_query_fail(planner->query, FAY_E_REFUSED, checked->when_full_at,
					      "`Overwrite` is for rows of events: this query's "
					      "rows are aggregates of many events, which must not "
					      "be overwritten; use `Drop` or `Block`") != NULL;
	return true;
}
