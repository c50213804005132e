/* SPDX-License-Identifier: MIT */
/*
 * Every example probe but those with tables (test_tables.c), compiled, verified and run: its state
 * is compared with what the source says. The inputs include those that the guards are there for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "examples.h"

#define BIAS (UINT64_C(1) << 63)

static void test_count(void **unused)
{
	struct loaded l;

	example_open("count", &l);
	assert_string_equal(image_string(&l.probes[0].pattern), "libc!read");
	assert_int_equal(l.probes[0].kind, FAY_PROBE_ENTRY);
	assert_int_equal(l.slots, 0);
	for (int i = 0; i < 1000; i++)
		image_call(&l, 0);
	assert_int_equal(example_word(&l, "reads", 0), 1000);
	example_close(&l);
}

struct bucketed {
	int64_t value;
	unsigned bucket;
};

static void count_in_buckets(struct loaded *l, const struct bucketed *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t before = example_word(l, "sizes", cases[i].bucket);

		l->event->arg[2] = (uint64_t)cases[i].value;
		image_call(l, 0);
		assert_int_equal(example_word(l, "sizes", cases[i].bucket), before + 1);
	}
}

static void test_histogram(void **unused)
{
	static const struct bucketed cases[] = { { 0, 0 }, { -1, 0 },    { INT64_MIN, 0 },
						 { 1, 1 }, { 2, 2 },     { 3, 2 },
						 { 4, 3 }, { 1024, 11 }, { INT64_MAX, 63 } };
	struct loaded l;

	example_open("histogram", &l);
	count_in_buckets(&l, cases, sizeof(cases) / sizeof(*cases));
	example_close(&l);
}

static void test_linear(void **unused)
{
	static const struct bucketed cases[] = { { -5, 0 },
						 { 0, 1 },
						 { 511, 1 },
						 { 512, 2 },
						 { 512 * 32 - 1, 32 },
						 { 512 * 32, 33 },
						 { INT64_MAX, 33 },
						 { INT64_MIN, 0 } };
	struct loaded l;

	example_open("linear", &l);
	count_in_buckets(&l, cases, sizeof(cases) / sizeof(*cases));
	assert_int_equal(l.columns[0].param[1], 512);
	example_close(&l);
}

static void test_extremes(void **unused)
{
	static const int64_t values[] = { 7, -3, 1000, 12, INT64_MAX, INT64_MIN };
	struct loaded l;
	uint64_t sum = 0;

	example_open("extremes", &l);
	for (int i = 0; i < 4; i++) {
		l.event->arg[0] = (uint64_t)values[i];
		sum += (uint64_t)values[i];
		image_call(&l, 0);
	}
	assert_int_equal(example_word(&l, "sizes", 0), 4);
	assert_int_equal(example_word(&l, "sizes", 1), sum);
	assert_int_equal((int64_t)(~example_word(&l, "sizes", 2) ^ BIAS), -3);
	assert_int_equal((int64_t)(example_word(&l, "sizes", 3) ^ BIAS), 1000);
	assert_int_equal(example_word(&l, "sizes", 4), sum);
	assert_int_equal(example_word(&l, "sizes", 5), 4);
	for (int i = 4; i < 6; i++) {
		l.event->arg[0] = (uint64_t)values[i];
		image_call(&l, 0);
	}
	assert_int_equal((int64_t)(~example_word(&l, "sizes", 2) ^ BIAS), INT64_MIN);
	assert_int_equal((int64_t)(example_word(&l, "sizes", 3) ^ BIAS), INT64_MAX);
	example_close(&l);
}

static void test_comm_filter(void **unused)
{
	struct loaded l;

	example_open("comm_filter", &l);
	strcpy(l.event->comm, "redis-server");
	image_call(&l, 0);
	strcpy(l.event->comm, "redis-serverX");
	image_call(&l, 0);
	strcpy(l.event->comm, "redis");
	image_call(&l, 0);
	assert_int_equal(example_word(&l, "theirs", 0), 1);
	assert_int_equal(example_word(&l, "others", 0), 2);
	example_close(&l);
}

static void test_open_path(void **unused)
{
	static char etc[64] = "/etc/passwd", tmp[64] = "/tmp/x", full[64];
	struct loaded l;

	memset(full, 'a', sizeof(full));
	example_open("open_path", &l);
	l.event->arg[0] = (uintptr_t)etc;
	image_call(&l, 0);
	l.event->arg[0] = (uintptr_t)tmp;
	image_call(&l, 0);
	l.event->arg[0] = (uintptr_t)full;
	image_call(&l, 0);
	l.event->arg[0] = 8;
	image_call(&l, 0);
	assert_int_equal(example_word(&l, "below_etc", 0), 1);
	assert_int_equal(example_word(&l, "unreadable", 0), 1);
	assert_int_equal(example_word(&l, "lengths", 4), 1); /* 11 */
	assert_int_equal(example_word(&l, "lengths", 3), 1); /* 6 */
	assert_int_equal(example_word(&l, "lengths", 7), 1); /* 64 */
	example_close(&l);
}

