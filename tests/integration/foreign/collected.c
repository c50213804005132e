/* SPDX-License-Identifier: MIT */
/* A collector that takes each word of stacks and registers for a pointer: foreign_stacks.sh. */
#define GC_THREADS
#include <gc/gc.h>
#include <pthread.h>

#include "foreign.h"

struct tree {
	struct tree *left, *right;
	long value;
};
TRACED struct tree *traced_build(long depth)
{
	struct tree *tree = GC_MALLOC(sizeof(*tree));
	if (depth) {
		tree->left = traced_build(depth - 1);
		tree->right = traced_build(depth - 1);
	}
	CLOBBER;
	tree->value = depth;
	return tree;
}
TRACED long traced_sum(const struct tree *tree)
{
	long sum = tree->value;
	if (tree->left)
		sum += traced_sum(tree->left) + traced_sum(tree->right);
	CLOBBER;
	return sum;
}
static void *build(void *result)
{
	long *sum = result;

	for (int i = 0; i < 10; i++)
		*sum += traced_sum(traced_build(10)); /* only the stack points to it */
	tally(10 * 2 * 2047, 10 * 2 * 2047, 0);
	return NULL;
}
static long trees(void)
{
	pthread_t threads[2];
	long sums[2] = { 0, 0 };

	GC_INIT();
	for (int t = 0; t < 2; t++)
		pthread_create(&threads[t], NULL, build, &sums[t]);
	GC_gcollect();
	for (int t = 0; t < 2; t++)
		pthread_join(threads[t], NULL);
	return sums[0] + 3 * sums[1];
}
SCENARIOS({ "trees", trees })
