/* SPDX-License-Identifier: MIT */
/* Where new mappings go: near what they must reach, and not where a heap will grow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "loader/process/process.h"

#define PAGE 4096u
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

/* A program's file, libraries far above it, the stack. */
static struct fay_map items[] = {
	{ .start = 0x555555554000, .end = 0x555555600000, .permissions = "r-xp", .name = "/bin/x" },
	{ .start = 0x7ffff7d00000, .end = 0x7ffff7f00000, .permissions = "r-xp", .name = "/lib/y" },
	{ .start = 0x7ffffffde000,
	  .end = 0x7ffffffff000,
	  .permissions = "rw-p",
	  .name = "[stack]" },
};

static void test_heap_to_come(void **state)
{
	struct fay_maps maps = { .items = items, .count = 3 };
	uint64_t low = items[0].start, high = items[0].end, end = high;

	(void)state;
	/* nothing is known of a heap: right behind the program */
	assert_int_equal(fay_maps_hole(&maps, MIB, low, high), end + PAGE);
	/* one that begins far enough behind: in between */
	maps.heap = end + 4 * MIB;
	assert_int_equal(fay_maps_hole(&maps, MIB, low, high), end + PAGE);
	/* one that leaves less: below the program, which is nearer than behind the heap's room */
	maps.heap = end + MIB;
	assert_int_equal(fay_maps_hole(&maps, MIB, low, high), items[0].start - PAGE - MIB);
	maps.heap = end;
	assert_int_equal(fay_maps_hole(&maps, MIB, low, high), items[0].start - PAGE - MIB);
}

static void test_heap_in_the_way(void **state)
{
	struct fay_map below[] = {
		{ .start = 0x10000, .end = 0x400000, .permissions = "r--p" },
		{ .start = 0x400000, .end = 0x500000, .permissions = "r-xp", .name = "/bin/x" },
		items[1],
	};
	struct fay_maps maps = { .items = below, .count = 3, .heap = 0x500000 };

	(void)state;
	/* no room below: behind what is left for the heap */
	assert_int_equal(fay_maps_hole(&maps, MIB, 0x400000, 0x500000), 0x500000 + GIB);
}

/* This process's: what the kernel says now, and nothing once there is a heap. */
static void test_own_heap(void **state)
{
	struct fay_maps maps = { .items = items, .count = 3 };
	struct fay_map heap = { .start = (uintptr_t)sbrk(0), .name = "[heap]" };

	(void)state;
	fay_maps_note_heap(&maps, getpid());
	assert_true(maps.heap && maps.heap <= (uintptr_t)sbrk(0));
	maps = (struct fay_maps){ .items = &heap, .count = 1 };
	fay_maps_note_heap(&maps, getpid());
	assert_int_equal(maps.heap, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_heap_to_come),
					    cmocka_unit_test(test_heap_in_the_way),
					    cmocka_unit_test(test_own_heap) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
