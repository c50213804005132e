/* SPDX-License-Identifier: MIT */
/*
 * The traced program of the micro-benchmarks: an exported function in a tight loop on one pinned
 * core, told by lines on standard input what to run, so that one process serves traced and untraced
 * rounds alike.
 *
 *     run FUNCTION CALLS               answers "FUNCTION NANOSECONDS-PER-CALL CYCLES-PER-CALL" (TSC
 *					cycles)
 *     least FUNCTION CALLS SLICES      the same for the quickest of so many runs: what other guests
 *					of the machine take away is not in it
 *     nest DEPTH CALLS SLICES          nested() calls itself until DEPTH calls are under way; per
 *					call, the quickest of so many runs of CALLS calls
 *     step FUNCTION CALLS              answers how many instructions a call and its loop execute in
 *					user mode, single-stepped
 *     threads N CALLS SLICES           N threads at once call work(); per call, the median of the
 *					threads' quickest slices, by the thread's own processor time
 *
 * FUNCTION is `work` (the traced one, never patched by the program itself), `bound_inlined` (the
 * same body behind a jump to a stub that counts in place and jumps back: the least that any patch
 * can cost) or `bound_called` (the stub saves the nine caller-saved registers and calls a C
 * function that counts); `bound_return`, `bound_return_called` and `bound_return_timed` likewise
 * run the function from the stub and do something before and after: count in place, call a C
 * function each, or take two time stamps and count in a log2 histogram.
 */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

typedef int work_function(int fd, const void *buffer, unsigned long size);
int work(int fd, const void *buffer, unsigned long size);
int bound_inlined(int fd, const void *buffer, unsigned long size);
int bound_called(int fd, const void *buffer, unsigned long size);
int bound_return(int fd, const void *buffer, unsigned long size);
int bound_return_called(int fd, const void *buffer, unsigned long size);
int bound_return_timed(int fd, const void *buffer, unsigned long size);
uint64_t bound_histogram[65] __attribute__((aligned(64)));
void bound_probe(void);
uint64_t bound_count[8] __attribute__((aligned(64)));

void bound_probe(void)
{
	bound_count[0]++;
}

/* One body three times, so that only what stands before it differs. */
/* clang-format off */
#define BODY                                                                                       \
	"mov %rsp, %rbp\n\tlea (%rdi,%rdx), %eax\n\ttest %rsi, %rsi\n\tje 1f\n\tadd $1, %eax\n1:\tpop %rbp\n\tret\n"
/* clang-format on */
/* a header with a static tracepoint, TRACEPOINT(size): peers that cannot trace a binary as it is */
#ifdef FAY_BENCH_STATIC
#include FAY_BENCH_STATIC
#ifndef WORK_ATTRIBUTES
#define WORK_ATTRIBUTES
#endif
__attribute__((noinline)) WORK_ATTRIBUTES int work(int fd, const void *buffer, unsigned long size)
{
	TRACEPOINT(size);
	return fd + (int)size + (buffer ? 1 : 0);
}
#define WORK "assembled_work"
#else
#define WORK "work"
#endif
/* clang-format off */
__asm__(".text\n.p2align 4\n.globl " WORK "\n.type " WORK ", @function\n" WORK ":\n\tpush %rbp\n\t" BODY
	".size " WORK ", . - " WORK "\n"
	".p2align 4\n.globl bound_inlined\nbound_inlined:\n\tjmp inlined_stub\ninlined_back:\n\tlea (%rdi,%rdx), %eax\n"
	"\ttest %rsi, %rsi\n\tje 1f\n\tadd $1, %eax\n1:\tpop %rbp\n\tret\n"
	".p2align 4\n.globl bound_called\nbound_called:\n\tjmp called_stub\ncalled_back:\n\tlea (%rdi,%rdx), %eax\n"
	"\ttest %rsi, %rsi\n\tje 1f\n\tadd $1, %eax\n1:\tpop %rbp\n\tret\n"
	".p2align 12\n"
	"inlined_stub:\n\tincq bound_count(%rip)\n\tpush %rbp\n\tmov %rsp, %rbp\n\tjmp inlined_back\n"
	".p2align 6\n"
	"called_stub:\n\tpush %rax\n\tpush %rcx\n\tpush %rdx\n\tpush %rsi\n\tpush %rdi\n\tpush %r8\n\tpush %r9\n"
	"\tpush %r10\n\tpush %r11\n\tcall bound_probe\n\tpop %r11\n\tpop %r10\n\tpop %r9\n\tpop %r8\n\tpop %rdi\n"
	"\tpop %rsi\n\tpop %rdx\n\tpop %rcx\n\tpop %rax\n\tpush %rbp\n\tmov %rsp, %rbp\n\tjmp called_back\n");
/* clang-format on */

