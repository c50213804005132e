/* SPDX-License-Identifier: MIT */
/* Categories: a result has to say of each vector in which cluster it is; many answers are right. */
#include "reference.h"

#define CLUSTERS_MAX 32

/* Vectors and their values, as rows have them. What no row tells is 0. */
static double values[MAX_EVENTS][MAX_EVENTS];
static uint64_t labels[MAX_EVENTS];
static size_t vector_count, dimension_count;

/* The first row that has the same cell in column `c`, as which the cell is counted. */
static size_t first_like(const struct table *t, size_t row, unsigned c)
{
	size_t first = 0;
	while (compare_cells(&t->rows[first].cells[c], &t->rows[row].cells[c]))
		first++;
	return first;
}

/* Numbers the rows by what they have in column `c`, as they come; returns how many there are. */
static size_t number_rows(const struct table *t, unsigned c, size_t *numbers)
{
	size_t count = 0;
	for (size_t r = 0; r < t->count; r++) {
		size_t first = first_like(t, r, c);
		numbers[r] = first == r ? count++ : numbers[first];
	}
	return count;
}

/* False: rows of one vector are in different clusters. */
static bool make_vectors(const struct table *t, const uint64_t *clusters)
{
	size_t vectors[MAX_EVENTS], dimensions[MAX_EVENTS];
	bool labelled[MAX_EVENTS] = { false };
	vector_count = number_rows(t, 0, vectors);
	dimension_count = number_rows(t, 1, dimensions);
	memset(values, 0, sizeof(values));
	for (size_t r = 0; r < t->count; r++) {
		size_t v = vectors[r];
		values[v][dimensions[r]] = (double)t->rows[r].cells[2].integer;
		if (labelled[v] && labels[v] != clusters[r])
			return false;
		labelled[v] = true;
		labels[v] = clusters[r];
	}
	return true;
}

/* The square of the distance of vector `v` from the mean of those that have `label`. */
static double distance(size_t v, uint64_t label)
{
	double sum = 0;
	for (size_t d = 0; d < dimension_count; d++) {
		double mean = 0, members = 0;
		for (size_t i = 0; i < vector_count; i++) {
			mean += labels[i] == label ? values[i][d] : 0;
			members += labels[i] == label;
		}
		mean /= members;
		sum += (values[v][d] - mean) * (values[v][d] - mean);
	}
	return sum;
}

static size_t count_different(void)
{
	size_t different = 0;
	for (size_t v = 0; v < vector_count; v++) {
		bool seen = false;
		for (size_t o = 0; o < v && !seen; o++)
			seen = !memcmp(values[v], values[o], sizeof(values[v]));
		different += !seen;
	}
	return different;
}

const char *check_clusters(const struct shape *s, const struct table *t, const uint64_t *clusters)
{
	uint64_t count = 0;
	if (!make_vectors(t, clusters))
		return "rows of one vector are in two clusters";
	for (size_t v = 0; v < vector_count; v++) {
		if (labels[v] > count)
			return "clusters are not numbered as their first vectors come";
		count += labels[v] == count;
	}
	size_t different = count_different();
	if (count != (different < s->clusters ? different : s->clusters))
		return "there are not as many clusters as there can be";
	for (size_t v = 0; v < vector_count; v++)
		for (uint64_t c = 0; c < count; c++)
			if (distance(v, labels[v]) > distance(v, c) * (1 + 1e-9) + 1e-9)
				return "a vector is nearer to the mean of another cluster";
	return NULL;
}
