/* SPDX-License-Identifier: MIT */
/*
 * The summaries of fay/sketch.h as a probe feeds them and as the aggregator merges them:
 * examples/probes/sketches.c, compiled, guarded and verified, runs in four threads' worth of state;
 * the partials are merged in several groupings, and the result is held against exact answers with
 * the bounds that fay/sketch.h states.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fay/aggregator.h"
#include "fay/sketch.h"
#include "harness.h"

#define THREADS 4
#define EVENTS 20000

static struct loaded l;
static struct fay_buffer image;
static uint64_t seed;

static uint64_t random_word(void)
{
	return fay_mix(seed += UINT64_C(0x9e3779b97f4a7c15));
}

static int64_t uniform(void)
{
	return (int64_t)(random_word() % 100000);
}
static int64_t powers(void)
{
	return (int64_t)(random_word() >> (1 + random_word() % 63));
}
static int64_t few(void)
{
	return (int64_t)(random_word() % (1 + random_word() % 60));
}
static int64_t constant(void)
{
	return 4096;
}
static int64_t with_negative(void)
{
	return (int64_t)(random_word() % 2000) - 200;
}
static int64_t (*const distributions[])(void) = { uniform, powers, few, constant, with_negative };

static int by_value(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static struct fay_schema_column column_of(const char *name)
{
	const struct fay_image_state *s = image_state_info(&l, name);
	const struct fay_image_column *c = &l.columns[s->first_column];

	return (struct fay_schema_column){ name,      c->type, c->merge,
					   s->offset, c->size, { c->param[0], c->param[1] } };
}

static void merge_all(uint8_t *to, const uint8_t *from)
{
	static const char *const names[] = { "shape",  "sizes", "buffers", "frequent",
					     "sample", "first", "last" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct fay_schema_column c = column_of(names[i]);

		fay_merge_column(&c, to, from);
	}
}

static uint64_t count_of(const int64_t *sorted, uint64_t value)
{
	uint64_t n = 0;

	for (size_t i = 0; i < EVENTS; i++)
		n += sorted[i] == (int64_t)value;
	return n;
}

static void check_quantiles(const uint8_t *state, const int64_t *sorted)
{
	struct fay_schema_column c = column_of("sizes");

	for (unsigned i = 0; i <= 1000; i++) {
		double q = i / 1000.0, have = fay_value_quantile(&c, state, q);
		int64_t exact = sorted[(size_t)(q * (EVENTS - 1))];

		if (exact < 0)
			exact = 0; /* what is not positive is one bucket */
		if (fabs(have - (double)exact) > (double)exact / 32)
			fail_msg("quantile %g: %g, exactly %lld", q, have, (long long)exact);
	}
}

static void check_shape(const uint8_t *state, const int64_t *sorted)
{
	struct fay_schema_column c = column_of("shape");
	struct fay_value value;
	uint64_t want[FAY_HIST_LOGLINEAR_BUCKETS] = { 0 };

	for (size_t i = 0; i < EVENTS; i++)
		want[fay_loglinear_bucket(sorted[i], FAY_HIST_LOGLINEAR_BITS)]++;
	assert_true(fay_value_decode(&c, state, &value));
	assert_int_equal(value.histogram.count, FAY_HIST_LOGLINEAR_BUCKETS);
	assert_memory_equal(value.histogram.buckets, want, sizeof(want));
}

static void check_top(const uint8_t *state, const int64_t *sorted)
{
	struct fay_schema_column c = column_of("frequent");
	const unsigned k = (c.size - 16) / 16;
	uint64_t total, error, found = 0, heavy = 0;
	struct fay_item item;

	fay_value_top_bound(&c, state, &total, &error);
	assert_int_equal(total, EVENTS);
	assert_true(error <= EVENTS / (k + 1));
	for (size_t i = 0; fay_value_item(&c, state, i, &item); i++) {
		uint64_t exact = count_of(sorted, item.key);

		if (item.count > exact || exact - item.count > error)
			fail_msg("key %llu: %llu, exactly %llu, error %llu",
				 (unsigned long long)item.key, (unsigned long long)item.count,
				 (unsigned long long)exact, (unsigned long long)error);
		found += exact > EVENTS / (k + 1);
	}
	/* every value that is frequent enough is there */
	for (size_t i = 0, run = 0; i < EVENTS; i++) {
		run = i && sorted[i] == sorted[i - 1] ? run + 1 : 1;
		heavy += run == EVENTS / (k + 1) + 1;
	}
	assert_int_equal(found, heavy);
}

static void check_rest(const uint8_t *state, const int64_t *sorted, uint64_t distinct,
		       int64_t first, int64_t last)
{
	struct fay_schema_column c = column_of("buffers");
	struct fay_value value;
	struct fay_item item;

	assert_true(fay_value_decode(&c, state, &value));
	if (fabs((double)value.u64 - (double)distinct) > 4 * 0.023 * (double)distinct)
		fail_msg("distinct: %llu, exactly %llu", (unsigned long long)value.u64,
			 (unsigned long long)distinct);
	c = column_of("first");
	assert_true(fay_value_decode(&c, state, &value));
	assert_int_equal(value.i64, first);
	c = column_of("last");
	assert_true(fay_value_decode(&c, state, &value));
	assert_int_equal(value.i64, last);
	c = column_of("sample");
	for (size_t i = 0; i < 8; i++) {
		assert_true(fay_value_item(&c, state, i, &item));
		assert_true(count_of(sorted, item.key) > 0);
	}
	assert_false(fay_value_item(&c, state, 8, &item));
}

