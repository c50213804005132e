/* SPDX-License-Identifier: MIT */
/* K-means, for `KMeans(...)` at the root. */
#ifndef FAY_QUERY_EVALUATE_KMEANS_PRIVATE_H
#define FAY_QUERY_EVALUATE_KMEANS_PRIVATE_H

#include "query/values/values.h"

#define FAY_KMEANS_VALUES_MAX (4u << 20) /* count * size: 32 MiB */
#define FAY_KMEANS_ROUNDS 50u            /* after which it ends, settled or not */

/*
 * Divides `count` vectors of `size` values each, which lie one after the other, into up to `k`
 * clusters, each vector with the centre that is nearest (Lloyd, "Least squares quantization in
 * PCM", 1982). The first centre is the vector farthest from the mean of all, each further one that
 * farthest from the centres so far (Gonzalez 1985): the same vectors give the same clusters. There
 * are fewer than `k` if fewer vectors differ. labels[i]: vector i's cluster, numbered from 0 in the
 * order of the vectors. -1: out of memory, else how many clusters there are.
 */
int fay_kmeans(const double *values, size_t count, size_t size, unsigned k, uint32_t *labels);

#endif
