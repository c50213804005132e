/* SPDX-License-Identifier: MIT */
/* KMeans: what the root makes of vectors. */
#include "finished.h"

/* The square of the distance of vector `v` from the mean of those that have `label`. */
static double distance(const double vectors[KEYS][7], const uint32_t labels[KEYS], size_t v,
		       uint32_t label)
{
	double sum = 0;
	for (unsigned d = 0; d < 7; d++) {
		double mean = 0, members = 0;
		for (size_t i = 0; i < KEYS; i++) {
			mean += labels[i] == label ? vectors[i][d] : 0;
			members += labels[i] == label;
		}
		mean /= members;
		sum += (vectors[v][d] - mean) * (vectors[v][d] - mean);
	}
	return sum;
}

/* Each vector's rows have one cluster, and no other cluster's mean is nearer: vectors are keys,
 * their values how many events each thread has. */
static void kmeans(void **state)
{
	struct answer a;
	double vectors[KEYS][7] = { { 0 } };
	uint32_t labels[KEYS], clusters = 0;
	memset(labels, 0xff, sizeof(labels));
	for (unsigned i = 0; i < EVENTS; i++)
		vectors[events[i].arg[0]][events[i].tid]++;
	run_query(&a, "cluster.Function(\"a!b\").GroupBy(x => new { v = x.Arg(0), d = x.tid "
		      "}).KMeans(4, g => g.Key.v, g => g.Key.d, g => g.Count())");
	for (size_t r = 0; r < a.result.row_count; r++) {
		size_t v = (size_t)get(&a, r, "Vector"), d = (size_t)get(&a, r, "Dimension");
		uint32_t label = (uint32_t)get(&a, r, "Cluster");
		assert_true(get(&a, r, "Value") == vectors[v][d]);
		assert_true(label < 4 && (labels[v] == UINT32_MAX || labels[v] == label));
		labels[v] = label;
		clusters |= 1u << label;
	}
	assert_int_equal(clusters, 15);
	assert_int_equal(labels[0], 0); /* numbered as the vectors come */
	for (size_t v = 0; v < KEYS; v++)
		for (uint32_t c = 0; c < 4; c++)
			assert_true(distance(vectors, labels, v, labels[v]) <=
				    distance(vectors, labels, v, c) * (1 + 1e-9));
	end_query(&a);
}

/* What follows sees clusters as any other value: grouped, filtered, folded. Vectors far apart by
 * construction come apart. */
static void kmeans_then(void **state)
{
	struct answer a;
	run_query(&a, "cluster.Function(\"a!b\").GroupBy(x => x.tid).KMeans(3, g => g.Key, g => 1, "
		      "g => g.Key / 3 * 1000000 + g.Count() % 2)"
		      ".Where(x => x.Cluster != 1).GroupBy(x => x.Cluster).OrderBy(c => c.Key)"
		      ".Select(c => new { c.Key, n = c.Count(), least = c.Min(x => x.Vector), most "
		      "= c.Max(x => x.Vector) })");
	assert_int_equal(a.result.row_count, 2);
	const double expected[2][4] = { { 0, 3, 0, 2 }, { 2, 1, 6, 6 } };
	static const char *const columns[] = { "Key", "n", "least", "most" };
	for (size_t r = 0; r < 2; r++)
		for (unsigned c = 0; c < 4; c++)
			assert_true(get(&a, r, columns[c]) == expected[r][c]);
	end_query(&a);
	/* Fewer different vectors than clusters. */
	run_query(&a, "cluster.Function(\"a!b\").GroupBy(x => x.tid).KMeans(32, g => g.Key, g => "
		      "1, g => g.Key % 2).Max(x => x.Cluster)");
	assert_true(get(&a, 0, "Max") == 1);
	end_query(&a);
}

/* Conditions behind it leave the clusters as they are. */
static void kmeans_where(void **state)
{
	struct answer a;
	run_query(&a, "cluster.Function(\"a!b\").GroupBy(x => x.tid).KMeans(2, g => g.Key, g => 1, "
		      "g => g.Key / 4 * 1000).Where(x => x.Vector > 3).Min(x => x.Cluster)");
	assert_true(get(&a, 0, "Min") == 1);
	end_query(&a);
}

/* Each vector is one number. What the first centres give are the first two, what their means give
 * then the first three. */
static void kmeans_rounds(void **state)
{
	struct answer a;
	run_query(
		&a,
		"cluster.Function(\"a!b\").GroupBy(x => x.tid).KMeans(2, g => g.Key, g => 1, g => "
		"g.Key == 0 ? 9 : g.Key < 4 ? 34 + 3 * g.Key : g.Key == 6 ? 70 : 54 + 3 * g.Key)"
		".Where(x => x.Cluster == 0).Max(x => x.Vector)");
	assert_true(get(&a, 0, "Max") == 3);
	end_query(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kmeans),
		cmocka_unit_test(kmeans_then),
		cmocka_unit_test(kmeans_where),
		cmocka_unit_test(kmeans_rounds),
	};
	return cmocka_run_group_tests(tests, make_events, NULL);
}
