/* SPDX-License-Identifier: MIT */
/*
 * Stacks that come, go and are switched in each of several threads, while another one maps and
 * unmaps memory right beside them: coroutines (ucontext, and a switch in assembly as Boost's),
 * signals' own stacks, threads with stacks of all sizes, guards and owners, one thread on another's
 * stack, forked children. All of them call traced() and look at what it returns. Runs until its
 * input ends; says how many rounds each kind made.
 */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noclone))
#define PAGE ((size_t)4096)
#define STACK (64 << 10)
#define NEIGHBOURS 16u

static volatile int done;
static void *volatile places[NEIGHBOURS]; /* ends of stacks, beside which memory is mapped */

/* What is traced, at some depth. */
uint64_t traced(uint64_t x);
KEPT uint64_t traced(uint64_t x)
{
	__asm__ volatile("" : "+r"(x));
	return 3 * x + 1;
}

KEPT static uint64_t deeper(unsigned depth, uint64_t x)
{
	volatile char some[200];
	some[depth] = (char)x;
	uint64_t result = depth ? deeper(depth - 1, x) : traced(x);
	if (some[depth] != (char)x)
		abort();
	return result;
}

KEPT static void check(uint64_t x)
{
	if (deeper((unsigned)(x % 16), x) != 3 * x + 1)
		abort();
}

static void *map_stack(size_t size)
{
	void *stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stack == MAP_FAILED)
		abort();
	places[(uintptr_t)stack / STACK % NEIGHBOURS] = (char *)stack + size;
	places[(uintptr_t)stack / STACK % NEIGHBOURS ^ 1] = stack;
	return stack;
}

