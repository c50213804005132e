/* SPDX-License-Identifier: MIT */
/* A feed of counts from processes of this machine, by name or number. */
#ifndef FAY_CLUSTER_PROCESSES_H
#define FAY_CLUSTER_PROCESSES_H

#include "cluster/job/job.h"
#include "cluster/access/role.h"

/*
 * Attaches the verdict's probes. FAY_E_REFUSED or FAY_E_USAGE: nothing is there to be traced (and
 * nothing to wait for). The verdict and the role (NULL: any process) must outlive the feed.
 * `memory`: bytes of groups; with more of them snapshots fail (FAY_E_LIMIT).
 */
int fay_processes_create(const struct fay_verdict *verdict, const struct fay_wire_start *start,
			 const struct fay_role *role, uint64_t memory, struct fay_feed *feed,
			 struct fay_error *error);

#endif