/* The same for what also runs after the function. */
#define REST                                                                                       \
	"lea (%rdi,%rdx), %eax\n\ttest %rsi, %rsi\n\tje 1f\n\tadd $1, %eax\n1:\tpop %rbp\n\tret\n"
/* clang-format off */
__asm__(".text\n.p2align 4\n.globl bound_return\nbound_return:\n\tjmp return_stub\nreturn_back:\n\t" REST
	".p2align 4\n.globl bound_return_called\nbound_return_called:\n\tjmp return_called_stub\nreturn_called_back:\n\t" REST
	".p2align 4\n.globl bound_return_timed\nbound_return_timed:\n\tjmp return_timed_stub\nreturn_timed_back:\n\t" REST
	".p2align 12\n"
	"return_stub:\n\tincq bound_count(%rip)\n\tcall 1f\n\tincq 8+bound_count(%rip)\n\tret\n"
	"1:\tpush %rbp\n\tmov %rsp, %rbp\n\tjmp return_back\n"
	".p2align 6\n"
	"return_called_stub:\n\tpush %rax\n\tpush %rcx\n\tpush %rdx\n\tpush %rsi\n\tpush %rdi\n\tpush %r8\n\tpush %r9\n"
	"\tpush %r10\n\tpush %r11\n\tcall bound_probe\n\tpop %r11\n\tpop %r10\n\tpop %r9\n\tpop %r8\n\tpop %rdi\n"
	"\tpop %rsi\n\tpop %rdx\n\tpop %rcx\n\tpop %rax\n\tcall 1f\n"
	"\tpush %rax\n\tpush %rdx\n\tlea -8(%rsp), %rsp\n\tcall bound_probe\n\tlea 8(%rsp), %rsp\n\tpop %rdx\n\tpop %rax\n\tret\n"
	"1:\tpush %rbp\n\tmov %rsp, %rbp\n\tjmp return_called_back\n"
	".p2align 6\n"
	"return_timed_stub:\n\tpush %rdx\n\trdtsc\n\tshl $32, %rdx\n\tor %rdx, %rax\n\tmov (%rsp), %rdx\n\tmov %rax, (%rsp)\n\tcall 1f\n"
	"\tmov %rax, %rcx\n\trdtsc\n\tshl $32, %rdx\n\tor %rdx, %rax\n\tpop %rdx\n\tsub %rdx, %rax\n\tbsr %rax, %rax\n"
	"\tlea bound_histogram(%rip), %rdx\n\tincq 8(%rdx,%rax,8)\n\tmov %rcx, %rax\n\tret\n"
	"1:\tpush %rbp\n\tmov %rsp, %rbp\n\tjmp return_timed_back\n");
/* clang-format on */

static double seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* int nested(int depth): depth calls under way at the end */
int nested(int depth);
/* clang-format off */
__asm__(".text\n.p2align 4\n.globl nested\n.type nested, @function\nnested:\n\t.cfi_startproc\n"
	"\tpush %rbp\n\t.cfi_def_cfa_offset 16\n\t.cfi_offset 6, -16\n"
	"\tmov %rsp, %rbp\n\t.cfi_def_cfa_register 6\n\txor %eax, %eax\n"
	"\tsub $1, %edi\n\tje 1f\n\tcall nested\n1:\tadd $1, %eax\n"
	"\tpop %rbp\n\t.cfi_def_cfa 7, 8\n\tret\n\t.cfi_endproc\n.size nested, . - nested\n");
/* clang-format on */

struct cost {
	double nanoseconds, cycles;
};

static work_function *function_named(const char *name)
{
	static const struct {
		const char *name;
		work_function *call;
	} bounds[] = { { "bound_inlined", bound_inlined },
		       { "bound_called", bound_called },
		       { "bound_return", bound_return },
		       { "bound_return_called", bound_return_called },
		       { "bound_return_timed", bound_return_timed } };
	for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++)
		if (!strcmp(name, bounds[i].name))
			return bounds[i].call;
	return work;
}

/* A call, over `calls` of them. */
static __attribute__((noinline)) struct cost cost_of(work_function *function, uint64_t calls)
{
	uint64_t random = 88172645463325252u;
	static char buffer[16];
	double start = seconds();
	uint64_t cycles = __rdtsc();
	for (uint64_t i = 0; i < calls; i++) {
		random ^= random << 13;
		random ^= random >> 7;
		function(3, buffer, random & 0xffff);
	}
	cycles = __rdtsc() - cycles;
	return (struct cost){ (seconds() - start) * 1e9 / (double)calls,
			      (double)cycles / (double)calls };
}

static struct cost cost_of_nesting(int depth, uint64_t calls)
{
	uint64_t rounds = calls / (uint64_t)depth + 1;
	double start = seconds();
	uint64_t cycles = __rdtsc();

