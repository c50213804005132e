/* SPDX-License-Identifier: MIT */
/* A bus without a network, linked by --wrap: it is always connected, and nothing comes. */
#ifndef FAY_TEST_CLUSTER_QUIET_BUS_H
#define FAY_TEST_CLUSTER_QUIET_BUS_H

#include "fixture.h"

struct letter { /* one message */
	uint8_t *bytes;
	size_t size;
};
extern struct letter sent; /* what was sent last */

#endif
