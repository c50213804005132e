/* SPDX-License-Identifier: MIT */
/*
 * A program with functions and markers at which no jump fits (traps.S). Reads commands, a line
 * each, and answers each with a line:
 *
 *	run T N		T threads call every function N times, with the numbers from 1 to N
 *	fork N		a child does so, and ends
 *	execute N	the program executes itself, and does so
 *	leave N		the first thread ends, another one calls every function N times, and ends
 *			some seconds later
 *	semaphore	its value
 *	load N PATH	loads that module, calls each of its functions N times, with the numbers
 *			from 1 to N, and unloads it
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run_threads.h"

extern unsigned short traps_semaphore;

void traps_nothing(void);
long traps_behind(void);
long traps_next(long n);
long traps_nearby(long n);
long traps_inside(long n);
long traps_again(long n);
long traps_switch(long n, const char *text);
long traps_asked(long n);
long traps_close(long n);

static unsigned long rounds;

static void *run(void *argument)
{
	unsigned long sum = 0;

	for (unsigned long i = 1; i <= rounds; i++) {
		long n = (long)i;

		traps_nothing();
		traps_next(n);
		sum += (unsigned long)(traps_behind() + traps_nearby(n) + traps_inside(n) +
				       traps_again(n % 4) +
				       traps_switch(-n, i & 1 ? "an odd one" : "an even one") +
				       traps_asked(n) + traps_close(n));
	}
	*(unsigned long *)argument = sum;
	return NULL;
}

static void *linger(void *argument)
{
	unsigned long sum;

	sleep(1);
	run(&sum);
	printf("left\n");
	fflush(stdout);
	sleep(5);
	return argument;
}

static void leave(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, linger, NULL);
	pthread_exit(NULL);
}

static void run_child(void)
{
	pid_t child = fork();
	unsigned long sum;

	if (!child) {
		run(&sum);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	printf("forked\n");
}

static void load(const char *path)
{
	static const char *const names[] = { "traps_later", "traps_behind_later", "traps_called" };
	void *module = dlopen(path, RTLD_NOW);

	for (unsigned k = 0; module && k < 3; k++) {
		long (*function)(long) = (long (*)(long))dlsym(module, names[k]);

		for (unsigned long i = 1; i <= rounds; i++)
			function((long)i);
	}
	printf("loaded %d\n", module && !dlclose(module));
}

int main(int argc, char **argv)
{
	char line[1000], path[900];
	unsigned threads;

	setvbuf(stdin, NULL, _IONBF, 0);
	if (argc > 1) {
		rounds = strtoul(argv[1], NULL, 10);
		run_threads(1, run, "ran");
	}
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "run %u %lu", &threads, &rounds) == 2) {
			run_threads(threads, run, "ran");
		} else if (sscanf(line, "fork %lu", &rounds) == 1) {
			run_child();
		} else if (sscanf(line, "execute %lu", &rounds) == 1) {
			char number[24];

			snprintf(number, sizeof(number), "%lu", rounds);
			execl("/proc/self/exe", argv[0], number, NULL);
		} else if (sscanf(line, "leave %lu", &rounds) == 1) {
			leave();
		} else if (sscanf(line, "load %lu %899s", &rounds, path) == 2) {
			load(path);
		} else if (!strncmp(line, "semaphore", 9)) {
			printf("semaphore %u\n", traps_semaphore);
		}
		fflush(stdout);
	}
	return 0;
}
