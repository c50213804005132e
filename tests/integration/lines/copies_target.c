/* SPDX-License-Identifier: MIT */
/* Lines and copies of which gcc has made more than the source has: a macro of several statements,
 * a copy that is a loop's condition, a function whose first part is inlined alone, and one of which
 * there is a clone only. */
#include <stdio.h>
#include <stdlib.h>

struct pair {
	long *first, *second;
};

#define SWAP(pair)                                                                                 \
	{                                                                                          \
		long *old = (pair)->first;                                                         \
		if (!old)                                                                          \
			abort();                                                                   \
		(pair)->first = (pair)->second;                                                    \
		(pair)->second = old;                                                              \
	}

static long left, taken, odd;

static int take(long *number)
{
	if (!left)
		return 0;
	*number = left--;
	return 1;
}

__attribute__((noinline)) long copies_drain(long count)
{
	long number, sum = 0;
	left = count;
	while (take(&number)) {
		sum += number ^ taken;
		taken++;
	}
	return sum;
}

__attribute__((noinline)) void copies_swap(struct pair *pair)
{
	SWAP(pair);
}

static __attribute__((noinline)) long scaled(long number, long by, struct pair *unused)
{
	odd += number & 1;
	return number * by + odd;
}

int main(void)
{
	long one = 1, two = 2, sum = 0;
	struct pair pair = { &one, &two };
	for (int i = 0; i < 100; i++) {
		copies_swap(&pair);
		sum += copies_drain(i % 4);
		sum += scaled(i, 7, &pair);
	}
	printf("%ld %ld %ld\n", sum, taken, *pair.first);
	return 0;
}