static void test_checksum(void **unused)
{
	struct loaded l;
	uint32_t low = 0, high = 0;

	example_open("checksum", &l);
	for (unsigned i = 0; i < 6; i++) {
		l.event->arg[i] = 0x123456789u * (i + 1);
		low = (low + (uint32_t)(l.event->arg[i] & 0xffff)) % 65535;
		high = (high + low) % 65535;
	}
	for (int i = 0; i < 5; i++)
		image_call(&l, 0);
	assert_int_equal(example_word(&l, "repeated", 0), 4);
	assert_int_equal(example_word(&l, "last", 0), (uint64_t)high << 16 | low);
	example_close(&l);
}

static void test_lookup_table(void **unused)
{
	struct loaded l;

	example_open("lookup_table", &l);
	assert_true(l.rodata_size >= 16);
	l.event->arg[1] = 0xfff0f00112345678u;
	image_call(&l, 0);
	assert_int_equal(example_word(&l, "flags", 0), 1);
	assert_int_equal(example_word(&l, "flags", 1), __builtin_popcount(0x12345678));
	example_close(&l);
}

static void seek(struct loaded *l, uint64_t offset, uint64_t whence, uint64_t result)
{
	l->event->arg[1] = offset;
	l->event->arg[2] = whence;
	image_call(l, 0);
	l->event->retval = result;
	image_call(l, 1);
}

static void test_handlers(void **unused)
{
	struct loaded l;

	example_open("handlers", &l);
	seek(&l, 0, 0, 0);
	seek(&l, 0, 0, 0);
	seek(&l, 5, 0, 5);
	seek(&l, 40, 1, 45);
	seek(&l, 1000, 1, UINT64_MAX);
	seek(&l, 0, 2, 4711);
	seek(&l, 0, 3, UINT64_MAX);
	seek(&l, 0, UINT64_MAX, 9);
	assert_int_equal(example_word(&l, "seeks", 0), 2);
	assert_int_equal(example_word(&l, "seeks", 1), 40);
	assert_int_equal(example_word(&l, "seeks", 2), 4711 ^ BIAS);
	assert_int_equal(example_word(&l, "seeks", 3), 2);
	example_close(&l);
}

