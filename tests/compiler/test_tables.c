/* SPDX-License-Identifier: MIT */
/* The example probes with tables: what is in the rows and what was flushed from them is exact. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "examples.h"

static void test_by_size(void **unused)
{
	struct loaded l;

	example_open("by_size", &l);
	for (uint64_t i = 0; i < 3000; i++) {
		l.event->arg[2] = i % 300 * 1024 + i % 1024;
		image_call(&l, 0);
	}
	assert_int_equal(helper_log.flushes, 0);
	for (uint64_t k = 0; k < 300; k++)
		assert_int_equal(example_total(&l, "by_size", k), 10);
	example_close(&l);
}

/* More keys than rows: nothing is lost, whatever is flushed in between. */
static void test_table_overflow(void **unused)
{
	struct loaded l;

	example_open("by_thread", &l);
	for (uint64_t i = 0; i < 6000; i++) {
		l.event->tid = (uint32_t)(i % 3000);
		l.event->arg[2] = i;
		image_call(&l, 0);
	}
	assert_true(helper_log.flushes >= 2);
	for (uint64_t k = 0; k < 3000; k++)
		assert_int_equal(example_total(&l, "by_thread", k), 2);
	/* No room: the event is dropped whole, the table stays as it is. */
	helper_log.flush_result = 1;
	for (uint64_t i = 0; i < 6000; i++) {
		l.event->tid = (uint32_t)(100000 + i);
		image_call(&l, 0);
	}
	assert_true(((struct fay_table_header *)image_state(&l, "by_thread"))->used <= 896);
	assert_int_equal(example_total(&l, "by_thread", 2999), 2);
	example_close(&l);
}

static void test_by_name(void **unused)
{
	const struct fay_image_state *s;
	struct loaded l;
	unsigned found = 0;

	example_open("by_name", &l);
	for (unsigned i = 0; i < 600; i++) {
		memset(l.event->comm, 0, sizeof(l.event->comm));
		snprintf(l.event->comm, sizeof(l.event->comm), "worker-%u", i % 20);
		l.event->cpu = i % 3;
		l.event->arg[2] = 100;
		image_call(&l, 0);
	}
	s = image_state_info(&l, "by_name");
	for (uint32_t r = 0; r < s->rows; r++) {
		const uint64_t *row =
			(const void *)(l.local + s->offset + 16 + (size_t)r * s->row_size);

		if (!row[0])
			continue;
		found++;
		assert_memory_equal(&row[1], "worker-", 7);
		assert_true(row[3] < 3);
		assert_int_equal(row[4], 10);
		assert_int_equal(row[5 + 7], 10);
	}
	assert_int_equal(found, 60);
	example_close(&l);
}

static void test_words(void **unused)
{
	static const struct {
		char text[64];
		unsigned get, set, user, repeated;
	} steps[] = {
		{ "GET user:1", 1, 0, 1, 0 },     { "SET user:1 x", 1, 1, 2, 0 },
		{ "GET user:1", 2, 1, 2 + 1, 1 }, { "set a", 2, 1, 3, 1 },
		{ "GETuser", 2, 1, 3, 1 },        { "", 2, 1, 3, 1 },
	};
	struct loaded l;
	uint64_t lengths = 0;

	example_open("words", &l);
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		l.event->arg[1] = (uintptr_t)steps[i].text;
		image_call(&l, 0);
		assert_int_equal(example_word(&l, "words", 0), steps[i].get);
		assert_int_equal(example_word(&l, "words", 1), steps[i].set);
		assert_int_equal(example_word(&l, "words", 2), steps[i].user);
		assert_int_equal(example_word(&l, "words", 3), steps[i].repeated);
		lengths = example_total(&l, "by_length", strlen(steps[i].text));
		assert_true(lengths >= 1);
	}
	assert_int_equal(example_total(&l, "by_length", 10), 2); /* GET user:1, twice */
	example_close(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_size),
		cmocka_unit_test(test_table_overflow),
		cmocka_unit_test(test_by_name),
		cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests_name("compiler tables", tests, NULL, NULL);
}
