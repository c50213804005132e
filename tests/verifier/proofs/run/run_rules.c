/* SPDX-License-Identifier: MIT */
/*
 * Runs the statements of rules/ with numbers, on the checker's functions as they are compiled:
 * with all small numbers, and with many of all sizes. What the solver cannot decide is shown so;
 * and a statement that is false by its own mistake, or of nothing, is found.
 *
 * run_rules [--ms N] [--only PART]...   N: for each rule and each of the two
 */
#include "../rules/rule.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { DIGITS = 128 };

static struct {
	uint32_t value, count;
} digit[DIGITS];
static unsigned digits, at;
static unsigned small; /* numbers in [-small, small]; 0: of all sizes */
static uint64_t seed;
static jmp_buf out;
static struct {
	const char *name;
	wide n;
} input[DIGITS];
static unsigned inputs;

static uint64_t random64(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed * 0x2545f4914f6cdd1d;
}

static void note(const char *name, wide n)
{
	if (inputs < DIGITS) {
		input[inputs].name = name;
		input[inputs++].n = n;
	}
}

/* Small: every number below n in turn. */
static uint32_t next_digit(uint32_t n)
{
	if (!small)
		return (uint32_t)(random64() % n);
	if (at == DIGITS) {
		printf("too many inputs\n");
		exit(2);
	}
	if (at == digits) {
		digit[digits].value = 0;
		digit[digits++].count = n;
	}
	return digit[at++].value;
}

static int64_t small_number(void)
{
	uint32_t d = next_digit(2 * small + 1);

	return d & 1 ? -(int64_t)(d / 2) - 1 : (int64_t)(d / 2);
}

/* Often near a power of two, or small. */
static uint64_t number64(void)
{
	uint64_t n = random64() >> random64() % 64;

	switch (random64() % 4) {
	case 0: n = ((uint64_t)1 << random64() % 64) + random64() % 5 - 2; break;
	case 1: n = random64() % 9 - 4; break;
	default: break;
	}
	return random64() % 2 ? n : -n;
}

uint64_t any64(const char *name)
{
	uint64_t n = small ? (uint64_t)small_number() : number64();

	/* most forms are sums and differences */
	if (!small && !strcmp(name, "k") && random64() % 2)
		n = random64() % 2 ? 1 : UINT64_MAX;
	note(name, (int64_t)n);
	return n;
}

/* Mostly a word: what the wide numbers are of. */
wide any128(const char *name)
{
	wide n = small ? small_number() : (int64_t)number64();

	if (!small)
		n = random64() % 2 ? n : random64() % 8 ? (wide)(uint64_t)n : n << random64() % 63;
	note(name, n);
	return n;
}

unsigned choose(const char *name, unsigned n)
{
	unsigned k = next_digit(n);

	note(name, k);
	return k;
}

void leave(void)
{
	longjmp(out, 1);
}

void prove(bool condition, const char *what)
{
	if (condition)
		return;
	printf("%s is false of", what);
	for (unsigned i = 0; i < inputs; i++) {
		wide n = input[i].n;

		if (n == (int64_t)n)
			printf(" %s=%lld", input[i].name, (long long)n);
		else
			printf(" %s=%lld*2^64+%llu", input[i].name, (long long)(n >> 64),
			       (unsigned long long)n);
	}
	printf("\n");
	longjmp(out, 2);
}

void replace(const char *function, const char *by)
{
}

void opaque_products(void)
{
}

void ordered_products(bool defined)
{
}

bool product_fits(wide a, wide b)
{
	wide r;

	return !__builtin_mul_overflow(a, b, &r);
}

bool symbolic(void)
{
	return false;
}

bool tiny(void)
{
	return small;
}

bool thorough(void)
{
	return true;
}

/* All small numbers: the last digit that can be is counted up. */
static bool next_small(void)
{
	digits = at; /* those behind were not asked for */
	while (digits && ++digit[digits - 1].value >= digit[digits - 1].count)
		digits--;
	return digits > 0;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* 0: it came to its end; 1: an assumption does not hold; 2: false */
static int run_once(const struct rule *rule)
{
	int end;

	at = inputs = 0;
	end = setjmp(out);
	if (!end)
		rule->run();
	return end;
}

/* Whether the rule holds of all it is run with; *done: how often. *whole: of all small ones. */
static bool run_many(const struct rule *rule, double until, uint64_t *done, bool *whole)
{
	digits = 0;
	*whole = false;
	for (uint64_t i = 0; i % 256 || now() < until; i++) {
		int end = run_once(rule);

		if (end == 2)
			return false;
		*done += !end;
		if (small && !next_small()) {
			*whole = true;
			return true;
		}
	}
	return true;
}

static bool run_rule(const struct rule *rule, double ms)
{
	double until = now() + ms;
	uint64_t all = 0, some = 0;
	unsigned most = 0;
	bool whole;

	printf("%-28s ", rule->name);
	fflush(stdout);
	for (small = 1; now() < until; small++) {
		uint64_t n = 0;

		if (!run_many(rule, until, &n, &whole))
			return false;
		if (!whole) { /* some of them */
			all = most ? all : n;
			break;
		}
		all = n;
		most = small;
	}
	small = 0;
	seed = 0x9e3779b97f4a7c15;
	if (!run_many(rule, now() + ms, &some, &whole))
		return false;
	printf("%10llu: ", (unsigned long long)all);
	if (most)
		printf("all in [-%u, %u]", most, most);
	else
		printf("some in [-1, 1]");
	printf(", %10llu of any size\n", (unsigned long long)some);
	if (!all && !some)
		printf("the statement is about nothing\n");
	return all || some;
}

extern const struct rule __start_rules[], __stop_rules[];

int main(int argc, char **argv)
{
	const char *only[64];
	int parts = 0, failed = 0, run = 0;
	double ms = 100;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--ms"))
			ms = atof(argv[i + 1]);
		else if (!strcmp(argv[i], "--only") && parts < 64)
			only[parts++] = argv[i + 1];
		else
			return 2;
	}
	for (const struct rule *rule = __start_rules; rule < __stop_rules; rule++) {
		bool wanted = !parts;

		for (int i = 0; i < parts; i++)
			wanted |= strstr(rule->name, only[i]) != NULL;
		if (!wanted)
			continue;
		failed += !run_rule(rule, ms);
		run++;
	}
	printf("%d passed, %d failed\n", run - failed, failed);
	return failed || !run;
}
