/* SPDX-License-Identifier: MIT */
/* A function that is reached by known chains of calls: a leaf, deep recursion, a handler of a
 * signal, another thread, a library that is loaded while it runs. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define CALLED __attribute__((noinline, noclone))
#define AFTER() __asm__ volatile("" ::: "memory") /* no tail call */

int reached(int x);
CALLED int reached(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x;
}

CALLED static int leaf(int x)
{
	int sum = reached(x);
	AFTER();
	return sum;
}

CALLED static int deeper(int x)
{
	int sum = x ? deeper(x - 1) : leaf(0);
	AFTER();
	return sum + 1;
}

static void handler(int number)
{
	reached(number);
	AFTER();
}

CALLED static void interrupted(void)
{
	raise(SIGUSR1);
	AFTER();
}

static void *thread(void *argument)
{
	leaf(argument != NULL);
	AFTER();
	return NULL;
}

CALLED static int other(int x)
{
	volatile char *some = __builtin_alloca((size_t)x + 16);
	some[x] = 1;
	int sum = leaf(x);
	AFTER();
	return sum;
}

int main(int argc, char **argv)
{
	pthread_t id;
	signal(SIGUSR1, handler);
	for (int i = 0; i < 100; i++)
		leaf(i);
	for (int i = 0; i < 30; i++)
		other(i);
	for (int i = 0; i < 20; i++)
		deeper(40);
	for (int i = 0; i < 10; i++)
		interrupted();
	for (int i = 0; i < 5; i++)
		if (!pthread_create(&id, NULL, thread, &id))
			pthread_join(id, NULL);
	if (argc > 1) {
		void *library = dlopen(argv[1], RTLD_NOW);
		int (*call)(int (*)(int)) =
			library ? (int (*)(int (*)(int)))dlsym(library, "call_it") : NULL;
		if (!call)
			return 1;
		usleep(900000); /* Fay looks for new modules every 250 ms */
		for (int i = 0; i < 7; i++)
			call(leaf);
	}
	return 0;
}
