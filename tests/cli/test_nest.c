/* SPDX-License-Identifier: MIT */
/* Spans of a track nest, whatever comes, in bounded memory; calls are moved by a nanosecond at
 * most. */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/output/output_parts.h"
#include "tests/xorshift.h"

#define TICKS_MOST 200u /* between two readings of the counter */
#define DEPTH 24u

struct call {
	int64_t begin, end;
};
struct calls {
	struct call *items;
	size_t count, room, moved;
	struct fay_nest *nest;
};

/* As the probes do: a product of the counter, rounded down. */
static int64_t scale(uint64_t ticks)
{
	return (int64_t)((unsigned __int128)ticks * 0x5d1745d1 >> 32);
}

static void put(struct calls *calls, int64_t begin, int64_t end)
{
	struct call now = { begin, end };
	assert_true(fay_output_nest(calls->nest, 1, 2, &now.begin, &now.end));
	assert_true(begin - now.begin <= 1 && begin >= now.begin);
	assert_true(end - now.end <= 1 && end >= now.end);
	calls->moved += now.begin != begin;
	assert_true(calls->count < calls->room);
	calls->items[calls->count++] = now;
}

static int longer_first(const void *a, const void *b)
{
	const struct call *x = a, *y = b;
	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return x->end > y->end ? -1 : x->end < y->end;
}

/* As readers do it. */
static void check(struct calls *calls)
{
	const struct call **stack = calloc(calls->count + 1, sizeof(*stack));
	size_t depth = 0;
	qsort(calls->items, calls->count, sizeof(*calls->items), longer_first);
	for (size_t i = 0; i < calls->count; i++) {
		const struct call *now = &calls->items[i];
		while (depth && stack[depth - 1]->end <= now->begin)
			depth--;
		assert_true(!depth || now->end <= stack[depth - 1]->end);
		stack[depth++] = now;
	}
	free(stack);
}

/* A thread's calls, whose times are those of one counter: a call that began with its caller, or a
 * tick after, may seem to begin before it. */
static void calls_of_one_counter(void **state)
{
	enum { CALLS = 400000 };
	struct calls calls = { .items = calloc(CALLS + DEPTH, sizeof(struct call)),
			       .room = CALLS + DEPTH,
			       .nest = fay_output_nest_create() };
	uint64_t seed = 0x1d872b41u, began[DEPTH], now = (uint64_t)3 << 50;
	unsigned depth = 0;
	while (calls.count < CALLS || depth) {
		uint64_t random = xorshift(&seed);
		now += random % 8 < 5 ? (random >> 8) % 3 : (random >> 8) % TICKS_MOST;
		if (calls.count < CALLS && depth < DEPTH && random >> 60 < 8) {
			began[depth++] = now;
		} else if (depth) {
			int64_t end = scale(now) + 77;
			put(&calls, end - scale(now - began[--depth]), end);
		}
	}
	assert_true(calls.moved > CALLS / 1000); /* else nothing was tried */
	check(&calls);
	fay_output_nest_free(calls.nest);
	free(calls.items);
}

/* Whatever overlaps by more than a nanosecond is refused, and what is not nests. */
static void anything(void **state)
{
	enum { SPANS = 100000 };
	struct calls calls = { .items = calloc(SPANS, sizeof(struct call)),
			       .nest = fay_output_nest_create() };
	uint64_t seed = 99;
	for (size_t i = 0; i < SPANS; i++) {
		int64_t end = (int64_t)(i * 3 + xorshift(&seed) % 400),
			begin = end - (int64_t)(xorshift(&seed) % 100);
		struct call now = { begin, end };
		if (fay_output_nest(calls.nest, 1, 1, &now.begin, &now.end))
			calls.items[calls.count++] = now;
	}
	assert_true(calls.count > SPANS / 100 && calls.count < SPANS);
	check(&calls);
	int64_t begin = 5, end = 4;
	assert_false(fay_output_nest(calls.nest, 7, 7, &begin, &end));
	fay_output_nest_free(calls.nest);
	free(calls.items);
}

static void expect_bounded(void)
{
	struct mallinfo2 memory = mallinfo2();
	assert_true(memory.uordblks + memory.hblkhd < (size_t)40 << 20);
}

/* Of many calls in one, on many threads; when a call began that has more in it than are known is
 * told a nanosecond early. */
static void memory_is_bounded(void **state)
{
	enum { MANY = 3000000, THREADS = 200000 };
	struct fay_nest *nest = fay_output_nest_create();
	int64_t begin, end;
	for (int64_t i = 0; i < MANY; i++) {
		begin = 10 * i + 5;
		end = 10 * i + 9;
		assert_true(fay_output_nest(nest, 1, 1, &begin, &end));
	}
	expect_bounded();
	end = 10 * MANY;
	begin = end - 10 * 100000; /* has a hundred thousand in it */
	assert_true(fay_output_nest(nest, 1, 1, &begin, &end));
	assert_int_equal(begin, end - 10 * 100000);
	begin = 4;
	assert_true(fay_output_nest(nest, 1, 1, &begin, &end));
	assert_int_equal(begin, 3);
	assert_int_equal(end, 10 * MANY);
	begin = 10;
	assert_false(fay_output_nest(nest, 1, 1, &begin, &(int64_t){ 20 }));
	for (int64_t i = 0; i < THREADS; i++) {
		begin = end;
		end = begin + 3;
		assert_true(fay_output_nest(nest, 1, 100 + i, &begin, &end));
	}
	expect_bounded();
	fay_output_nest_free(nest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_of_one_counter),
		cmocka_unit_test(anything),
		cmocka_unit_test(memory_is_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
