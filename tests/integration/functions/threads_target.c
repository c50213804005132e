/* SPDX-License-Identifier: MIT */
/*
 * A target with many threads: `threads_target THREADS CALLS` waits for a line on standard input,
 * then each thread calls work(thread, i) CALLS times; prints what each did and waits for another
 * line before it exits. With a third argument the threads are there before that line, and when they
 * have ended as many others do the same, on the same stacks.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

uint64_t work(uint64_t thread, uint64_t number);
uint64_t unused_function(uint64_t x);
int tiny(void);

__attribute__((noinline, noclone)) uint64_t work(uint64_t thread, uint64_t number)
{
	__asm__ volatile("" ::: "memory");
	return thread ^ number;
}

__attribute__((noinline, noclone)) uint64_t unused_function(uint64_t x)
{
	__asm__ volatile("" ::: "memory");
	return x * 3;
}

/* One byte, and the next function follows at once: no room for a jump. */
/* clang-format off */
__asm__(".text\n.globl tiny\n.type tiny, @function\ntiny:\n\tret\n.size tiny, 1\n"
	".globl after_tiny\n.type after_tiny, @function\nafter_tiny:\n\txor %eax, %eax\n\tret\n"
	".size after_tiny, 3\n");
/* clang-format on */

static uint64_t calls;

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void *run(void *argument)
{
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
	uint64_t thread = (uint64_t)(uintptr_t)argument, sum = 0;
	for (uint64_t i = 0; i < calls; i++)
		sum += work(thread, i);
	printf("thread %ld %" PRIu64 "\n", syscall(SYS_gettid), sum);
	return NULL;
}

static pthread_t threads[256];

static void begin(unsigned count)
{
	for (uintptr_t i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, run, (void *)i);
}

static void end(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	bool early = argc > 3;
	unsigned count = argc > 1 ? (unsigned)atoi(argv[1]) : 8;
	calls = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000;
	if (count > 256)
		return 2;
	tiny();
	pthread_mutex_lock(&gate);
	if (early)
		begin(count);
	printf("ready\n");
	fflush(stdout);
	getchar();
	pthread_mutex_unlock(&gate);
	if (!early)
		begin(count);
	end(count);
	if (early) {
		begin(count);
		end(count);
	}
	printf("done\n");
	fflush(stdout);
	getchar();
	return 0;
}
