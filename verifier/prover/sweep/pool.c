/* SPDX-License-Identifier: MIT */
/* See pool.h. */
#include "pool.h"

#include <stdlib.h>

struct fay_state *fay_pool_copy(struct fay_pool *pool, const struct fay_state *s)
{
	uint32_t size = s->count / FAY_POOL_STEP;
	struct fay_state *copy = pool->spare[size];

	if (copy)
		pool->spare[size] = copy->next;
	else if (*pool->bytes <= pool->most)
		copy = fay_state_create((size + 1) * FAY_POOL_STEP);
	if (!copy)
		return NULL;
	*pool->bytes += fay_state_size(s->count);
	fay_state_copy(copy, s);
	return copy;
}

void fay_pool_drop(struct fay_pool *pool, struct fay_state *s)
{
	if (!s)
		return;
	*pool->bytes -= fay_state_size(s->count);
	s->next = pool->spare[s->count / FAY_POOL_STEP];
	pool->spare[s->count / FAY_POOL_STEP] = s;
}

void fay_pool_drop_list(struct fay_pool *pool, struct fay_state *list)
{
	for (struct fay_state *next; list; list = next) {
		next = list->next;
		fay_pool_drop(pool, list);
	}
}

void fay_pool_deinit(struct fay_pool *pool)
{
	for (unsigned i = 0; i < sizeof(pool->spare) / sizeof(pool->spare[0]); i++)
		for (struct fay_state *s = pool->spare[i], *next; s; s = next) {
			next = s->next;
			free(s);
		}
}
