/* SPDX-License-Identifier: MIT */
/* Pages of code that are changed here and written there: what somebody else has changed meanwhile
 * stays. The test's own memory is the process's. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "loader/stop/stop.h"

#define PAGE 4096u
#define PAGES 3u

static uint8_t *code;
static int memory;
static struct fay_text *text_of_places;

static void begin(struct fay_text *text)
{
	struct fay_error error;

	memset(code, 0x90, PAGES * PAGE);
	memset(text, 0, sizeof(*text));
	for (unsigned i = 0; i < PAGES; i++)
		assert_int_equal(fay_text_want(text, (uint64_t)code + i * PAGE, 1, &error), 0);
	assert_int_equal(fay_text_ready(text, &error), 0);
	fay_text_read(text, memory, 0);
}

/* Around the boundary of two pages, in the third one, and one change over another. */
static void test_written(void **state)
{
	struct fay_text text;

	(void)state;
	begin(&text);
	assert_true(fay_text_change(&text, (uint64_t)code + 2 * PAGE + 7, "abcde", 5));
	assert_true(fay_text_change(&text, (uint64_t)code + PAGE - 2, "12345", 5));
	assert_true(fay_text_change(&text, (uint64_t)code + PAGE - 2, "67890", 5));
	assert_memory_equal(fay_text_at(&text, (uint64_t)code + PAGE - 2, 5), "67890", 5);
	code[100] = code[PAGE + 3] = 0xcc;
	assert_int_equal(fay_text_write(&text, memory), 0);
	assert_memory_equal(code + PAGE - 2, "67890\xcc", 6);
	assert_memory_equal(code + 2 * PAGE + 7, "abcde", 5);
	assert_int_equal(code[100], 0xcc);
	assert_int_equal(code[PAGE - 3], 0x90);
	fay_text_deinit(&text);
}

static void test_changed_meanwhile(void **state)
{
	struct fay_text text;

	(void)state;
	begin(&text);
	assert_true(fay_text_change(&text, (uint64_t)code + 50, "abcde", 5));
	assert_true(fay_text_change(&text, (uint64_t)code + PAGE + 50, "abcde", 5));
	code[PAGE + 50] = 0xcc;
	assert_int_equal(fay_text_write(&text, memory), -1);
	assert_int_equal(errno, EBUSY);
	assert_int_equal(code[PAGE + 50], 0xcc);
	assert_int_equal(code[PAGE + 51], 0x90);
	/* Read again, it is as it is. */
	fay_text_read(&text, memory, getpid());
	assert_int_equal(*fay_text_at(&text, (uint64_t)code + PAGE + 50, 1), 0xcc);
	assert_true(fay_text_change(&text, (uint64_t)code + PAGE + 51, "bcde", 4));
	assert_int_equal(fay_text_write(&text, memory), 0);
	assert_memory_equal(code + PAGE + 50,
			    "\xcc"
			    "bcde",
			    5);
	fay_text_deinit(&text);
}

/* Two places, the second of which has `was`. */
struct places {
	const char *was;
	unsigned runs;
};

static bool change_both(void *context, uint64_t start, uint64_t end)
{
	struct places *places = context;
	uint64_t second = (uint64_t)code + PAGE + 50;

	assert_int_equal(start, (uint64_t)code);
	assert_int_equal(end, (uint64_t)code + PAGES * PAGE);
	places->runs++;
	assert_true(fay_text_swap(text_of_places, (uint64_t)code + PAGE - 2, "\x90\x90\x90\x90\x90",
				  5, "12345", 5));
	return fay_text_swap(text_of_places, second, places->was, 3, NULL, 0) &&
	       fay_text_swap(text_of_places, second, places->was, 2, "ab", 2);
}

/* All of a run, or nothing of it; what is only looked at stays as it is. */
static void test_replaced(void **state)
{
	struct places places = { "\x90\x90\x91", 0 };
	struct fay_text text;

	(void)state;
	begin(&text);
	text_of_places = &text;
	assert_int_equal(fay_text_replace(&text, memory, getpid(), change_both, &places), -1);
	assert_int_equal(errno, EBUSY);
	assert_int_equal(code[PAGE - 2], 0x90);
	code[PAGE + 52] = 0x91;
	assert_int_equal(fay_text_replace(&text, memory, getpid(), change_both, &places), 0);
	assert_memory_equal(code + PAGE - 2, "12345", 5);
	assert_memory_equal(code + PAGE + 50, "ab\x91", 3);
	assert_int_equal(places.runs, 2);
	assert_false(fay_text_swap(&text, (uint64_t)code - 3, "abc", 3, "abc", 3));
	fay_text_deinit(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_written),
					    cmocka_unit_test(test_changed_meanwhile),
					    cmocka_unit_test(test_replaced) };

	memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	code = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory < 0 || code == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
