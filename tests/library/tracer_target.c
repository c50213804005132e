/* SPDX-License-Identifier: MIT */
/* Calls functions of known arguments: by itself so often and then it ends, or, asked for no end,
 * until it is killed. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static __attribute__((noinline)) long add_up(long kind, const char *word)
{
	__asm__ volatile("" : "+r"(kind), "+r"(word) : : "memory");
	return kind + (long)strlen(word);
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 0, sum = 0;

	for (long i = 0; !rounds || i < rounds; i++) {
		sum += add_up(i % 4, i % 2 ? "odd" : "even, and longer than fifteen bytes");
		if (!rounds)
			usleep(1000);
	}
	return sum == 1;
}
