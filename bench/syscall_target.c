/* SPDX-License-Identifier: MIT */
/* getppid, so many times; prints nanoseconds a call. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	long count = argc > 1 ? atol(argv[1]) : 1000000;
	struct timespec from, to;
	clock_gettime(CLOCK_MONOTONIC, &from);
	for (long i = 0; i < count; i++)
		syscall(SYS_getppid);
	clock_gettime(CLOCK_MONOTONIC, &to);
	double ns = (double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec);
	printf("%.2f\n", ns / (double)count);
	return 0;
}
