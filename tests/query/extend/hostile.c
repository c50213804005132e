/* SPDX-License-Identifier: MIT */
/* Functions that the verifier, or the compiler before it, must refuse; test_extend.c knows the lines. */
#include <stdint.h>

long endless(long x)
{
	long rounds = 0;
	for (; x != 1; rounds++)
		x = x % 2 ? 3 * x + 1 : x / 2;
	return rounds;
}

long too_long(long x)
{
	uint64_t y = (uint64_t)x;
	for (long i = 0; i < 1000000000000; i++)
		y = (y ^ y >> 7) * 0x9e3779b97f4a7c15u;
	return (long)y;
}

static long calls;
long keeps(long x)
{
	return calls += x;
}

long fay_emit(void *local, uint64_t state, const void *row);
long emits(long x)
{
	return fay_emit(&x, 0, &x);
}

/* A use of the helper in a constant expression, behind an instruction. */
long address(long x)
{
	return x ^ (long)fay_emit;
}

void *malloc(uint64_t size);
long allocates(long x)
{
	return *(long *)malloc((uint64_t)x);
}

long recurses(long x)
{
	return x <= 0 ? 0 : 1 + recurses(x - 1);
}

long assembles(long x)
{
	__asm__("syscall" : "+a"(x));
	return x;
}

/* An index from outside is kept inside the array by a guard: accepted. */
long reads_anywhere(long x)
{
	static const long table[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	return table[x];
}
