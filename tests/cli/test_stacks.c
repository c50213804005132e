/* SPDX-License-Identifier: MIT */
/*
 * Stacks of this very process: the walk that probes do (query/runtime/stacks.c), over tables that
 * are made of its own modules' unwind information, against glibc's backtrace(), in random chains of
 * functions with all kinds of frames; and the rows of unwind tables of real libraries against
 * libdw's reading of them.
 */
#include <alloca.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

#include "process/process.h"
#include "process/unwind_private.h"

#include "libdw_rule.h"

#define CHAINS 400
#define DEPTH_MAX 60
#define ALTERNATE (4u << 20)

void fay_query_stack(struct fay_stack_scratch *scratch, const struct fay_stack_tables *tables,
		     uint64_t address, uint64_t rsp, uint64_t rbp, uint64_t count, uint64_t called);

static struct fay_stack_tables *tables;
static uint64_t chain; /* decides what the next function is */
static unsigned compared, unreadable;
static bool may_leave_stack; /* for the alternate one, which the main thread has */

int64_t fay_try_read(void *to, uint64_t size, uint64_t address);
int64_t fay_try_read(void *to, uint64_t size, uint64_t address)
{
	struct iovec here = { to, size }, there = { (void *)address, size };
	if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)size)
		return 0;
	memset(to, 0, size);
	unreadable++;
	return -1;
}

/* --- the chain --- */

#define KEPT __attribute__((noinline, noclone))
#define AFTER() __asm__ volatile("" ::: "memory") /* no tail call */

static void go_on(unsigned depth);

/* Stands for a traced function: its first instruction has the caller's rsp and rbp. */
void mark(void);
/* clang-format off */
__asm__(".text\n.globl mark\nmark:\n\t.cfi_startproc\n\tmov %rsp, %rdi\n\tmov %rbp, %rsi\n\tjmp mark_at\n\t.cfi_endproc\n");
/* clang-format on */

void mark_at(uint64_t rsp, uint64_t rbp);
void mark_at(uint64_t rsp, uint64_t rbp)
{
	static _Thread_local struct fay_stack_scratch scratch;
	void *expected[FAY_STACK_FRAMES_MAX + 4];
	int depth = backtrace(expected, FAY_STACK_FRAMES_MAX + 4), first = 0;
	/* behind the frames of backtrace() and of this function */
	while (first < depth && expected[first] != *(void **)rsp)
		first++;
	fay_query_stack(&scratch, tables, (uint64_t)(uintptr_t)mark, rsp, rbp, FAY_STACK_FRAMES_MAX,
			1);
	assert_int_equal(scratch.frames[0], (uint64_t)(uintptr_t)mark);
	for (int i = 1; i < (int)FAY_STACK_FRAMES_MAX; i++) {
		uint64_t wanted =
			first + i - 1 < depth ? (uint64_t)(uintptr_t)expected[first + i - 1] : 0;
		if (scratch.frames[i] != wanted)
			fail_msg("frame %d of %d: %lx, not %lx", i, depth, scratch.frames[i],
				 wanted);
	}
	compared++;
}

KEPT static void plain(unsigned depth)
{
	volatile int some[5] = { 0 };
	go_on(depth);
	some[0] = some[1];
	AFTER();
}

KEPT static void large(unsigned depth)
{
	volatile char some[20000];
	some[depth] = 1;
	go_on(depth + (some[depth] == 0));
	AFTER();
}

__attribute__((optimize("no-omit-frame-pointer"))) KEPT static void
with_frame_pointer(unsigned depth)
{
	go_on(depth);
	AFTER();
}

KEPT static void of_any_size(unsigned depth)
{
	volatile char *some = alloca(depth * 24 + 1);
	some[0] = 1;
	go_on(depth);
	AFTER();
}

/* The frame's address is known through memory only. */
KEPT static void aligned(unsigned depth)
{
	_Alignas(64) volatile char some[64];
	volatile char *more = alloca(depth + 1);
	some[0] = more[0] = 1;
	go_on(depth + (some[0] == 0));
	AFTER();
}

static unsigned depth_of_callback;

static int compare(const void *a, const void *b)
{
	if (depth_of_callback) {
		unsigned depth = depth_of_callback;
		depth_of_callback = 0;
		go_on(depth);
	}
	return *(const int *)a - *(const int *)b;
}

KEPT static void through_library(unsigned depth)
{
	int numbers[] = { 3, 1, 2 };
	depth_of_callback = depth;
	qsort(numbers, 3, sizeof(numbers[0]), compare);
	AFTER();
}

static unsigned depth_of_signal;

