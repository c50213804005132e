/* SPDX-License-Identifier: MIT */
/*
 * A C program, which has no unwinder of its own: libgcc_s is loaded by the C library when a thread
 * is cancelled or exits, or backtrace() is first called. Prints "ENTRIES RETURNS EXCEPTIONS" of its
 * traced_* functions.
 *
 * With "bottom": stacks made by hand, whose first function has the return address 0: one that is
 * switched to often, and many that are unmapped. With "waiting" it waits for a line before and
 * after it has switched to one, and checks that the 0 is there. With "crowd" many are switched to
 * in turn: the test would take minutes if all calls that are under way were looked at whenever one
 * returns. With "again" calls are left by jumps that are not hooked, and with their stacks, which
 * are used again.
 */
#include <execinfo.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define TRACED __attribute__((noinline, noclone))
#define CLOBBER __asm__ volatile("" ::: "memory")

static long entries, returns, exceptions;
static int cleaned;
static jmp_buf back;

static void clean(void *argument)
{
	(void)argument;
	cleaned++;
}
TRACED long traced_leave(long how);
TRACED long traced_leave(long how)
{
	if (how == 0)
		longjmp(back, 1);
	if (how == 1)
		pthread_exit((void *)5);
	pause();
	return how;
}
TRACED long traced_outer(long how);
TRACED long traced_outer(long how)
{
	long result;

	pthread_cleanup_push(clean, NULL);
	result = traced_leave(how);
	pthread_cleanup_pop(0);
	CLOBBER;
	return result;
}
static void *start(void *how)
{
	long result = traced_outer((long)how);

	CLOBBER;
	return (void *)result;
}
TRACED int traced_backtrace(void **frames);
TRACED int traced_backtrace(void **frames)
{
	int count = backtrace(frames, 32);

	CLOBBER;
	return count;
}
TRACED int traced_backtrace_outer(void **frames);
TRACED int traced_backtrace_outer(void **frames)
{
	int count = traced_backtrace(frames);

	CLOBBER;
	return count;
}

#define STACK 16384
static void *main_stack, *other_stack;

/* void traced_switch(void **here, void *there): saves what a call keeps, and returns on the other
 * stack. */
void traced_switch(void **here, void *there);
/* clang-format off */
__asm__(".text\n"
	".globl traced_switch\n"
	".type traced_switch, @function\n"
	"traced_switch:\n"
	"	push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15\n"
	"	mov %rsp, (%rdi)\n"
	"	mov %rsi, %rsp\n"
	"	pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp\n"
	"	ret\n"
	".size traced_switch, . - traced_switch\n");
/* clang-format on */
TRACED void traced_step(void);
TRACED void traced_step(void)
{
	CLOBBER;
}
TRACED void traced_body(void);
TRACED void traced_body(void)
{
	for (;;) {
		traced_step();
		traced_switch(&other_stack, main_stack);
	}
}
/* Makes the memory a stack for traced_switch(); returns where traced_body() has its return address.
 * */
static void **begin_stack(char *memory, void (*end)(void))
{
	void **bottom = (void **)(memory + STACK - 64) - 1;
	void (*body)(void) = traced_body;

	memcpy(bottom, &end, sizeof(end));
	memcpy(bottom - 1, &body, sizeof(body));
	other_stack = bottom - 7;
	return bottom;
}
static void **make_stack(void)
{
	char *memory =
		mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		exit(73);
	return begin_stack(memory, NULL);
}
static void switch_often(long times)
{
	for (long i = 0; i < times; i++)
		traced_switch(&main_stack, other_stack);
	entries += 1 + 3 * times;
	returns += 3 * times - 1;
}
static int bottom_of_stack(void)
{
	for (int i = 0; i < 6000; i++) {
		char *memory = (char *)make_stack() + 72 - STACK;

		switch_often(1);
		/* The next one is elsewhere. */
		if (munmap(memory, STACK / 2) || mprotect(memory + STACK / 2, STACK / 2, PROT_NONE))
			return 74;
	}
	make_stack();
	switch_often(20000);
	printf("%ld %ld %ld\n", entries, returns, exceptions);
	return 0;
}
static int crowd_of_stacks(void)
{
	static void *stacks[600];

	for (int i = 0; i < 60000; i++) {
		void **stack = &stacks[i % 600];

		if (!*stack) {
			make_stack();
			entries++; /* traced_body() */
			returns--; /* the last switch */
		} else {
			other_stack = *stack;
		}
		traced_switch(&main_stack, other_stack);
		*stack = other_stack;
		entries += 3;
		returns += 3;
	}
	printf("%ld %ld %ld\n", entries, returns, exceptions);
	return 0;
}
TRACED void traced_jump(void **to);
TRACED void traced_jump(void **to)
{
	__builtin_longjmp(to, 1);
}
TRACED void traced_jump_outer(void **to);
TRACED void traced_jump_outer(void **to)
{
	traced_jump(to);
	CLOBBER;
}
static int stacks_again(void)
{
	static char memory[STACK] __attribute__((aligned(16)));
	static void *to[5];

	for (volatile int i = 0; i < 6000; i++) {
		begin_stack(memory, abort);
		switch_often(1);
		exceptions += 2;
	}
	for (volatile int i = 0; i < 6000; i++) {
		if (__builtin_setjmp(to) == 0)
			traced_jump_outer(to);
		traced_step();
		entries += 3;
		returns++;
		exceptions += 2;
	}
	printf("%ld %ld %ld\n", entries, returns, exceptions);
	return 0;
}
static int wait_at_bottom(void)
{
	void **bottom = make_stack();
	bool good;

	puts("ready");
	fflush(stdout);
	getchar();
	switch_often(3);
	puts("half");
	fflush(stdout);
	getchar();
	good = *bottom == NULL;
	switch_often(1);
	return good ? 0 : 76;
}

int main(int count, char **arguments)
{
	void *frames[32], *plain[32];

	if (count > 1)
		switch (arguments[1][0]) {
		case 'w': return wait_at_bottom();
		case 'c': return crowd_of_stacks();
		case 'a': return stacks_again();
		default: return bottom_of_stack();
		}
	for (volatile int i = 0; i < 50; i++) {
		pthread_t thread;
		void *value;

		if (!setjmp(back))
			traced_outer(0);
		pthread_create(&thread, NULL, start, (void *)(1L + i % 2));
		if (i % 2) {
			usleep(1000);
			pthread_cancel(thread);
		}
		pthread_join(thread, &value);
		if (value != (i % 2 ? PTHREAD_CANCELED : (void *)5))
			return 70;
		entries += 4;
		exceptions += 4;
	}
	if (cleaned != 50)
		return 71;
	/* traced_backtrace, its outer, main, and the C library's two. */
	if (traced_backtrace_outer(frames) != backtrace(plain, 32) + 2)
		return 72;
	printf("%ld %ld %ld\n", entries + 2, returns + 2, exceptions);
	return 0;
}