static void test_bounds(void **unused)
{
	static int64_t values[EVENTS];
	uint32_t size = l.header->local_size;
	uint8_t *partial[THREADS], *merged = calloc(1, size), *other = calloc(1, size);

	for (size_t d = 0; d < sizeof(distributions) / sizeof(*distributions); d++) {
		uint64_t distinct = 1 + (d * 7919) % EVENTS;
		int64_t first, last;

		seed = d;
		for (int t = 0; t < THREADS; t++) {
			memset(l.local, 0, size);
			for (int i = t; i < EVENTS; i += THREADS) {
				values[i] = distributions[d]();
				memset(l.event, 0, sizeof(*l.event));
				l.event->arg[1] = (uint64_t)i % distinct * 4096;
				l.event->arg[2] = (uint64_t)values[i];
				l.event->time = UINT64_C(1700000000000000000) + (uint64_t)i * 1000;
				l.event->cycles = random_word();
				l.event->tid = 100 + (uint32_t)t;
				image_call(&l, 0);
			}
			partial[t] = memcpy(malloc(size), l.local, size);
		}
		first = values[0];
		last = values[EVENTS - 1];
		qsort(values, EVENTS, sizeof(*values), by_value);
		for (int grouping = 0; grouping < 2; grouping++) {
			memset(merged, 0, size);
			memset(other, 0, size);
			merge_all(merged, partial[grouping]);
			merge_all(grouping ? other : merged, partial[2]);
			merge_all(other, partial[3]);
			merge_all(merged, partial[!grouping]);
			merge_all(merged, other);
			check_quantiles(merged, values);
			check_shape(merged, values);
			check_top(merged, values);
			check_rest(merged, values, distinct, first, last);
		}
		for (int t = 0; t < THREADS; t++)
			free(partial[t]);
	}
	free(merged);
	free(other);
}

/* Each of 64 values is as likely to be in the sample: over many runs, none far from its share. */
static void test_sample_is_uniform(void **unused)
{
	struct fay_schema_column c = column_of("sample");
	unsigned chosen[64] = { 0 }, runs = 3000;

	seed = 7;
	for (unsigned r = 0; r < runs; r++) {
		struct fay_item item;

		memset(l.local, 0, l.header->local_size);
		for (unsigned i = 0; i < 64; i++) {
			l.event->arg[2] = i;
			l.event->time = i;
			l.event->cycles = random_word();
			image_call(&l, 0);
		}
		for (size_t i = 0; fay_value_item(&c, l.local, i, &item); i++)
			chosen[item.key]++;
	}
	for (unsigned i = 0; i < 64; i++) { /* 375 expected, standard deviation 18 */
		double expected = runs * 8 / 64.0, deviation = sqrt(expected * (1 - 8 / 64.0));

		if (fabs(chosen[i] - expected) > 5 * deviation)
			fail_msg("value %u was chosen %u times of %u, %.0f expected", i, chosen[i],
				 runs, expected);
	}
}

/* From a handful to more than there are registers. */
static void test_distinct_over_range(void **unused)
{
	static const uint64_t counts[] = { 0, 1, 2, 10, 100, 1000, 5000, 10000, 100000, 1000000 };
	struct fay_schema_column c = { "d", FAY_TYPE_U64, FAY_MERGE_DISTINCT, 0, 2048, { 0 } };
	double worst = 0;

	for (size_t n = 0; n < sizeof(counts) / sizeof(*counts); n++)
		for (uint64_t round = 0; round < (counts[n] > 10000 ? 4 : 40); round++) {
			struct fay_distinct d = { { 0 } };
			struct fay_value value;
			double error;

			for (uint64_t i = 0; i < counts[n]; i++)
				fay_distinct(&d, (round << 40) + i * (round + 1));
			assert_true(fay_value_decode(&c, (uint8_t *)&d, &value));
			error = counts[n] ? fabs((double)value.u64 - (double)counts[n]) /
						    (double)counts[n]
					  : (double)value.u64;
			worst = error > worst ? error : worst;
			if (error > 4.5 * 0.023)
				fail_msg("%llu different values: %llu",
					 (unsigned long long)counts[n],
					 (unsigned long long)value.u64);
		}
	printf("distinct: worst of all %.1f %%\n", 100 * worst);
}

static int setup(void **unused)
{
	struct fay_error error = { 0 };

	fay_buffer_init(&image);
	if (fay_compile_source(FAY_EXAMPLES "/sketches.c", NULL, &image, &error))
		fail_msg("%s", error.message);
	image_verify("sketches", &image);
	image_load(&image, &l);
	return 0;
}

static int teardown(void **unused)
{
	image_unload(&l);
	fay_buffer_deinit(&image);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_sample_is_uniform),
		cmocka_unit_test(test_distinct_over_range),
	};

	return cmocka_run_group_tests_name("compiler sketches", tests, setup, teardown);
}