static void handler(int number)
{
	(void)number;
	go_on(depth_of_signal);
	AFTER();
}

KEPT static void through_signal(unsigned depth)
{
	depth_of_signal = depth;
	raise(SIGUSR1);
	AFTER();
}

KEPT static void through_other_stack(unsigned depth)
{
	depth_of_signal = depth;
	may_leave_stack = false;
	raise(SIGUSR2);
	AFTER();
}

static void go_on(unsigned depth)
{
	static void (*const kinds[])(unsigned) = { plain,          large,   with_frame_pointer,
						   of_any_size,    aligned, through_library,
						   through_signal, plain };
	chain = chain * 6364136223846793005u + 1442695040888963407u;
	if (depth <= 1)
		mark();
	else if (chain >> 60 == 1 && may_leave_stack)
		through_other_stack(depth - 1);
	else
		kinds[chain >> 57 & 7](depth - 1);
	AFTER();
}

static void one_chain(unsigned number, bool main_thread)
{
	chain = number;
	may_leave_stack = main_thread;
	go_on(2 + number % DEPTH_MAX);
}

static void *in_thread(void *argument)
{
	one_chain(*(unsigned *)argument, false);
	return NULL;
}

static void make_tables(struct fay_stacks *stacks)
{
	struct fay_target *target;
	assert_int_equal(fay_target_open_file("/proc/self/exe", &target, NULL), 0);
	fay_target_close(target);
	assert_int_equal(fay_target_open_pid(getpid(), &target, NULL), 0);
	tables = calloc(1, sizeof(*tables));
	assert_non_null(tables);
	fay_stacks_fill(stacks, target, tables);
	uint64_t rows = tables->row_count;
	assert_true(rows > 1000);
	fay_stacks_fill(stacks, target, tables); /* nothing has come, so nothing is added */
	assert_int_equal(tables->row_count, rows);
	assert_int_equal(tables->lists[0].count, tables->lists[1].count);
	tables->row_count = FAY_STACK_ROWS; /* no room: what is known needs none */
	fay_stacks_fill(stacks, target, tables);
	assert_int_equal(tables->lists[0].count, tables->lists[1].count);
	assert_int_equal(stacks->left_out, 0);
	tables->lists[0].count = tables->lists[1].count = 0;
	fay_stacks_fill(stacks, target, tables);
	assert_true(stacks->left_out > 1);
	stacks->left_out = 0;
	tables->row_count = 0;
	fay_stacks_fill(stacks, target, tables);
	assert_int_equal(tables->row_count, rows);
	fay_target_close(target);
}

static void test_chains(void **state)
{
	(void)state;
	struct fay_stacks stacks = { 0 };
	static char alternate[ALTERNATE];
	stack_t other = { .ss_sp = alternate, .ss_size = sizeof(alternate) };
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_NODEFER };
	void *first[1];
	backtrace(first, 1); /* loads libgcc_s */
	make_tables(&stacks);
	assert_int_equal(sigaltstack(&other, NULL), 0);
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	action.sa_flags |= SA_ONSTACK;
	assert_int_equal(sigaction(SIGUSR2, &action, NULL), 0);
	for (unsigned i = 0; i < CHAINS; i++)
		one_chain(i, true);
	for (unsigned i = 0; i < 20; i++) {
		pthread_t thread;
		assert_int_equal(pthread_create(&thread, NULL, in_thread, &i), 0);
		pthread_join(thread, NULL);
	}
	assert_int_equal(compared, CHAINS + 20);
	fay_stacks_deinit(&stacks);
}

/* A stack that nobody would have: the walk ends, whatever lies there. */
static void test_broken(void **state)
{
	(void)state;
	static struct fay_stack_scratch scratch;
	uint64_t words[64];
	for (unsigned i = 0; i < 5000; i++) {
		for (unsigned k = 0; k < 64; k++) {
			chain = chain * 6364136223846793005u + 1442695040888963407u;
			words[k] = chain >> 62 ? (uint64_t)(uintptr_t)&words[chain >> 40 & 63]
					       : tables->lists[tables->current & 1].items[0].start +
							 (chain >> 44);
		}
		fay_query_stack(&scratch, tables, (uint64_t)(uintptr_t)mark,
				(uint64_t)(uintptr_t)&words[i % 8], chain, FAY_STACK_FRAMES_MAX, 1);
		assert_int_equal(scratch.frames[0], (uint64_t)(uintptr_t)mark);
	}
	unreadable = 0;
	fay_query_stack(&scratch, tables, 1, 8, 8, FAY_STACK_FRAMES_MAX, 1);
	assert_int_equal(scratch.frames[1], 0);
	assert_int_equal(unreadable, 2);
	free(tables);
}

