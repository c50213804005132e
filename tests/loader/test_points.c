/* SPDX-License-Identifier: MIT */
/* Places of a session: as many as it may have, and one more, which is refused, and those before it
 * are still the session's; one that some stack holds is left out. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "loader/names/target.h"
#include "loader/plan/plan_private.h"

static void test_too_many(void **state)
{
	const struct fay_function function = { .name = "f", .address = 4096 };
	struct fay_plan *plan = calloc(1, sizeof(*plan));
	struct fay_error error = { 0 };
	size_t capacity = 0;

	(void)state;
	assert_non_null(plan);
	for (size_t i = 0; i < FAY_POINTS_MAX; i++)
		assert_int_equal(fay_point_append(plan, &capacity, &function, NULL, FAY_HOOK_NONE),
				 0);
	assert_int_not_equal(fay_point_append(plan, &capacity, &function, NULL, FAY_HOOK_NONE), 0);
	assert_int_equal(plan->point_count, FAY_POINTS_MAX);
	assert_int_equal(fay_points_full(plan, &error), FAY_E_LIMIT);
	assert_non_null(strstr(error.message, "too many functions"));
	fay_points_deinit(plan);
	free(plan);
}

/* A marker that something jumps behind: the jump is written before it, and there a stack may hold
 * an address. */
static void test_held_before_marker(void **state)
{
	static const uint8_t code[64] = { 0x31, 0xc0,                   /* xor %eax, %eax */
					  0x85, 0xff,                   /* test %edi, %edi */
					  0x74, 0x06,                   /* je 12 */
					  0xb8, 0x01, 0x00, 0x00, 0x00, /* mov $1, %eax */
					  0x90,                         /* the marker */
					  0xc3 };                       /* 12: ret */
	const uint64_t start = (uint64_t)code;
	struct fay_marker_place marker = { 0 };
	struct fay_target target = { 0 };
	struct fay_zones none = { 0 };
	struct fay_probe_facts facts = { .kind = FAY_PROBE_MARKER };
	struct fay_verdict verdict = { .probes = &facts, .probe_count = 1 };
	uint32_t probe = 0;
	struct fay_point point = { .function = { .name = "f",
						 .module = "m",
						 .address = start + 11,
						 .start = start,
						 .size = 2 },
				   .probes = &probe,
				   .probe_count = 1,
				   .inside = true,
				   .offset = 11,
				   .marker = &marker };
	struct fay_plan *plan = calloc(1, sizeof(*plan));
	int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_non_null(plan);
	plan->target = &target;
	plan->verdict = &verdict;
	plan->points = &point;
	plan->point_count = 1;
	assert_int_equal(fay_sites_plan(plan, &none, &(struct fay_maps){ 0 }, memory, NULL), 0);
	assert_true(point.usable);
	assert_int_equal(plan->sites[0].back, 5);
	plan->given_up[plan->given_up_count++] = plan->sites[0].site;
	assert_int_equal(fay_sites_plan(plan, &none, &(struct fay_maps){ 0 }, memory, NULL), 0);
	assert_false(point.usable);
	assert_int_equal(plan->skipped_count, 1);
	assert_non_null(strstr(plan->skipped[0].reason, "always has a thread that returns to"));
	free(plan->skipped);
	free(plan->sites);
	free(plan->bytes);
	free(plan->order);
	free(plan);
	close(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_too_many),
					    cmocka_unit_test(test_held_before_marker) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
