/* SPDX-License-Identifier: MIT */
/*
 * The program that the loader's tests trace. It does as told on standard input, one command a line,
 * and answers each with one line:
 *
 *	run FUNCTION THREADS CALLS   calls it in new threads; answers with the number of calls made
 *	start FUNCTION THREADS       calls it in background threads until
 *	stop                         answers with the number of calls made
 *	fork FUNCTION CALLS          a child calls it, waits for the parent's `reap`, calls it as
 *				     often again
 *	reap                         lets the child go on; answers with its exit code
 *	signals FUNCTION CALLS       calls it while a timer's signal handler calls it too; answers
 *				     with both numbers
 *	registers                    how many registers a call of fn_spare changed
 *	checksum                     of the executable's own text
 *	leave                        the first thread ends, another one takes commands; answers with
 *				     its number
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

typedef uint64_t *function(uint64_t *counter);
function fn_plain, fn_endbr, fn_riprel, fn_call, fn_callreg, fn_callearly, fn_jcc, fn_tail, fn_tiny,
	fn_short, fn_next, fn_behind, fn_behind_near, fn_beside, enters_near, enters_far,
	fn_loopback, fn_loopentry, hops;
uint64_t check_registers(void);
__attribute__((noinline)) uint64_t *fn_c(uint64_t *counter);

__attribute__((noinline)) uint64_t *fn_c(uint64_t *counter)
{
	++*counter;
	__asm__ volatile("" : : : "memory");
	return counter;
}

static const struct {
	const char *name;
	function *call;
} functions[] = {
#define F(name) { #name, name }
	F(fn_plain),     F(fn_endbr),    F(fn_riprel),      F(fn_call),   F(fn_callreg),
	F(fn_callearly), F(fn_jcc),      F(fn_tail),        F(fn_tiny),   F(fn_short),
	F(fn_next),      F(fn_behind),   F(fn_behind_near), F(fn_beside), F(enters_near),
	F(enters_far),   F(fn_loopback), F(fn_loopentry),   F(fn_c),      F(hops),
};

static function *find(const char *name)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (!strcmp(functions[i].name, name))
			return functions[i].call;
	fprintf(stderr, "no function %s\n", name);
	exit(2);
}

struct worker {
	pthread_t thread;
	function *call;
	uint64_t calls, done;
	uint64_t counter __attribute__((aligned(64)));
};
static volatile int stopping;
static struct worker workers[64];
static int worker_count;

static void *work(void *argument)
{
	struct worker *worker = argument;

	while (worker->calls ? worker->done < worker->calls : !stopping) {
		if (worker->call(&worker->counter) != &worker->counter)
			abort();
		worker->done++;
	}
	return NULL;
}

static void start(const char *name, int threads, uint64_t calls)
{
	stopping = 0;
	worker_count = threads;
	for (int i = 0; i < threads; i++) {
		workers[i] = (struct worker){ .call = find(name), .calls = calls };
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	}
	/* each is at work, however busy the machine is */
	for (int i = 0; i < threads && !calls; i++)
		while (!__atomic_load_n(&workers[i].done, __ATOMIC_RELAXED))
			usleep(100);
}

static uint64_t finish(void)
{
	uint64_t done = 0;

	for (int i = 0; i < worker_count; i++) {
		pthread_join(workers[i].thread, NULL);
		done += workers[i].done;
	}
	return done;
}

static function *handled;
static volatile uint64_t in_handler;

static void on_alarm(int number)
{
	static uint64_t counter;

	(void)number;
	handled(&counter);
	in_handler++;
}

static void with_signals(const char *name, uint64_t calls)
{
	struct itimerval often = { { 0, 100 }, { 0, 100 } }, never = { 0 };
	uint64_t counter = 0;

	handled = find(name);
	in_handler = 0;
	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &often, NULL);
	for (uint64_t i = 0; i < calls; i++)
		handled(&counter);
	setitimer(ITIMER_REAL, &never, NULL);
	printf("%llu %llu\n", (unsigned long long)calls, (unsigned long long)in_handler);
}

static pid_t child;
static int gate[2];

static void fork_one(const char *name, uint64_t calls)
{
	uint64_t counter = 0;
	int ready[2];
	char byte;

	if (pipe(gate) || pipe(ready))
		exit(3);
	child = fork();
	if (child == 0) {
		function *call = find(name);

		for (uint64_t i = 0; i < calls; i++)
			call(&counter);
		if (write(ready[1], "x", 1) != 1 || read(gate[0], &byte, 1) != 1)
			_exit(4);
		for (uint64_t i = 0; i < calls; i++)
			call(&counter);
		_exit(0);
	}
	if (read(ready[0], &byte, 1) != 1)
		exit(3);
	printf("%d\n", (int)child);
}

static int sum_text(struct dl_phdr_info *info, size_t size, void *context)
{
	uint64_t *sum = context;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		const unsigned char *at = (const unsigned char *)info->dlpi_addr + header->p_vaddr;

		if (header->p_type == PT_LOAD && header->p_flags & PF_X)
			for (size_t k = 0; k < header->p_memsz; k++)
				*sum = (*sum ^ at[k]) * 0x100000001b3u;
	}
	return 1; /* only the executable itself */
}

static void *take_commands(void *leader);

static void one_command(const char *line)
{
	static pthread_t first;

	char name[64];
	unsigned long long calls;
	int threads, status;

	if (sscanf(line, "run %63s %d %llu", name, &threads, &calls) == 3) {
		start(name, threads, calls);
		printf("%llu\n", (unsigned long long)finish());
	} else if (sscanf(line, "start %63s %d", name, &threads) == 2) {
		start(name, threads, 0);
		printf("ok\n");
	} else if (!strncmp(line, "stop", 4)) {
		stopping = 1;
		printf("%llu\n", (unsigned long long)finish());
	} else if (sscanf(line, "fork %63s %llu", name, &calls) == 2) {
		fork_one(name, calls);
	} else if (!strncmp(line, "reap", 4)) {
		if (write(gate[1], "x", 1) != 1)
			exit(3);
		waitpid(child, &status, 0);
		printf("%d\n", status);
	} else if (sscanf(line, "signals %63s %llu", name, &calls) == 2) {
		with_signals(name, calls);
	} else if (!strncmp(line, "registers", 9)) {
		printf("%llu\n", (unsigned long long)check_registers());
	} else if (!strncmp(line, "checksum", 8)) {
		uint64_t sum = 0xcbf29ce484222325u;

		dl_iterate_phdr(sum_text, &sum);
		printf("%llu\n", (unsigned long long)sum);
	} else if (!strncmp(line, "lock", 4)) {
		printf("%d\n", mlockall(MCL_FUTURE) ? errno : 0);
	} else if (!strncmp(line, "leave", 5)) {
		first = pthread_self();
		pthread_create(&(pthread_t){ 0 }, NULL, take_commands, &first);
		pthread_exit(NULL);
	} else {
		printf("what?\n");
	}
	fflush(stdout);
}

static void *take_commands(void *leader)
{
	char line[256];

	if (leader) {
		pthread_join(*(pthread_t *)leader, NULL);
		printf("%ld\n", syscall(SYS_gettid));
		fflush(stdout);
	}
	while (fgets(line, sizeof(line), stdin))
		one_command(line);
	exit(0);
}

int main(void)
{
	take_commands(NULL);
}
