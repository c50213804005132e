/* SPDX-License-Identifier: MIT */
/*
 * Shared by the C and C++ programs of foreign_*.sh:
 *
 *     PROGRAM SCENARIO [loop]
 *
 * says "ready" and waits for a line; does ROUNDS rounds of the scenario, with "loop" as many as
 * there is time for until the next line. Each round comes to the same sum, which is checked. The
 * last lines are "sum SUM" and, if known, "tally ENTRIES RETURNS EXCEPTIONS" of all calls of
 * traced_*.
 */
#ifndef FOREIGN_H
#define FOREIGN_H

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __cplusplus
#define TRACED extern "C" __attribute__((noinline, noclone, used))
#else
#define TRACED __attribute__((noinline, noclone, used))
#endif
#define CLOBBER __asm__ volatile("" ::: "memory")

enum { ROUNDS = 20 };
static long entries, returns, exceptions;

static inline void tally(long e, long r, long x)
{
	__atomic_fetch_add(&entries, e, __ATOMIC_RELAXED);
	__atomic_fetch_add(&returns, r, __ATOMIC_RELAXED);
	__atomic_fetch_add(&exceptions, x, __ATOMIC_RELAXED);
}

static inline void expect(int condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "wrong: %s\n", what);
	_exit(70);
}

struct scenario {
	const char *name;
	long (*round)(void);
};

static inline int has_line(void)
{
	struct pollfd in = { 0, POLLIN, 0 };

	return poll(&in, 1, 0) == 1;
}

static inline int run_scenario(int argc, char **argv, const struct scenario *all, int count)
{
	int loop = argc > 2 && !strcmp(argv[2], "loop");
	char line[8];

	for (int i = 0; i < count; i++) {
		if (argc < 2 || strcmp(all[i].name, argv[1]))
			continue;
		puts("ready");
		fflush(stdout);
		expect(read(0, line, sizeof(line)) > 0, "no line");
		long sum = all[i].round();
		for (long r = 1; loop ? !has_line() : r < ROUNDS; r++)
			expect(all[i].round() == sum, "a round's sum");
		printf("sum %ld\n", sum);
		if (entries)
			printf("tally %ld %ld %ld\n", entries, returns, exceptions);
		fflush(stdout);
		return 0;
	}
	fprintf(stderr, "no such scenario\n");
	return 2;
}

#define SCENARIOS(...)                                                                             \
	int main(int argc, char **argv)                                                            \
	{                                                                                          \
		static const struct scenario all[] = { __VA_ARGS__ };                              \
		return run_scenario(argc, argv, all, sizeof(all) / sizeof(all[0]));                \
	}

#endif