	for (uint64_t i = 0; i < rounds; i++)
		nested(depth);
	calls = rounds * (uint64_t)depth;
	cycles = __rdtsc() - cycles;
	return (struct cost){ (seconds() - start) * 1e9 / (double)calls,
			      (double)cycles / (double)calls };
}

static void keep_lesser(struct cost *least, struct cost cost)
{
	if (least->nanoseconds == 0 || cost.nanoseconds < least->nanoseconds)
		*least = cost;
}

static void answer(const char *name, struct cost cost)
{
	printf("%s %.4f %.4f\n", name, cost.nanoseconds, cost.cycles);
	fflush(stdout);
}

struct worker {
	pthread_t thread;
	uint64_t calls, slices;
	double least; /* ns of processor time per call */
};

static volatile sig_atomic_t steps;

static void count_step(int signal)
{
	(void)signal;
	steps++;
}

#define TRAP_FLAG 0x100u

/* Instructions of a call and its loop, by the trap that follows each of them while the trap flag is
 * set. */
static double steps_of(work_function *function, uint64_t calls)
{
	static char buffer[16];
	struct sigaction action = { .sa_handler = count_step };

	sigaction(SIGTRAP, &action, NULL);
	steps = 0;
	__writeeflags(__readeflags() | TRAP_FLAG);
	for (uint64_t i = 0; i < calls; i++)
		function(3, buffer, 1000);
	__writeeflags(__readeflags() & ~(unsigned long long)TRAP_FLAG);
	return (double)steps / (double)calls;
}

static double thread_seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void *work_in_thread(void *context)
{
	struct worker *worker = context;
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	for (long i = 0, n = sysconf(_SC_NPROCESSORS_ONLN); i < n && i < CPU_SETSIZE; i++)
		CPU_SET((size_t)i, &cpus);
	pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
	for (uint64_t i = 0; i < worker->slices; i++) {
		double start = thread_seconds(), each;

		cost_of(work, worker->calls);
		each = (thread_seconds() - start) * 1e9 / (double)worker->calls;
		if (i == 0 || each < worker->least)
			worker->least = each;
	}
	return NULL;
}

static int by_least(const void *a, const void *b)
{
	double x = ((const struct worker *)a)->least, y = ((const struct worker *)b)->least;

	return x < y ? -1 : x > y;
}

#define THREADS_MAX 64u

static void run_threads(uint64_t count, uint64_t calls, uint64_t slices)
{
	static struct worker workers[THREADS_MAX];

	if (count == 0 || count > THREADS_MAX)
		count = 1;
	for (uint64_t i = 0; i < count; i++) {
		workers[i] = (struct worker){ .calls = calls, .slices = slices };
		pthread_create(&workers[i].thread, NULL, work_in_thread, &workers[i]);
	}
	for (uint64_t i = 0; i < count; i++)
		pthread_join(workers[i].thread, NULL);
	qsort(workers, count, sizeof(workers[0]), by_least);
	answer("threads", (struct cost){ workers[count / 2].least, 0 });
}

/* One line of input. */
static void obey(const char *line)
{
	struct cost least = { 0, 0 };
	uint64_t calls, slices, number;
	char name[64];

	if (sscanf(line, "run %63s %" SCNu64, name, &calls) == 2) {
		answer(name, cost_of(function_named(name), calls));
	} else if (sscanf(line, "least %63s %" SCNu64 " %" SCNu64, name, &calls, &slices) == 3) {
		for (uint64_t i = 0; i < slices; i++)
			keep_lesser(&least, cost_of(function_named(name), calls));
		answer(name, least);
	} else if (sscanf(line, "step %63s %" SCNu64, name, &calls) == 2) {
		answer(name, (struct cost){ steps_of(function_named(name), calls), 0 });
	} else if (sscanf(line, "nest %" SCNu64 " %" SCNu64 " %" SCNu64, &number, &calls,
			  &slices) == 3) {
		for (uint64_t i = 0; i < slices; i++)
			keep_lesser(&least, cost_of_nesting((int)number, calls));
		answer("nested", least);
	} else if (sscanf(line, "threads %" SCNu64 " %" SCNu64 " %" SCNu64, &number, &calls,
			  &slices) == 3) {
		run_threads(number, calls, slices);
	}
}

static void *wait_for_ever(void *context)
{
	for (;;)
		pause();
	return context;
}

int main(int argc, char **argv)
{
	cpu_set_t cpus;
	CPU_ZERO(&cpus);
	CPU_SET(argc > 1 ? atoi(argv[1]) : 1, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
	pthread_t other; /* which does nothing, for peers that trace one thread only */
	pthread_create(&other, NULL, wait_for_ever, NULL);
	char line[256];
	while (fgets(line, sizeof(line), stdin))
		obey(line);
	return 0;
}
