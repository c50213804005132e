/* SPDX-License-Identifier: MIT */
/*
 * Random programs that access memory whose size is passed: those of ../sound, with accesses to the
 * region at rsi among them, each behind some comparison of an index with the size, which r14 holds.
 * Mostly the comparison is another than the access would need.
 */
#include <stdlib.h>
#include <string.h>

#include "watch.h"

static const char *const wide_names[] = { "rax", "r8", "r9", "r10", "rbp", "r14" };
static const char *const low_names[] = { "eax", "r8d", "r9d", "r10d", "ebp", "r14d" };
enum { SIZE = 5 };

static const char *any_condition(void)
{
	static const char *const cc[] = { "a", "ae", "b", "be", "g", "ge", "l", "le",
					  "e", "ne", "s", "ns", "a", "ae", "b", "be" };

	return cc[program_pick(16)];
}

static int small(void)
{
	static const int8_t few[] = { 0, 1, 2, 4, 7, 8, 9, 15, 16, 64, -1, -8 };

	return few[program_pick(12)];
}

/* An index in register p, of the event or as it is. */
static void make_index(FILE *f, unsigned p)
{
	switch (program_pick(4)) {
	case 0: fprintf(f, "\tmovzbl %u(%%rdi), %%%s\n", program_pick(48), low_names[p]); break;
	case 1: fprintf(f, "\tmov %u(%%rdi), %%%s\n", 8 * program_pick(6), wide_names[p]); break;
	case 2: fprintf(f, "\tmov %u(%%rdi), %%%s\n", 8 * program_pick(6), low_names[p]); break;
	default: break;
	}
}

/* The end of the region as a pointer, and one into it. */
static void compare_pointers(FILE *f, unsigned p, unsigned q, unsigned label)
{
	fprintf(f, "\tlea (%%rsi,%%r14), %%%s\n\tlea %d(%%rsi,%%%s), %%r12\n", wide_names[q],
		small(), wide_names[p]);
	fprintf(f, "\tcmp %%r12, %%%s\n\tj%s %uf\n\tmovb %d(%%rsi,%%%s), %%al\n", wide_names[q],
		any_condition(), label, small() - 8, wide_names[p]);
	fprintf(f, "\tmovb -1(%%r12), %%cl\n%u:\txor %%r12d, %%r12d\n", label);
}

/* Compares index p, or something of it and the size in q, at 64 or 32 bits. */
static void compare_size(FILE *f, unsigned p, unsigned q, int x, unsigned label)
{
	const char *const *r = program_pick(4) ? wide_names : low_names;

	switch (program_pick(7)) {
	case 0:
		fprintf(f, "\tlea %d(%%r14), %%%s\n\tcmp %%%s, %%%s\n", -x, wide_names[q], r[q],
			r[p]);
		break;
	case 1:
		fprintf(f, "\tlea %d(%%%s), %%%s\n\tcmp %%%s, %%%s\n", x, wide_names[p],
			wide_names[q], r[SIZE], r[q]);
		break;
	case 2:
		fprintf(f, "\tmov %%r14, %%%s\n\tsub $%d, %%%s\n\tj%s %uf\n\tcmp %%%s, %%%s\n",
			wide_names[q], x, r[q], any_condition(), label, r[q], r[p]);
		break;
	case 3:
		fprintf(f, "\tmov %%r14, %%%s\n\tsub %%%s, %%%s\n\tj%s %uf\n\tcmp $%d, %%%s\n",
			wide_names[q], r[p], r[q], any_condition(), label, x, r[q]);
		break;
	case 4:
		fprintf(f, "\tcmp %%%s, %%%s\n\tcmov%s %%%s, %%%s\n\tcmp %%%s, %%%s\n", r[SIZE],
			r[p], any_condition(), r[SIZE], r[p], r[SIZE], r[p]);
		break;
	case 5:
		fprintf(f, "\tcmp $%d, %%%s\n\tj%s %uf\n\ttest %%%s, %%%s\n", x, r[SIZE],
			any_condition(), label, r[p], r[p]);
		break;
	default:
		fprintf(f, "\tcmp %%%s, %%%s\n", r[program_pick(2) ? SIZE : p],
			r[program_pick(2) ? SIZE : p]);
	}
}

static void access_item(FILE *f, unsigned label)
{
	unsigned p = program_pick(5), q = (p + 1 + program_pick(4)) % 5;
	int x = small(), y = program_pick(4) ? x : small();

	make_index(f, p);
	if (!program_pick(8)) {
		compare_pointers(f, p, q, label);
		return;
	}
	compare_size(f, p, q, x, label);
	fprintf(f, "\tj%s %uf\n", any_condition(), label);
	if (!program_pick(3))
		fprintf(f, "\tneg %%%s\n", wide_names[p]);
	if (!program_pick(6))
		fprintf(f, "\t%s $%d, %%%s\n", program_pick(2) ? "add" : "sub", y, low_names[p]);
	y = program_pick(2) ? 0 : program_pick(2) ? y : -y;
	if (program_pick(3))
		fprintf(f, "\tmovb %d(%%rsi,%%%s), %%al\n", y, wide_names[p]);
	else
		fprintf(f, "\tmov %d(%%rsi,%%%s), %%%s\n", y,
			wide_names[program_pick(2) ? p : SIZE], wide_names[q]);
	fprintf(f, "%u:\n", label);
}

/* What is made of the size beside. */
static void size_item(FILE *f)
{
	unsigned p = program_pick(5);

	switch (program_pick(6)) {
	case 0: fprintf(f, "\tmov %%r14, %%%s\n", wide_names[p]); break;
	case 1: fprintf(f, "\tmov %%r14d, %%%s\n", low_names[p]); break;
	case 2: fprintf(f, "\tlea %d(%%r14), %%%s\n", small(), wide_names[p]); break;
	case 3: fprintf(f, "\tsub %%r14, %%%s\n", wide_names[p]); break;
	case 4: fprintf(f, "\tshr $%u, %%%s\n", program_pick(5), wide_names[p]); break;
	default: fprintf(f, "\tand $%d, %%%s\n", 1 << program_pick(12), wide_names[p]);
	}
}

/* Lines that belong together with the next one, or end the program. */
static bool together(const char *line)
{
	return strstr(line, "cqo") || strstr(line, "cltd") || strstr(line, "pop") ||
	       strstr(line, "add $32, %rsp");
}

void sized_program(FILE *f, unsigned number)
{
	unsigned label = 9000; /* beyond those of ../sound */
	char *text = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);
	bool begun = false;

	if (!to)
		abort();
	program_write(to, number);
	fclose(to);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		if (!begun && strstr(line, "sub $32, %rsp")) {
			fprintf(f, "\tmov %%rcx, %%r14\n");
			begun = true;
		}
		fprintf(f, "%s\n", line);
		if (!begun || together(line) || program_pick(4))
			continue;
		if (program_pick(3))
			access_item(f, label++);
		else
			size_item(f);
	}
	free(text);
}
