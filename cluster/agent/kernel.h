/* SPDX-License-Identifier: MIT */
/* A feed of counts from this machine's kernel, through BPF. */
#ifndef FAY_CLUSTER_KERNEL_H
#define FAY_CLUSTER_KERNEL_H

#include "cluster/job/job.h"
#include "cluster/wire/object.h"

/* Resolves, loads and attaches the object, which must outlive the feed. `memory`: bytes that the
 * kernel may be asked for to aggregate in, and again of groups. */
int fay_kernel_feed_create(struct fay_object *object, const struct fay_wire_start *start,
			   uint64_t memory, struct fay_feed *feed, struct fay_error *error);

#endif
