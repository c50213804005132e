/* SPDX-License-Identifier: MIT */
/* States that come and go: what is released is used again, by size, while it is still in the cache.
 * */
#ifndef FAY_VERIFIER_POOL_H
#define FAY_VERIFIER_POOL_H

#include "verifier/prover/transfer/analysis.h"

#define FAY_POOL_STEP 16u /* locations: sizes are multiples of this */

struct fay_pool {
	/* lists by size, linked by `next` */
	struct fay_state *spare[FAY_MAX_LOCATIONS / FAY_POOL_STEP + 1];
	size_t *bytes; /* of the states in use */
	size_t most;
};

/* NULL: out of memory, or more than pool->most bytes in use. */
struct fay_state *fay_pool_copy(struct fay_pool *pool, const struct fay_state *s);
/* `s` is NULL or came from fay_pool_copy(). */
void fay_pool_drop(struct fay_pool *pool, struct fay_state *s);
/* All of a list linked by `next`. */
void fay_pool_drop_list(struct fay_pool *pool, struct fay_state *list);
/* Frees what is spare. States in use are the user's, and may be freed with free(). */
void fay_pool_deinit(struct fay_pool *pool);

#endif
