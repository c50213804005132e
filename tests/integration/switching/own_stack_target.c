/* SPDX-License-Identifier: MIT */
/*
 * own_stack_target [confined]: asks a probe to read a word on stacks of all kinds. `confined`: once
 * it has been told to begin, the system call by which a probe reads memory is refused, so that what
 * can still be read is what is read directly.
 */
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "../../sandbox.h"

#define KEPT __attribute__((noinline, noclone))
#define PAGE 4096u
#define STACK (1u << 20)

static const uint64_t elsewhere = 1;
static uint64_t main_word;

/* What the probe is at; `what` is the number of the question in own_stack.sh. */
void asked(uint64_t address, uint64_t what);
KEPT void asked(uint64_t address, uint64_t what)
{
	__asm__ volatile("" ::"r"(address), "r"(what) : "memory");
}

KEPT static void ask_here(uint64_t what)
{
	volatile uint64_t word = what;
	asked((uint64_t)&word, what);
}

static uint64_t end_of_main_stack(void)
{
	char line[512];
	uint64_t start, end = 0;
	FILE *maps = fopen("/proc/self/maps", "re");
	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "[stack]") &&
		    sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) != 2)
			exit(2);
	if (maps)
		fclose(maps);
	return end;
}

KEPT static void deep(unsigned bytes, uint64_t what)
{
	volatile char *some = __builtin_alloca(bytes);
	for (unsigned i = 0; i < bytes; i += PAGE)
		some[i] = 1;
	if (what)
		ask_here(what);
}

static void of_main(void)
{
	uint64_t word = 1, end = end_of_main_stack();
	main_word = (uint64_t)&word;
	deep(96 << 10, 0);
	ask_here(1);
	asked(end - 8, 2);
	asked(end - 4, 3);
	asked((uint64_t)&word - (64 << 10), 4);
	asked((uint64_t)&elsewhere, 5);
	deep(STACK, 6);
	asked(8, 21);
	asked(UINT64_MAX - 7, 22);
}

/* --- threads --- */

static void *without_guard(void *unused)
{
	ask_here(13);
	return unused;
}

static void *of_thread(void *unused)
{
	uint64_t self = (uint64_t)__builtin_thread_pointer();
	pthread_attr_t attributes;
	void *block;
	size_t size;
	ask_here(7);
	asked(self - 8, 8);
	asked(self - 4, 9);
	asked(main_word, 10);
	if (pthread_getattr_np(pthread_self(), &attributes) ||
	    pthread_attr_getstack(&attributes, &block, &size))
		exit(2);
	asked((uint64_t)block - 8, 11);
	return unused;
}

static void *on_given_stack(void *unused)
{
	ask_here(12);
	return unused;
}

static void run(void *(*function)(void *), const pthread_attr_t *attributes)
{
	pthread_t thread;
	if (pthread_create(&thread, attributes, function, NULL) || pthread_join(thread, NULL))
		exit(2);
}

/* --- contexts --- */

static ucontext_t back, other;

static void in_context(int what)
{
	ask_here((uint64_t)what);
}

static void on_stack(void *stack, size_t size, int what)
{
	getcontext(&other);
	other.uc_stack.ss_sp = stack;
	other.uc_stack.ss_size = size;
	other.uc_link = &back;
	makecontext(&other, (void (*)(void))in_context, 1, what);
	swapcontext(&back, &other);
}

static void *of_contexts(void *unused)
{
	char own[64 << 10];
	void *heap = malloc(STACK);
	on_stack(heap, STACK, 14);
	on_stack(own, sizeof(own), 15);
	free(heap);
	return unused;
}

static void handler(int number)
{
	(void)number;
	ask_here(16);
}

static void *of_signals(void *unused)
{
	stack_t alternate = { .ss_sp = malloc(STACK), .ss_size = STACK },
		none = { .ss_flags = SS_DISABLE };
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK };
	sigaltstack(&alternate, NULL);
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	sigaltstack(&none, NULL);
	free(alternate.ss_sp);
	return unused;
}

/* One thread goes on, for a question, on the stack of another that runs on a third one. */
static ucontext_t lent, lender, borrower;
static sem_t offered, returned;

static void lend(void)
{
	sem_post(&offered);
	sem_wait(&returned);
	setcontext(&lent);
}

static void *of_lender(void *unused)
{
	void *heap = malloc(STACK);
	getcontext(&lender);
	lender.uc_stack.ss_sp = heap;
	lender.uc_stack.ss_size = STACK;
	makecontext(&lender, lend, 0);
	swapcontext(&lent, &lender);
	ask_here(17); /* in the other thread */
	swapcontext(&lent, &borrower);
	ask_here(7); /* in its own again */
	free(heap);
	return unused;
}

static void *of_borrower(void *unused)
{
	sem_wait(&offered);
	swapcontext(&borrower, &lent);
	sem_post(&returned);
	return unused;
}

static void of_two_threads(void)
{
	pthread_t one, two;
	sem_init(&offered, 0, 0);
	sem_init(&returned, 0, 0);
	if (pthread_create(&one, NULL, of_lender, NULL) ||
	    pthread_create(&two, NULL, of_borrower, NULL) || pthread_join(one, NULL) ||
	    pthread_join(two, NULL))
		exit(2);
}

int main(int argc, char **argv)
{
	pthread_attr_t attributes;
	void *given = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
	     *missing = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	setvbuf(stdout, NULL, _IONBF, 0);
	printf("ready\n");
	getchar();
	if (argc > 1 && !strcmp(argv[1], "confined") && refuse_call(SYS_process_vm_readv))
		return 2;
	of_main();
	pthread_attr_init(&attributes);
	pthread_attr_setguardsize(&attributes, 0);
	run(without_guard, &attributes);
	run(of_thread, NULL); /* where the one without a guard was */
	pthread_attr_init(&attributes);
	pthread_attr_setstack(&attributes, given, STACK);
	run(on_given_stack, &attributes);
	run(of_contexts, NULL);
	run(of_signals, NULL);
	of_two_threads();
	asked((uint64_t)missing, 19);
	pid_t child = fork();
	if (!child) {
		ask_here(18);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	child = vfork();
	if (!child) {
		ask_here(20);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	printf("did\n");
	getchar();
	return 0;
}
