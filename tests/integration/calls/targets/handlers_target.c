/* SPDX-License-Identifier: MIT */
/*
 * `handlers_target MODE`: signals that come while traced functions run. Waits for a line on
 * standard input; calls work(1) all the time while a timer interrupts it ROUNDS times, at whatever
 * place; then calls work(2) CALLS times, undisturbed. The handler
 *
 *	jump  leaves by siglongjmp
 *	nest  calls work(3) and returns
 *	exit  ends the thread on the spot; work(2) is called by another thread on the same stack
 *
 * With "-alternate" behind it the handler runs on a stack of its own; with "-sandbox" the disturbed
 * thread is one that may not read memory by system calls. Prints "done", how often work was called
 * with each number, how often the handler ran, and waits for another line.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../../../sandbox.h"

#define ROUNDS 150
#define CALLS 50000

uint64_t work(uint64_t number);

__attribute__((noinline, noclone)) uint64_t work(uint64_t number)
{
	__asm__ volatile("" ::: "memory");
	return number * 3;
}

static const char *mode;
static volatile uint64_t calls[4];
static volatile unsigned handled;
static sigjmp_buf before;
static char alternate[256 << 10];

static void call(unsigned number)
{
	calls[number]++;
	if (work(number) != number * 3u)
		abort();
}

static void handler(int signal)
{
	(void)signal;
	if (++handled >= ROUNDS && strncmp(mode, "nest", 4) != 0)
		handled = ROUNDS;
	if (!strncmp(mode, "nest", 4))
		call(3);
	else if (!strncmp(mode, "jump", 4))
		siglongjmp(before, 1);
	else
		syscall(SYS_exit, 0);
}

/* The timer's signals go to the thread that makes it. */
static timer_t start_timer(void)
{
	const struct itimerspec times = { .it_interval = { .tv_nsec = 700000 },
					  .it_value = { .tv_nsec = 700000 } };
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN };
	timer_t timer;
	event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &times, NULL))
		abort();
	return timer;
}

static void enter_sandbox(void)
{
	if (refuse_call(SYS_process_vm_readv))
		abort();
}

static void *disturbed(void *argument)
{
	(void)argument;
	if (strstr(mode, "-sandbox"))
		enter_sandbox();
	const stack_t stack = { .ss_sp = alternate, .ss_size = sizeof(alternate) };
	if (strstr(mode, "-alternate") && sigaltstack(&stack, NULL))
		abort();
	timer_t timer = start_timer();
	if (!strncmp(mode, "jump", 4))
		sigsetjmp(before, 1);
	while (handled < ROUNDS)
		call(1);
	timer_delete(timer);
	return NULL;
}

static void *undisturbed(void *argument)
{
	for (unsigned i = 0; i < CALLS; i++)
		call(2);
	return argument;
}

static void in_thread(void *(*function)(void *))
{
	pthread_t thread;
	if (pthread_create(&thread, NULL, function, NULL) || pthread_join(thread, NULL))
		abort();
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = handler };
	mode = argc > 1 ? argv[1] : "nest";
	action.sa_flags = strstr(mode, "-alternate") ? SA_ONSTACK : 0;
	sigaction(SIGRTMIN, &action, NULL);
	printf("ready\n");
	fflush(stdout);
	getchar();
	if (!strncmp(mode, "exit", 4)) {
		while (handled < ROUNDS)
			in_thread(disturbed);
		in_thread(undisturbed);
	} else if (strstr(mode, "-sandbox")) {
		in_thread(disturbed);
		undisturbed(NULL);
	} else {
		disturbed(NULL);
		undisturbed(NULL);
	}
	printf("done %" PRIu64 " %" PRIu64 " %" PRIu64 " %u\n", calls[1], calls[2], calls[3],
	       handled);
	fflush(stdout);
	getchar();
	return 0;
}
