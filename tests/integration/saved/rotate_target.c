/* SPDX-License-Identifier: MIT */
/* rotate_target CALLS PAUSE: calls step(stdout, k, 0) for k from 0 on, with so many microseconds
 * between them. */
#include <stdlib.h>
#include <unistd.h>

void step(long unused, long number, long zero);

__attribute__((noinline)) void step(long unused, long number, long zero)
{
	__asm__ volatile("nopl 0(%%rax, %%rax)" : : "r"(unused), "r"(number), "r"(zero) : "memory");
}

int main(int argc, char **argv)
{
	long calls = argc > 1 ? atol(argv[1]) : 1000;
	useconds_t pause = argc > 2 ? (useconds_t)atol(argv[2]) : 0;

	for (long k = 0; k < calls; k++) {
		step(1, k, 0);
		if (pause)
			usleep(pause);
		else if (k % 1000 == 999) /* so that what is handed on is taken over bit by bit */
			usleep(5000);
	}
	return 0;
}
