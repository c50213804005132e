/* SPDX-License-Identifier: MIT */
/* A function that is called from known places: twice in this program, by the C library, and by a
 * library that is loaded while it runs. */
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#define CALLED __attribute__((noinline, noclone))
#define USED(x) __asm__ volatile("" : : "r"(x) : "memory")

int compared(const void *a, const void *b);
CALLED int compared(const void *a, const void *b)
{
	USED(a);
	USED(b);
	return *(const int *)a - *(const int *)b;
}

static int numbers[] = { 4, 3, 2, 1 };

CALLED static int once(void)
{
	return compared(&numbers[0], &numbers[1]) + 1;
}

CALLED static int twice(void)
{
	int first = compared(&numbers[0], &numbers[1]);
	USED(first);
	return compared(&numbers[2], &numbers[3]) + first;
}

int main(int argc, char **argv)
{
	int sum = 0;
	for (int i = 0; i < 300; i++)
		sum += once() + (i % 3 ? 0 : twice());
	if (argc > 1) {
		void *library = dlopen(argv[1], RTLD_NOW);
		int (*call)(int (*)(const void *, const void *), int) =
			library ? (int (*)(int (*)(const void *, const void *), int))dlsym(
					  library, "call_back")
				: NULL;
		if (!call)
			return 1;
		usleep(600000); /* Fay looks for new modules every 250 ms */
		sum += call(compared, 50);
	}
	return sum == 0;
}
