/* SPDX-License-Identifier: MIT */
#ifndef FAY_CLUSTER_BUS_PRIVATE_H
#define FAY_CLUSTER_BUS_PRIVATE_H

#include <nats/nats.h>

#include "bus.h"

struct fay_bus {
	natsConnection *connection;
	natsOptions *options;
	char urls[1024];
};

#endif
