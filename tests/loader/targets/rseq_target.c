/* SPDX-License-Identifier: MIT */
/*
 * Threads, the first among them, that count up per-CPU counters by a restartable sequence
 * (rseq(2)), which is most of what they do. One more does as told on standard input, and answers
 * each line:
 *
 *	checksum    1: restartable sequences work here; 0: they do not
 *	stop        how many increments are missing, of how many: two numbers. The program ends with
 *		    its input.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/rseq.h>
#include <unistd.h>

#define WORKERS 6
#define CPUS 4096
#define WAYS 3

typedef long increment(uint64_t *counters, struct rseq *area, const void *descriptor);
/* They count up counters[8 * this CPU] and return 1, or 0 if they were interrupted. */
increment rseq_add, rseq_early, rseq_behind;
extern const char rseq_early_section[], rseq_behind_section[];

/*
 * rseq_add names its section itself, well behind its first five bytes; rseq_early's section begins
 * within them; rseq_behind's right behind the instructions that a jump of five bytes overwrites.
 * SECTION: from its begin to its end.
 */
/* clang-format off */
#define SECTION(name)                                                                                                      \
	"1:	mov 4(%rsi), %eax\n	shl $6, %rax\n	add %rdi, %rax\n	mov (%rax), %r8\n"                         \
	"	mov $2000, %ecx\n3:	dec %ecx\n	jnz 3b\n"                                                          \
	"	inc %r8\n	mov %r8, (%rax)\n2:	mov $1, %eax\n	ret\n"                                             \
	"	.byte 0x0f, 0xb9, 0x3d\n	.long 0x53053053\n4:	xor %eax, %eax\n	ret\n	.size " #name ", . - " #name "\n" \
	"	.pushsection __rseq_cs, \"aw\"\n	.balign 32\n" #name "_section:\n	.long 0, 0\n	.quad 1b, 2b - 1b, 4b\n	.popsection\n"
/* clang-format on */
#define FUNCTION(name)                                                                             \
	"	.balign 16\n	.globl " #name ", " #name "_section\n	.type " #name              \
	", @function\n" #name ":\n"

/* clang-format off */
__asm__("	.text\n"
	FUNCTION(rseq_add) "	lea rseq_add_section(%rip), %rax\n	mov %rax, 8(%rsi)\n" SECTION(rseq_add)
	FUNCTION(rseq_early) "	mov %rdx, 8(%rsi)\n" SECTION(rseq_early)
	FUNCTION(rseq_behind) "	xchg %ax, %ax\n	mov %rdx, 8(%rsi)\n" SECTION(rseq_behind));
/* clang-format on */

static uint64_t counters[WAYS][CPUS * 8];
static volatile int stopping;

static void *work(void *done)
{
	struct rseq *area = (void *)((char *)__builtin_thread_pointer() + __rseq_offset);
	uint64_t count = 0;

	while (!stopping) {
		count += (uint64_t)rseq_add(counters[0], area, NULL);
		count += (uint64_t)rseq_early(counters[1], area, rseq_early_section);
		count += (uint64_t)rseq_behind(counters[2], area, rseq_behind_section);
	}
	*(uint64_t *)done = count;
	return NULL;
}

static pthread_t threads[WORKERS];
static uint64_t counts[WORKERS + 1]; /* the last one's is main()'s */

static void *obey(void *unused)
{
	char line[64];

	while (fgets(line, sizeof(line), stdin)) {
		uint64_t right = 0, found = 0;

		if (line[0] == 'c') {
			printf("%d\n", __rseq_size > 0);
			fflush(stdout);
			continue;
		}
		stopping = 1;
		for (int i = 0; i < WORKERS; i++)
			pthread_join(threads[i], NULL);
		while (!__atomic_load_n(&counts[WORKERS], __ATOMIC_ACQUIRE))
			usleep(1000);
		for (int i = 0; i <= WORKERS; i++)
			right += counts[i];
		for (int i = 0; i < WAYS; i++)
			for (int k = 0; k < CPUS; k++)
				found += counters[i][k * 8];
		printf("%lld %llu\n", (long long)(right - found), (unsigned long long)right);
		fflush(stdout);
	}
	exit(0);
	return unused;
}

int main(void)
{
	pthread_t commands;
	uint64_t done;

	pthread_create(&commands, NULL, obey, NULL);
	for (int i = 0; i < WORKERS && __rseq_size; i++)
		pthread_create(&threads[i], NULL, work, &counts[i]);
	if (__rseq_size)
		work(&done);
	__atomic_store_n(&counts[WORKERS], done, __ATOMIC_RELEASE);
	pthread_join(commands, NULL);
	return 0;
}
