/* SPDX-License-Identifier: MIT */
/* Where an agent's counts come from. */
#ifndef FAY_CLUSTER_AGENT_FEEDS_PRIVATE_H
#define FAY_CLUSTER_AGENT_FEEDS_PRIVATE_H

#include "cluster/access/access.h"
#include "cluster/job/job.h"
#include "cluster/wire/wire.h"
#include "trust/trust.h"

/* What a START asks for, and who does. */
struct fay_asked {
	const struct fay_wire_head *head;
	const struct fay_wire_start *start;
	const struct fay_key_file *signers;
	const struct fay_key_entry *signer;
};
/* admit.c. *verdict is the caller's in any case, as is free(3) of it; NULL: it did not come so far.
 * What is installed of it is to go into *log. */
int fay_agent_admit(const struct fay_asked *asked, struct fay_verdict **verdict,
		    struct fay_trust_log *log, struct fay_error *error);

/* A feed of counts from processes of this machine, by name or number. */

/*
 * Attaches the verdict's probes. FAY_E_REFUSED or FAY_E_USAGE: nothing is there to be traced (and
 * nothing to wait for). The verdict and the role (NULL: any process) must outlive the feed.
 * `memory`: bytes of groups; with more of them snapshots fail (FAY_E_LIMIT). `log`: of the verdict.
 */
int fay_processes_create(const struct fay_verdict *verdict, const struct fay_wire_start *start,
			 const struct fay_role *role, const struct fay_trust_log *log,
			 uint64_t memory, struct fay_feed *feed, struct fay_error *error);

/* A feed of counts from this machine's kernel, through BPF. */

/* Resolves, loads and attaches the object, which must outlive the feed. `memory`: bytes that the
 * kernel may be asked for to aggregate in, and again of groups. */
int fay_kernel_feed_create(struct fay_object *object, const struct fay_wire_start *start,
			   uint64_t memory, struct fay_feed *feed, struct fay_error *error);

#endif