static void test_index_guard(void **unused)
{
	static const uint64_t weight[10] = { 1, 2, 3, 5, 8, 13, 21, 34, 55, 89 };
	static const uint64_t hostile[] = {
		10, 11, 1u << 20, UINT64_MAX, UINT64_C(1) << 62, UINT64_C(1) << 63
	};
	uint64_t sum = 0;
	struct loaded l;

	example_open("index_guard", &l);
	for (uint64_t i = 0; i < 10; i++) {
		l.event->arg[2] = i;
		image_call(&l, 0);
		sum += weight[i];
	}
	assert_int_equal(example_word(&l, "weights", 0), sum);
	for (size_t i = 0; i < sizeof(hostile) / sizeof(*hostile); i++) {
		l.event->arg[2] = hostile[i];
		image_call(&l, 0);
		sum += 89;
		assert_int_equal(example_word(&l, "weights", 0), sum);
	}
	example_close(&l);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void test_sorting(void **unused)
{
	struct loaded l;
	uint64_t v[6], expected[65] = { 0 }, x = 88172645463325252u;

	example_open("sorting", &l);
	for (int round = 0; round < 500; round++) {
		for (int i = 0; i < 6; i++) {
			x ^= x << 13, x ^= x >> 7, x ^= x << 17;
			v[i] = l.event->arg[i] = x >> (x & 63);
		}
		image_call(&l, 0);
		qsort(v, 6, sizeof(*v), compare);
		x += 1;
		v[0] = v[2] / 2 + v[3] / 2;
		expected[(int64_t)v[0] <= 0 ? 0 : 64 - __builtin_clzll(v[0])]++;
	}
	assert_memory_equal(image_state(&l, "medians"), expected, sizeof(expected));
	example_close(&l);
}

static void test_hash_sample(void **unused)
{
	uint64_t sampled = 0;
	struct loaded l;

	example_open("hash_sample", &l);
	for (uint64_t n = 0; n < 2000; n++) {
		uint64_t hash = 0xcbf29ce484222325u;

		for (unsigned i = 0; i < 3; i++) {
			l.event->arg[i] = n * (i + 1) * 0x9e3779b97f4a7c15u;
			for (unsigned k = 0; k < 64; k += 8)
				hash = (hash ^ (l.event->arg[i] >> k & 0xff)) * 0x100000001b3u;
		}
		sampled += !(hash >> 60);
		image_call(&l, 0);
	}
	assert_int_equal(example_word(&l, "all", 0), 2000);
	assert_int_equal(example_word(&l, "sampled", 0), sampled);
	assert_true(sampled > 0);
	example_close(&l);
}

static void test_latency(void **unused)
{
	struct loaded l;

	example_open("latency", &l);
	assert_int_equal(l.header->probe_count, 2);
	assert_int_equal(l.probes[1].kind, FAY_PROBE_RETURN);
	image_call(&l, 1); /* a return without its entry */
	l.event->time = 1000000;
	image_call(&l, 0);
	l.event->time = 1000700;
	image_call(&l, 1);
	image_call(&l, 1);
	assert_int_equal(example_word(&l, "nanoseconds", 10), 1);
	assert_int_equal(example_word(&l, "nanoseconds", 0), 0);
	example_close(&l);
}

static void test_opens(void **unused)
{
	static char path[64] = "/etc/passwd";
	struct loaded l;

	example_open("opens", &l);
	l.event->time = 42;
	l.event->tid = 7;
	l.event->arg[0] = (uintptr_t)path;
	image_call(&l, 0);
	assert_int_equal(helper_log.emits, 1);
	assert_int_equal(((uint64_t *)helper_log.emitted)[0], 42);
	assert_int_equal(((uint64_t *)helper_log.emitted)[1], 7);
	assert_string_equal((char *)helper_log.emitted + 16, path);
	example_close(&l);
}

static void test_shared(void **unused)
{
	struct loaded l;

	example_open("shared", &l);
	assert_int_equal(l.header->local_size, 0);
	l.event->arg[2] = 100;
	l.event->arg[1] = 7;
	image_call(&l, 0);
	assert_int_equal(example_word(&l, "per_item", 0), 14);
	l.event->arg[1] = 0; /* x / 0 is x */
	image_call(&l, 0);
	assert_int_equal(example_word(&l, "per_item", 0), 114);
	assert_int_equal(example_word(&l, "calls", 0), 2);
	example_close(&l);
}

static void test_collatz(void **unused)
{
	struct loaded l;

	example_open("collatz", &l);
	l.event->arg[0] = 27; /* 111 steps */
	image_call(&l, 0);
	assert_int_equal(example_word(&l, "steps", 7), 1);
	l.event->arg[0] = 837799; /* 524 steps */
	image_call(&l, 0);
	assert_int_equal(example_word(&l, "steps", 10), 1);
	l.event->arg[0] = 1;
	image_call(&l, 0);
	assert_int_equal(example_word(&l, "steps", 0), 1);
	l.event->arg[0] = 63728127; /* 949 steps */
	image_call(&l, 0);
	assert_int_equal(example_word(&l, "steps", 10), 2);
	l.event->arg[0] = 75128138247; /* 1228 steps: out of fuel, nothing recorded */
	image_call(&l, 0);
	assert_int_equal(example_word(&l, "steps", 11), 0);
	example_close(&l);
}

static void test_recent(void **unused)
{
	struct loaded l;

	example_open("recent", &l);
	for (uint64_t i = 0; i < 40; i++) {
		l.event->arg[1] = i < 20 ? i : i - 5;
		image_call(&l, 0);
	}
	assert_int_equal(example_word(&l, "calls", 0), 40);
	assert_int_equal(example_word(&l, "seen_before", 0), 5);
	example_close(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_count),       cmocka_unit_test(test_histogram),
		cmocka_unit_test(test_linear),      cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_comm_filter), cmocka_unit_test(test_open_path),
		cmocka_unit_test(test_checksum),    cmocka_unit_test(test_lookup_table),
		cmocka_unit_test(test_handlers),    cmocka_unit_test(test_index_guard),
		cmocka_unit_test(test_sorting),     cmocka_unit_test(test_hash_sample),
		cmocka_unit_test(test_latency),     cmocka_unit_test(test_opens),
		cmocka_unit_test(test_shared),      cmocka_unit_test(test_collatz),
		cmocka_unit_test(test_recent),
	};

	return cmocka_run_group_tests_name("compiler examples", tests, NULL, NULL);
}
