/* SPDX-License-Identifier: MIT */
/*
 * Variables at lines where the compiler has kept none of them: what a call began with is known by
 * that alone, others are computed. Each is beside the truth, in a global variable. Within the first
 * six calls it says `waits` and reads how many rounds to do: who traces it meanwhile finds them
 * under way.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

long level, expected;
static volatile long sink;
static long rounds = -1;

static void read_rounds(void)
{
	char line[32];
	puts("waits");
	fflush(stdout);
	rounds = fgets(line, sizeof(line), stdin) ? atol(line) : 0;
}

__attribute__((noipa)) static long take(long number)
{
	sink += number;
	return number;
}

__attribute__((noipa)) static void deep(long given, long left)
{
	level = given;
	take(given);
	if (left)
		deep(given + 1, left - 1);
	else if (rounds < 0)
		read_rounds();
	sink ^= 5; /* what it was given is in no register */
	level--;
}

__attribute__((noipa)) static long compute(const long *numbers, long factor, unsigned bits)
{
	long first = numbers[0] * 3 + factor, masked = (bits >> 3) & 5;
	expected = numbers[0] * 3 + factor;
	take(factor);
	sink ^= 6; /* computed */
	return first + masked;
}

static void at_signal(int number)
{
	long outer = level;
	(void)number;
	deep(1000000, 3);
	level = outer;
}

int main(void)
{
	struct itimerval often = { { 0, 1000 }, { 0, 1000 } }, never = { { 0, 0 }, { 0, 0 } };
	deep(100, 5);
	long numbers[2] = { 7, 8 };
	for (long i = 0; i < 5; i++)
		numbers[0] += compute(numbers, i, (unsigned)i * 77);
	signal(SIGALRM, at_signal);
	setitimer(ITIMER_REAL, &often, NULL);
	for (long i = 0; i < rounds; i++)
		deep(200, 40);
	setitimer(ITIMER_REAL, &never, NULL);
	deep(5000, 3000); /* deeper than there is room */
	printf("%ld\n", numbers[0]);
	return 0;
}
