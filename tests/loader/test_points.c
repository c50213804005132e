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
	plan->pid = getpid();
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

__asm__(".text\n.balign 4096\nchanged: .fill 4096, 1, 0xcc\n");
extern uint8_t changed[4096];

/* Code that is not, at the end, what was read of it: read again. */
static void test_changes_while_read(void **state)
{
	int memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	struct fay_zones none = { 0 };
	struct fay_program_text text = { .present = &none, .memory = memory };
	struct fay_error error;
	uint8_t bytes[5], jump = 0xe9, was = 0xcc;

	(void)state;
	assert_int_equal(fay_text_program(&text, (uint64_t)changed, bytes, sizeof(bytes)), 5);
	assert_int_equal(fay_text_settled(&text, getpid(), &error), 0);
	assert_int_equal(pwrite(memory, &jump, 1, (off_t)(uintptr_t)&changed[9]), 1);
	assert_int_equal(fay_text_settled(&text, getpid(), &error), -1);
	assert_non_null(strstr(error.message, "its code keeps changing"));
	/* and back: read twice, as two things */
	text.at = text.size = 0;
	assert_int_equal(fay_text_program(&text, (uint64_t)changed, bytes, sizeof(bytes)), 5);
	assert_int_equal(pwrite(memory, &was, 1, (off_t)(uintptr_t)&changed[9]), 1);
	assert_int_equal(fay_text_settled(&text, getpid(), &error), -1);
	fay_program_text_deinit(&text);
	close(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_too_many),
					    cmocka_unit_test(test_held_before_marker),
					    cmocka_unit_test(test_changes_while_read) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
