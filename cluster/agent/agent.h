/* SPDX-License-Identifier: MIT */
/* An agent: joins the cluster, starts what its signers may ask for, and serves its queries. */
#ifndef FAY_CLUSTER_AGENT_H
#define FAY_CLUSTER_AGENT_H

#include <stdio.h>

#include "cluster/job/job.h"

#define FAY_AGENT_JOBS_MAX 16u
#define FAY_AGENT_REMEMBERED 1024u /* queries that do not start twice */

struct fay_agent_options {
	struct fay_bus_options bus;
	const char *name, *labels;
	const char *signers; /* file */
	FILE *audit;         /* a JSON line for each START */
	struct fay_job_limits limits;
	/* between two looks at the programs while a query runs; 0: 2 to 10, as it needs */
	int busy_ms;
	/* Makes a query's feed; NULL: fay_processes_create(). For benchmarks and tests. */
	int (*feed)(const struct fay_verdict *verdict, const struct fay_wire_start *start,
		    struct fay_feed *feed, struct fay_error *error);
};

struct fay_agent;
int fay_agent_create(const struct fay_agent_options *options, const struct fay_keys *keys,
		     struct fay_agent **agent, struct fay_error *error);
/* Serves messages and queries for up to a few milliseconds, or sleeps if there is none.
 * FAY_E_REFUSED: it is off the cluster for good. */
int fay_agent_tick(struct fay_agent *agent, struct fay_error *error);
/* Ends all queries: detaches, sends what is left, and waits up to timeout_ms for it to be taken. */
void fay_agent_end(struct fay_agent *agent, int timeout_ms);
void fay_agent_destroy(struct fay_agent *agent);

#endif
