/* SPDX-License-Identifier: MIT */
/* A certificate's nodes, taken apart to be changed and put together again. */
#ifndef FAY_TESTS_CERTIFICATE_NODES_H
#define FAY_TESTS_CERTIFICATE_NODES_H

#include "certificates.h"

struct claim_node {
	int64_t address;
	uint64_t count, kind, a, body, measure, entries;
	unsigned flags;
	uint32_t targets;
	int64_t *to;         /* numbers of nodes */
	const uint8_t *list; /* without the number of entries */
	size_t list_size;
};

struct claim {
	const uint8_t *before; /* the header, and the walks before */
	size_t before_size;
	struct claim_node *nodes; /* of one walk */
	uint32_t count;
	const uint8_t *rest; /* the walks behind it */
	size_t rest_size;
};

/* The first probe's first or second walk. */
bool claim_read(struct claim *c, const uint8_t *bytes, size_t size, bool second);
void claim_write(const struct claim *c, struct fay_bytes *out);
/* Cuts node i before its instruction `at`, at the address: the second half is node i + 1. */
void claim_cut(struct claim *c, uint32_t i, uint64_t at, int64_t address);
void claim_free(struct claim *c);

#endif