/* Rules that were found are kept, and found anew when the tables are others. */
static void test_changed(void **state)
{
	(void)state;
	static struct fay_stack_scratch scratch;
	const uint32_t rules[] = { fay_stack_rule(FAY_STACK_RSP, 2, 0),
				   fay_stack_rule(FAY_STACK_RSP, 3, 0), FAY_STACK_END };
	struct fay_stack_tables *changing = calloc(1, sizeof(*changing));
	uint64_t words[24];
	assert_non_null(changing);
	for (unsigned i = 0; i < 24; i++)
		words[i] = 0x1010 + i;
	for (uint32_t i = 0; i < 3; i++) {
		struct fay_stack_modules *list = &changing->lists[i & 1];
		list->count = 1;
		list->items[0] = (struct fay_stack_module){ 0x1000, 0x100, i, 1 };
		changing->rows[i] = (struct fay_stack_row){ 0, rules[i] };
		changing->current = i;
		for (unsigned again = 0; again < 2; again++) {
			uint64_t step = rules[i] >> 2 & FAY_STACK_OFFSET_MAX;
			fay_query_stack(&scratch, changing, 0x1000, (uint64_t)(uintptr_t)words, 0,
					6, 1);
			for (uint64_t k = 1; k < 6; k++)
				assert_int_equal(scratch.frames[k], k == 1 ? words[0]
								    : step ? words[(k - 1) * step]
									   : 0);
		}
	}
	free(changing);
}

/* Where an entry of a procedure linkage table was interrupted, before it pushes a word or after. */
static void test_linkage(void **state)
{
	(void)state;
	static struct fay_stack_scratch scratch;
	struct fay_stack_tables *made = calloc(1, sizeof(*made));
	uint64_t words[32] = { 0x11111111, 0x22222222 };
	assert_non_null(made);
	made->lists[0] = (struct fay_stack_modules){ 1, { { 0x1000, 0x100, 0, 1 } } };
	made->rows[0] = (struct fay_stack_row){ 0, fay_stack_linkage(11) };
	for (uint64_t at = 0x1020; at < 0x1040; at++) {
		fay_query_stack(&scratch, made, at, (uint64_t)(uintptr_t)words, 0, 3, 0);
		assert_int_equal(scratch.frames[1], words[at % 16 >= 11]);
		assert_int_equal(scratch.frames[2], 0);
	}
	free(made);
}

/* --- rows against libdw --- */

static size_t compare_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct fay_unwind_rows rows;
	size_t known = 0;
	if (fd < 0)
		return 0;
	assert_true(fay_unwind_read_file(fd, &rows));
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	Dwarf_CFI *cfi = dwarf_getcfi_elf(elf);
	assert_non_null(cfi);
	for (size_t i = 0; i < rows.count; i++) {
		uint64_t last =
			i + 1 < rows.count ? rows.items[i + 1].address - 1 : rows.items[i].address;
		assert_true(i == 0 || rows.items[i].address > rows.items[i - 1].address);
		known += rows.items[i].rule != FAY_STACK_END;
		/* Both ends of the row; a third of large tables is enough. */
		if (rows.count > 30000 && i % 3)
			continue;
		if (libdw_rule(cfi, rows.items[i].address) != rows.items[i].rule ||
		    libdw_rule(cfi, last) != rows.items[i].rule)
			fail_msg("%s at %lx: %x, not %x", path, rows.items[i].address,
				 rows.items[i].rule, libdw_rule(cfi, rows.items[i].address));
	}
	dwarf_cfi_end(cfi);
	elf_end(elf);
	close(fd);
	fay_unwind_rows_deinit(&rows);
	return known;
}

static void test_rows(void **state)
{
	(void)state;
	assert_true(compare_file("/proc/self/exe") > 500);
	assert_true(compare_file("/lib/x86_64-linux-gnu/libc.so.6") > 5000);
	assert_true(compare_file("/lib64/ld-linux-x86-64.so.2") > 500);
	compare_file("/usr/lib/x86_64-linux-gnu/libstdc++.so.6");
	compare_file("/usr/bin/bash");
}

