/* SPDX-License-Identifier: MIT */
/* Functions that test_extend.c calls natively, and queries call by `extend`. Nothing here is undefined, so both must agree. */
#include <stdbool.h>
#include <stdint.h>

enum colour { RED, GREEN = 7, BLUE = 1000000 };

long mix(long a, unsigned long b);
int scale(int x, unsigned y);
signed char narrow(short a, unsigned char b);
unsigned short wide(char a, unsigned short b);
bool is_odd(int64_t x);
unsigned chosen(bool which, unsigned a, int b);
uint64_t hash(const char *s, uint32_t seed);
int length(char *s);
enum colour colour_of(unsigned x);
int of_colour(enum colour c);
long looked_up(long x);
unsigned digits(uint64_t x);
uint64_t large(uint64_t x, uint64_t y);
long six(long a, int b, short c, char d, bool e, unsigned f);

static const int table[10] = {31, -7, 12, 0, 5, -2000000000, 9, 1, 77, 4};

long mix(long a, unsigned long b)
{
	unsigned long x = (unsigned long)a * 0x9e3779b97f4a7c15u ^ b >> 3;
	return (long)(b ? x / b + (x << 7) : x);
}

int scale(int x, unsigned y)
{
	return x < 0 ? (int)((unsigned)x * 3u + y) : (int)(y / 7u);
}

signed char narrow(short a, unsigned char b)
{
	return (signed char)(a / 3 + b);
}

unsigned short wide(char a, unsigned short b)
{
	return (unsigned short)(a * 5 - b);
}

bool is_odd(int64_t x)
{
	return x & 1;
}

unsigned chosen(bool which, unsigned a, int b)
{
	return which ? a : (unsigned)b;
}

uint64_t hash(const char *s, uint32_t seed)
{
	uint64_t h = seed;
	for (int i = 0; i < 16 && s[i]; i++)
		h = (h ^ (unsigned char)s[i]) * 0x100000001b3u;
	return h;
}

int length(char *s)
{
	int n = 0;
	while (n < 16 && s[n])
		n++;
	return n;
}

enum colour colour_of(unsigned x)
{
	return x % 3 == 0 ? RED : x % 3 == 1 ? GREEN : BLUE;
}

int of_colour(enum colour c)
{
	return c == GREEN ? -1 : (int)c;
}

long looked_up(long x)
{
	return table[(unsigned long)x % 10];
}

unsigned digits(uint64_t x)
{
	unsigned n = 0;
	for (int i = 0; i < 20 && x; i++, n++)
		x /= 10;
	return n;
}

static uint64_t round_of(uint64_t x, unsigned n)
{
	x ^= x >> 31 ^ n;
	x *= 0xbf58476d1ce4e5b9u + n;
	return x << (n & 31) | x >> (63 - (n & 31));
}

/* More than is worth having twice. */
uint64_t large(uint64_t x, uint64_t y)
{
	x = round_of(round_of(round_of(round_of(x ^ y, 1), 2), 3), 4) + y;
	y = round_of(round_of(round_of(round_of(y * x, 5), 6), 7), 8) ^ x;
	x = round_of(round_of(round_of(round_of(x - y, 9), 10), 11), 12) + y;
	y = round_of(round_of(round_of(round_of(y + x, 13), 14), 15), 16) ^ x;
	x = round_of(round_of(round_of(round_of(x ^ y, 17), 18), 19), 20) + y;
	return x ^ round_of(round_of(round_of(round_of(y, 21), 22), 23), 24);
}

long six(long a, int b, short c, char d, bool e, unsigned f)
{
	return e ? (long)((unsigned long)a + (unsigned long)(long)b) : (long)c - d + f;
}
