/* SPDX-License-Identifier: MIT */
/* Lines, copies of functions and variables whose counts and values the compiler's own coverage, a
 * debugger and the program know. Reads how many rounds to run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct item {
	long size;
	const char *name;
	int kind;
};

enum { ITEMS = 5 };
int lines_step = 3;
static long total;
static unsigned char seen[64];

static inline long twice(long number)
{
	long doubled = number * 2;
	total += doubled;
	return doubled;
}

static inline int is_even(int number)
{
	return number % 2 == 0;
}

__attribute__((noinline)) long lines_sum(const struct item *items, int count)
{
	long result = 0;
	for (int i = 0; i < count; i++) {
		if (items[i].kind == 1)
			result += twice(items[i].size);
		else if (items[i].kind == 2)
			result ^= 0x55;
		else
			result -= items[i].size;
		seen[items[i].size & 63]++;
	}
	return result;
}

__attribute__((noinline)) int lines_search(const char *text, char wanted)
{
	int at = 0;
	while (text[at]) {
		if (text[at] == wanted)
			return at;
		at++;
	}
	return -1;
}

__attribute__((noinline)) unsigned lines_mix(unsigned a, unsigned b)
{
	unsigned rounds = 0;
	while (a != b && rounds < 100) {
		if (a > b)
			a -= b;
		else
			b -= a;
		rounds++;
	}
	if (is_even((int)rounds))
		total++;
	switch (rounds % 4) {
	case 0: total += 5; break;
	case 1: total ^= 9; break;
	default: total -= rounds;
	}
	return rounds;
}

__attribute__((noinline)) long lines_recurse(long n)
{
	if (n < 2)
		return n;
	return lines_recurse(n - 1) + lines_recurse(n - 2);
}

/* Called by its address, and inlined. */
long lines_both(long number, int times)
{
	total ^= number;
	return number * times + lines_step;
}
static long (*volatile called)(long, int) = lines_both;

int main(void)
{
	struct item items[ITEMS] = { { 10, "ten", 1 },
				     { 20, "twenty", 0 },
				     { 30, "thirty", 1 },
				     { 41, "forty-one", 2 },
				     { 52, "fifty-two", 1 } };
	int rounds = 0;
	long value = 0;
	printf("ready\n");
	fflush(stdout);
	if (scanf("%d", &rounds) != 1)
		return 1;
	for (int i = 0; i < rounds; i++) {
		value += lines_sum(items, ITEMS);
		value += lines_search(items[i % ITEMS].name, 'y');
		value += lines_mix((unsigned)i + 1, 12);
		value += lines_both(i, 7);
		if (i % 3 == 0)
			value += called(i + 1000, 2);
		if (is_even(i))
			value += lines_recurse(i % 7);
	}
	value += twice(value);
	printf("%ld %ld %d\n", value, total, seen[10]);
	return 0;
}