/* Any bytes: no access outside the table, rows in order. */
static void test_malformed(void **state)
{
	(void)state;
	static const uint8_t table[] = {
		/* the common part */
		0x14, 0,    0,    0,    0,    0,    0,    0, 1, 'z',  'R', 0,    1,    0x78, 0x10,
		1,    0x1b, 0x0c, 7,    8,    0x90, 1,    0, 0, 0x1c, 0,   0,    0,    0x1c, 0,
		0,    0,    0,    0x10, 0,    0,    0x20, 0, 0, 0,    0,   0x41, 0x0e, 0x10, 0x86,
		2,    0x43, 0x0d, 6,    0x5a, 0x0c, 7,    8, 0, 0,    0,   0,    0,    0,    0,
	};
	struct fay_unwind_rows rows = { 0 };
	assert_true(fay_unwind_read(table, sizeof(table), 0x1000, &rows));
	fay_unwind_fold(&rows);
	assert_int_equal(rows.count, 5);
	assert_int_equal(rows.items[0].address, 0x2020);
	assert_int_equal(rows.items[0].rule, FAY_STACK_CALLED);
	assert_int_equal(rows.items[1].rule, fay_stack_rule(FAY_STACK_RSP, 2, 2));
	assert_int_equal(rows.items[2].rule, fay_stack_rule(FAY_STACK_RBP, 2, 2));
	assert_int_equal(rows.items[4].address, 0x2040);
	assert_int_equal(rows.items[4].rule, FAY_STACK_END);
	fay_unwind_rows_deinit(&rows);
	for (unsigned i = 0; i < 20000; i++) {
		size_t size = sizeof(table) - (i % 7 == 0 ? i / 7 % sizeof(table) : 0);
		uint8_t *copy = malloc(size + 1);
		memcpy(copy, table, size);
		for (unsigned k = 0; k < 1 + i % 4 && size; k++) {
			chain = chain * 6364136223846793005u + 1442695040888963407u;
			copy[(chain >> 40) % size] = (uint8_t)(chain >> 32);
		}
		assert_true(fay_unwind_read(copy, size, chain, &rows));
		fay_unwind_fold(&rows);
		for (size_t r = 1; r < rows.count; r++)
			assert_true(rows.items[r].address > rows.items[r - 1].address);
		fay_unwind_rows_deinit(&rows);
		free(copy);
	}
}

static void put(uint8_t *at, uint64_t value, unsigned size)
{
	memcpy(at, &value, size);
}

/* Go's table of functions: as it should be, of another version, and any bytes. */
static void test_go(void **state)
{
	(void)state;
	uint8_t table[192] = { 0xf0, 0xff, 0xff, 0xff, 0, 0, 1, 8, 2 };
	/* 16 bytes at 0 and 9 at 24, then a function whose stack pointer is set */
	static const uint8_t steps[] = { 0, 2, 16, 48, 9, 0 };
	struct fay_unwind_rows rows = { 0 };
	put(table + 24, 0x401000, 8);
	put(table + 56, 72, 8); /* steps, functions */
	put(table + 64, 80, 8);
	memcpy(table + 72, steps, sizeof(steps));
	put(table + 84, 20, 4);
	put(table + 88, 0x20, 4);
	put(table + 92, 60, 4);
	put(table + 96, 0x40, 4);
	put(table + 100 + 16, 1, 4);
	put(table + 140 + 16, 1, 4);
	table[140 + 37] = 2;
	assert_true(fay_unwind_read_go(table, sizeof(table), 0, &rows));
	fay_unwind_fold(&rows);
	assert_int_equal(rows.count, 3);
	assert_int_equal(rows.items[0].address, 0x401000);
	assert_int_equal(rows.items[0].rule, FAY_STACK_CALLED);
	assert_int_equal(rows.items[1].address, 0x401010);
	assert_int_equal(rows.items[1].rule, fay_stack_rule(FAY_STACK_RSP, 4, 0));
	assert_int_equal(rows.items[2].address, 0x401019);
	assert_int_equal(rows.items[2].rule, FAY_STACK_END);
	fay_unwind_rows_deinit(&rows);
	table[0] = 0xf2;
	assert_true(fay_unwind_read_go(table, sizeof(table), 0, &rows));
	assert_int_equal(rows.count, 0);
	table[0] = 0xf0;
	for (unsigned i = 0; i < 20000; i++) {
		size_t size = sizeof(table) - (i % 7 == 0 ? i / 7 % sizeof(table) : 0);
		uint8_t *copy = malloc(size + 1);
		memcpy(copy, table, size);
		for (unsigned k = 0; k < 1 + i % 4 && size; k++) {
			chain = chain * 6364136223846793005u + 1442695040888963407u;
			copy[(chain >> 40) % size] = (uint8_t)(chain >> 32);
		}
		assert_true(fay_unwind_read_go(copy, size, i % 3 ? 0 : chain, &rows));
		fay_unwind_rows_deinit(&rows);
		free(copy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chains),  cmocka_unit_test(test_broken),
		cmocka_unit_test(test_changed), cmocka_unit_test(test_linkage),
		cmocka_unit_test(test_rows),    cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_go),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
