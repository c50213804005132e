/* SPDX-License-Identifier: MIT */
/* A root and an inner agent without a network, for a schema with one table of each operator that is
 * merged differently. */
#ifndef FAY_TEST_CLUSTER_FIXTURE_H
#define FAY_TEST_CLUSTER_FIXTURE_H

#include "cluster/job/job_parts.h"
#include "cluster/root/root_private.h"
#include "fay/clock.h"

struct fixture_row {
	uint64_t tag, key, count, sum, least;
};
struct fixture_event {
	uint64_t number;
};
extern const struct fay_schema fixture_schema; /* state 0: table, state 1: stream */

struct fixture {
	struct fay_verdict verdict; /* only its schema */
	struct fay_root root;       /* machines have the numbers 1, 2, ... and `key` */
	struct fay_job inner;       /* agent 1000; its children are the machines */
	struct fay_aggregator *aggregator;
	struct fay_keys keys;
	uint8_t key[FAY_KEY_BYTES];
	uint64_t events, event_sum; /* streamed rows that came out of the root */
};
void fixture_init(struct fixture *fixture, size_t machines);
void fixture_deinit(struct fixture *fixture);

#endif