/* Maps pages right above and below the stacks that others made last, and takes them away again. */
static uint64_t neighbours(uint64_t x)
{
	const int protections[] = { PROT_READ | PROT_WRITE, PROT_NONE, PROT_READ };
	size_t size = PAGE << x % 3;
	char *place = places[x % NEIGHBOURS];
	for (unsigned below = 0; place && below < 2; below++) {
		char *want = below ? place - size : place;
		void *got = mmap(want, size, protections[x / NEIGHBOURS % 3],
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		if (got == want && mprotect(got, size, protections[(x / NEIGHBOURS + 1) % 3]))
			abort();
		if (got != MAP_FAILED)
			munmap(got, size);
	}
	return 1;
}

/* --- coroutines --- */

static __thread ucontext_t back, there;

static void coroutine(void)
{
	for (uint64_t x = 0; x < 8; x++) {
		check(x);
		swapcontext(&there, &back);
	}
}

static uint64_t contexts(uint64_t x)
{
	char own[STACK];
	void *mapped = map_stack(STACK), *stack = x % 2 ? mapped : own;
	getcontext(&there);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = STACK;
	there.uc_link = &back;
	makecontext(&there, coroutine, 0);
	for (unsigned i = 0; i < 9; i++)
		swapcontext(&back, &there);
	munmap(mapped, STACK);
	return 1;
}

/* void switch_to(void **from, void *to): callee-saved registers and the stack pointer */
void switch_to(void **from, void *to);
/* clang-format off */
__asm__(".text\n.globl switch_to\n.type switch_to, @function\nswitch_to:\n"
	"\tpush %rbp\n\tpush %rbx\n\tpush %r12\n\tpush %r13\n\tpush %r14\n\tpush %r15\n"
	"\tmov %rsp, (%rdi)\n\tmov %rsi, %rsp\n"
	"\tpop %r15\n\tpop %r14\n\tpop %r13\n\tpop %r12\n\tpop %rbx\n\tpop %rbp\n\tret\n"
	".size switch_to, . - switch_to\n");
/* clang-format on */

static __thread void *caller_stack, *callee_stack;

static void assembled(void)
{
	for (uint64_t x = 0;; x++) {
		check(x);
		switch_to(&callee_stack, caller_stack);
	}
}

/* The topmost function's frame begins right below the end of what is mapped. */
static uint64_t switches(uint64_t x)
{
	size_t size = STACK + PAGE * (x % 5);
	char *stack = map_stack(size);
	uint64_t *top = (uint64_t *)(void *)(stack + size) - 2;
	top[0] = (uint64_t)(uintptr_t)assembled;
	callee_stack = top - 6;
	for (unsigned i = 0; i < 8; i++)
		switch_to(&caller_stack, callee_stack);
	munmap(stack, size);
	return 1;
}

/* --- signals --- */

static void handler(int number)
{
	check((uint64_t)number);
}

static uint64_t signals(uint64_t x)
{
	stack_t alternate = { .ss_sp = map_stack(STACK), .ss_size = STACK },
		none = { .ss_flags = SS_DISABLE };
	sigaltstack(&alternate, NULL);
	for (unsigned i = 0; i < 4; i++)
		pthread_kill(pthread_self(), x % 2 ? SIGUSR1 : SIGUSR2);
	sigaltstack(&none, NULL);
	munmap(alternate.ss_sp, STACK);
	return 1;
}

/* --- threads --- */

static void *short_thread(void *x)
{
	for (unsigned i = 0; i < 4; i++)
		check((uintptr_t)x + i);
	return NULL;
}

static uint64_t threads(uint64_t x)
{
	const size_t guards[] = { PAGE, 0, 16 * PAGE, 3 * PAGE };
	pthread_attr_t attributes;
	pthread_t ids[4];
	void *given = map_stack(4 * STACK);
	for (unsigned i = 0; i < 4; i++) {
		pthread_attr_init(&attributes);
		if (i == 3)
			pthread_attr_setstack(&attributes, given, 4 * STACK);
		else
			pthread_attr_setstacksize(&attributes, (size_t)STACK << (x + i) % 4);
		pthread_attr_setguardsize(&attributes, guards[(x / 4 + i) % 4]);
		if (pthread_create(&ids[i], &attributes, short_thread, (void *)(uintptr_t)x))
			abort();
		pthread_attr_destroy(&attributes);
	}
	for (unsigned i = 0; i < 4; i++)
		pthread_join(ids[i], NULL);
	munmap(given, 4 * STACK);
	return 1;
}

/* Two threads change their stacks, and change them back. */
struct lending {
	ucontext_t lent, lender, borrower;
	sem_t offered, returned;
};

static void lend(unsigned high, unsigned low)
{
	struct lending *l = (struct lending *)((uintptr_t)high << 32 | low);
	sem_post(&l->offered);
	check(1);
	sem_wait(&l->returned);
	setcontext(&l->lent);
}

static void *lender(void *lending)
{
	struct lending *l = lending;
	void *stack = map_stack(STACK);
	getcontext(&l->lender);
	l->lender.uc_stack.ss_sp = stack;
	l->lender.uc_stack.ss_size = STACK;
	makecontext(&l->lender, (void (*)(void))lend, 2, (unsigned)((uintptr_t)l >> 32),
		    (unsigned)(uintptr_t)l);
	swapcontext(&l->lent, &l->lender);
	check(2); /* in the other thread */
	swapcontext(&l->lent, &l->borrower);
	check(3);
	munmap(stack, STACK);
	return NULL;
}

static void *borrower(void *lending)
{
	struct lending *l = lending;
	sem_wait(&l->offered);
	swapcontext(&l->borrower, &l->lent);
	sem_post(&l->returned);
	return NULL;
}

static uint64_t lendings(uint64_t x)
{
	struct lending *l = calloc(1, sizeof(*l));
	pthread_t one, two;
	(void)x;
	if (!l || sem_init(&l->offered, 0, 0) || sem_init(&l->returned, 0, 0) ||
	    pthread_create(&one, NULL, lender, l) || pthread_create(&two, NULL, borrower, l))
		abort();
	pthread_join(one, NULL);
	pthread_join(two, NULL);
	free(l);
	return 1;
}

static uint64_t children(uint64_t x)
{
	int status = 1;
	pid_t child = x % 2 ? fork() : vfork();
	if (!child) {
		check(x);
		_exit(0);
	}
	if (waitpid(child, &status, 0) != child || status)
		abort();
	usleep(2000);
	return 1;
}

/* --- all at once --- */

static struct kind {
	const char *name;
	uint64_t (*run)(uint64_t);
	uint64_t rounds;
} kinds[] = { { "contexts", contexts, 0 },     { "switches", switches, 0 },
	      { "signals", signals, 0 },       { "threads", threads, 0 },
	      { "lendings", lendings, 0 },     { "children", children, 0 },
	      { "neighbours", neighbours, 0 }, { "more neighbours", neighbours, 0 } };
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static void *run_kind(void *kind)
{
	struct kind *k = kind;
	while (!done)
		k->rounds += k->run(k->rounds);
	return NULL;
}

int main(void)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK };
	pthread_t ids[KINDS];
	sigaction(SIGUSR1, &action, NULL);
	action.sa_flags = SA_ONSTACK | SA_NODEFER;
	sigaction(SIGUSR2, &action, NULL);
	setvbuf(stdout, NULL, _IONBF, 0);
	for (size_t i = 0; i < KINDS; i++)
		if (pthread_create(&ids[i], NULL, run_kind, &kinds[i]))
			return 2;
	printf("ready\n");
	while (getchar() != EOF)
		;
	done = 1;
	for (size_t i = 0; i < KINDS; i++) {
		pthread_join(ids[i], NULL);
		printf("%s %llu\n", kinds[i].name, (unsigned long long)kinds[i].rounds);
	}
	return 0;
}
