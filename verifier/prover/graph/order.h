/* SPDX-License-Identifier: MIT */
/* The nodes of a graph in an order in which each loop is in one piece: see order.c. */
#ifndef FAY_VERIFIER_ORDER_H
#define FAY_VERIFIER_ORDER_H

#include "cfg.h"

struct fay_order {
	uint32_t *at; /* the nodes, in order */
	uint32_t *of; /* per node: where it is */
	/* per node: for a head, where its loop ends (exclusive); else the place after its own */
	uint32_t *end;
};

/* False: out of memory. To be released in any case. */
bool fay_order_init(struct fay_order *o, const struct fay_graph *g);
void fay_order_deinit(struct fay_order *o);

#endif
