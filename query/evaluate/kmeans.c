/* SPDX-License-Identifier: MIT */
/* K-means clusters of vectors: Lloyd's rounds from Gonzalez's centres. */
#include "kmeans_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct kmeans {
	const double *values;
	size_t count, size;
	unsigned k; /* centres so far */
	double *centres;
	double *nearest;  /* by vector: square of its distance from the nearest centre */
	uint32_t *labels; /* by vector */
};

static double distance(const double *a, const double *b, size_t size)
{
	double sum = 0;
	for (size_t i = 0; i < size; i++)
		sum += (a[i] - b[i]) * (a[i] - b[i]);
	return sum;
}

static const double *vector(const struct kmeans *m, size_t i)
{
	return m->values + i * m->size;
}

static double *centre(const struct kmeans *m, unsigned c)
{
	return m->centres + c * m->size;
}

/* The first of the vectors that are farthest from all centres. */
static size_t farthest(const struct kmeans *m)
{
	size_t best = 0;
	for (size_t i = 1; i < m->count; i++)
		if (m->nearest[i] > m->nearest[best])
			best = i;
	return best;
}

/* Into centre 0. */
static void take_mean(struct kmeans *m)
{
	for (size_t i = 0; i < m->count; i++)
		for (size_t d = 0; d < m->size; d++)
			m->centres[d] += vector(m, i)[d] / (double)m->count;
}

static void choose_centres(struct kmeans *m, unsigned k)
{
	take_mean(m);
	for (size_t i = 0; i < m->count; i++)
		m->nearest[i] = distance(vector(m, i), m->centres, m->size);
	for (m->k = 0; m->k < k; m->k++) {
		size_t next = farthest(m);
		if (m->k && m->nearest[next] == 0) /* all vectors are centres */
			break;
		memcpy(centre(m, m->k), vector(m, next), m->size * sizeof(double));
		for (size_t i = 0; i < m->count; i++) {
			double far = distance(vector(m, i), centre(m, m->k), m->size);
			m->nearest[i] = m->k && m->nearest[i] < far ? m->nearest[i] : far;
		}
	}
}

/* Each vector to the nearest centre, of equally near ones to the first. How many have moved. */
static size_t assign(struct kmeans *m)
{
	size_t moved = 0;
	for (size_t i = 0; i < m->count; i++) {
		uint32_t best = 0;
		double least = INFINITY;
		for (unsigned c = 0; c < m->k; c++) {
			double far = distance(vector(m, i), centre(m, c), m->size);
			if (far < least) {
				least = far;
				best = c;
			}
		}
		moved += m->labels[i] != best;
		m->labels[i] = best;
	}
	return moved;
}

/* Each centre to the mean of its vectors; one that has none stays. */
static void move_centres(struct kmeans *m)
{
	for (unsigned c = 0; c < m->k; c++) {
		size_t members = 0;
		for (size_t i = 0; i < m->count; i++)
			members += m->labels[i] == c;
		if (!members)
			continue;
		memset(centre(m, c), 0, m->size * sizeof(double));
		for (size_t i = 0; i < m->count; i++)
			for (size_t d = 0; m->labels[i] == c && d < m->size; d++)
				centre(m, c)[d] += vector(m, i)[d] / (double)members;
	}
}

/* Numbers clusters as their first vectors come. How many have any. */
static int number_clusters(struct kmeans *m)
{
	uint32_t numbers[FAY_KMEANS_CLUSTERS_MAX], count = 0;
	memset(numbers, 0xff, sizeof(numbers));
	for (size_t i = 0; i < m->count; i++) {
		uint32_t *number = &numbers[m->labels[i]];
		if (*number == UINT32_MAX)
			*number = count++;
		m->labels[i] = *number;
	}
	return (int)count;
}

int fay_kmeans(const double *values, size_t count, size_t size, unsigned k, uint32_t *labels)
{
	struct kmeans m = { .values = values, .count = count, .size = size, .labels = labels };
	int clusters = -1;
	m.centres = calloc((size_t)k * size + 1, sizeof(double));
	m.nearest = calloc(count + 1, sizeof(double));
	if (m.centres && m.nearest && k <= FAY_KMEANS_CLUSTERS_MAX) {
		memset(labels, 0, count * sizeof(*labels));
		if (count)
			choose_centres(&m, k);
		for (unsigned round = 0; assign(&m) && round < FAY_KMEANS_ROUNDS; round++)
			move_centres(&m);
		clusters = number_clusters(&m);
	}
	free(m.centres);
	free(m.nearest);
	return clusters;
}
