/* SPDX-License-Identifier: MIT */
/* Images of any size in seven shapes, from assembly. */
#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "verify_shapes.h"

extern char **environ;

void die(const char *what, const char *name)
{
	fprintf(stderr, "verify_speed: %s: %s\n", name, what);
	exit(1);
}

static unsigned straight_unit(FILE *out, unsigned unit)
{
	fprintf(out,
		"\tmov %u(%%rdi), %%rax\n\tlea %u(%%rax,%%rax,2), %%rcx\n\tshr $%u, %%rcx\n\txor "
		"%%rcx, %%rax\n\tmov %%eax, %%r8d\n"
		"\timul $%u, %%r8, %%r9\n\tadd %%r9, %u(%%rsi)\n\tmovzbl %%r9b, %%r10d\n\tsub "
		"%%r10, %%r9\n\tmov %%r9, %u(%%rsi)\n",
		unit % 11 * 8, unit % 97, 1 + unit % 31, 3 + unit % 1000, unit % 8 * 8,
		64 + unit % 24 * 8);
	return 10;
}

static unsigned branch_unit(FILE *out, unsigned unit)
{
	fprintf(out,
		"\tmov %u(%%rdi), %%rax\n\tcmp $%u, %%rax\n\tjae 1f\n\tincq (%%rsi,%%rax,8)\n\tjmp "
		"2f\n1:\tmov $%u, %%eax\n\ttest $%u, %%ecx\n"
		"\tje 2f\n\tincq %u(%%rsi)\n2:\tmov %%eax, %%ecx\n",
		unit % 11 * 8, 1 + unit % 31, unit % 1000, 1u << unit % 16, unit % 32 * 8);
	return 10;
}

static unsigned loop_unit(FILE *out, unsigned unit)
{
	fprintf(out,
		"\txor %%eax, %%eax\n\txor %%ecx, %%ecx\n1:\tadd (%%rsi,%%rax,8), %%rcx\n\tinc "
		"%%rax\n\tcmp $%u, %%rax\n\tjne 1b\n"
		"\tmov %%rcx, %u(%%rsi)\n\tmov %u(%%rdi), %%r8\n\tand $31, %%r8d\n\tadd %%rcx, "
		"(%%rsi,%%r8,8)\n",
		4 + unit % 28, unit % 32 * 8, unit % 11 * 8);
	return 10;
}

static unsigned call_unit(FILE *out, unsigned unit)
{
	fprintf(out, "\tmov %u(%%rdi), %%rcx\n\tcall f%u\n\tadd %%rax, %u(%%rsi)\n", unit % 11 * 8,
		unit / 2, unit % 32 * 8);
	return unit % 2 ? 3 : 14; /* every second one calls a function anew */
}

static void call_after(FILE *out, unsigned units)
{
	for (unsigned i = 0; i < (units + 1) / 2; i++)
		fprintf(out,
			"f%u:\tpush %%rbx\n\tmov %%rcx, %%rbx\n\tshr $%u, %%rbx\n\tand $15, "
			"%%ecx\n\tmov (%%rsi,%%rcx,8), %%rax\n\tadd %%rbx, %%rax\n"
			"\tcmp $%u, %%rax\n\tjbe 1f\n\txor %%eax, %%eax\n1:\tpop %%rbx\n\tret\n",
			i, 1 + i % 60, i + 100);
}

static unsigned mix_unit(FILE *out, unsigned unit)
{
	switch (unit % 5) {
	case 0: /* a size class counted, with a spill */
		fprintf(out,
			"\tmov 16(%%rdi), %%rax\n\tmov %%rax, 8(%%rsp)\n\ttest %%rax, %%rax\n\tje "
			"1f\n\tbsr %%rax, %%rcx\n\tcmp $31, %%ecx\n\tja 1f\n"
			"\tincq (%%rsi,%%rcx,8)\n1:\tmov 8(%%rsp), %%rax\n\tadd %%rax, %u(%%rsi)\n",
			unit % 32 * 8);
		return 10;
	case 1: /* a hash, its slot, minimum and maximum */
		fprintf(out,
			"\tmov %u(%%rdi), %%rax\n\tmovabs $0x9e3779b97f4a7c15, %%rcx\n\timul "
			"%%rcx, %%rax\n\tshr $60, %%rax\n\tmov (%%rsi,%%rax,8), %%rdx\n"
			"\tcmp %%rdx, %%r9\n\tcmovb %%r9, %%rdx\n\tmov %%rdx, "
			"(%%rsi,%%rax,8)\n\tlea (%%rax,%%rdx), %%r9\n\tneg %%r9\n",
			unit % 11 * 8);
		return 10;
	case 2: /* a short scan */
		fprintf(out,
			"\tlea 8(%%rsi), %%rax\n\tlea %u(%%rsi), %%rcx\n\txor %%edx, "
			"%%edx\n1:\tcmp (%%rax), %%r9\n\tje 2f\n\tadd $8, %%rax\n\tinc %%edx\n"
			"\tcmp %%rcx, %%rax\n\tjne 1b\n2:\tmov %%rdx, 16(%%rsp)\n",
			16 + unit % 24 * 8);
		return 10;
	case 3: /* a bounded field, as a switch tests it */
		fprintf(out,
			"\tmov %u(%%rdi), %%eax\n\tcmp $3, %%eax\n\tje 1f\n\tjb 2f\n\tcmp $9, "
			"%%eax\n\tjne 3f\n1:\tincq 24(%%rsi)\n\tjmp 3f\n2:\tincq "
			"32(%%rsi)\n3:\tmov %%eax, %%r9d\n",
			unit % 11 * 8);
		return 10;
	default: /* target memory */
		fprintf(out,
			"\tmov %%rdi, %%rbx\n\tmov %%rsi, %%rbp\n\tlea 24(%%rsp), %%rdi\n\tmov $8, "
			"%%esi\n\tmov 8(%%rbx), %%rdx\n\tTRY_READ\n\tmov %%rbx, %%rdi\n"
			"\tmov %%rbp, %%rsi\n\tmov 24(%%rsp), %%r9\n\tmov %%r9, %u(%%rsi)\n",
			unit % 32 * 8);
		return 10;
	}
}

/* A walk to an end that varies: what the pointer may be follows from what it is to the end. */
static unsigned related_unit(FILE *out, unsigned unit)
{
	fprintf(out,
		"\tmov %u(%%rdi), %%eax\n\tand $%u, %%eax\n\tlea (%%rsi,%%rax), %%rcx\n\tmov "
		"%%rsi, %%rdx\n1:\tcmp %%rcx, %%rdx\n\tje 2f\n\tincb (%%rdx)\n"
		"\tinc %%rdx\n\tjmp 1b\n2:\tmov %%eax, %%r9d\n",
		unit % 11 * 8, 7 + unit % 16 * 8);
	return 10;
}

/* The longest earlier match at each place of a window, as compressors look for it: three loops, one
 * within the other, each with ways out in between. */
static unsigned nest_unit(FILE *out, unsigned unit)
{
	fprintf(out,
		"\txor %%eax, %%eax\n1:\txor %%r10d, %%r10d\n\txor %%ecx, %%ecx\n\ttest %%eax, "
		"%%eax\n\tje 7f\n"
		"2:\txor %%edx, %%edx\n3:\tlea (%%rax,%%rdx), %%r8d\n\tcmp $%u, %%r8d\n\tjae "
		"5f\n\tlea (%%rcx,%%rdx), %%r11d\n\tmovzbl (%%rsi,%%r11), %%r12d\n"
		"\tcmp %%r12b, (%%rsi,%%r8)\n\tjne 5f\n\tinc %%edx\n\tcmp $15, %%edx\n\tjb 3b\n",
		48 + unit % 16 * 8);
	fprintf(out,
		"5:\tcmp %%r10d, %%edx\n\tcmova %%edx, %%r10d\n\tinc %%ecx\n\tcmp %%eax, "
		"%%ecx\n\tjb 2b\n"
		"\tcmp $3, %%r10d\n\tjb 7f\n\tincq %u(%%rsi)\n\tadd %%r10d, %%eax\n\tjmp "
		"8f\n7:\tincq %u(%%rsi)\n\tinc %%eax\n8:\tcmp $%u, %%eax\n\tjb 1b\n"
		"\tmov %%eax, %%r9d\n",
		unit % 24 * 8, 8 + unit % 24 * 8, 48 + unit % 16 * 8);
	return 31;
}

const struct shape shapes[] = {
	{ "straight", straight_unit, NULL }, { "branches", branch_unit, NULL },
	{ "loops", loop_unit, NULL },        { "calls", call_unit, call_after },
	{ "mix", mix_unit, NULL },           { "related", related_unit, NULL },
	{ "nests", nest_unit, NULL },
};

const unsigned shape_count = sizeof(shapes) / sizeof(*shapes);

static void run_command(const char *const *argv)
{
	pid_t pid;
	int status;

	if (posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)argv, environ) != 0 ||
	    waitpid(pid, &status, 0) != pid || status != 0)
		die("failed", argv[0]);
}

void make_image(const char *prologue, const char *directory, const struct shape *shape,
		unsigned instructions, char *image, size_t image_size)
{
	char source[512], object[512];
	unsigned units = 0, made = 14;
	FILE *out;

	snprintf(source, sizeof(source), "%s/%s-%u.s", directory, shape->name, instructions);
	snprintf(object, sizeof(object), "%s/%s-%u.o", directory, shape->name, instructions);
	snprintf(image, image_size, "%s/%s-%u.fay", directory, shape->name, instructions);
	out = fopen(source, "w");
	if (!out)
		die(strerror(errno), source);
	fprintf(out,
		"\t.include \"%s\"\n\tpush %%rbx\n\tpush %%rbp\n\tpush %%r12\n\tsub $48, "
		"%%rsp\n\tmov (%%rdi), %%r9\n\txor %%ecx, %%ecx\n"
		"\tmovq $0, 8(%%rsp)\n\tmovq $0, 16(%%rsp)\n\tmovq $0, 24(%%rsp)\n",
		prologue);
	while (made + 10 <= instructions)
		made += shape->unit(out, units++);
	fprintf(out, "\tadd $48, %%rsp\n\tpop %%r12\n\tpop %%rbp\n\tpop %%rbx\n\tret\n");
	if (shape->after)
		shape->after(out, units);
	fprintf(out, "\tTABLES\n");
	if (fclose(out))
		die(strerror(errno), source);
	run_command((const char *const[]){ "as", "--defsym", "LOCAL=256", "--defsym", "GLOBAL=0",
					   "-o", object, source, NULL });
	run_command((const char *const[]){ "ld", "-shared", "-nostdlib", "-z", "now", "-z",
					   "noexecstack", "--build-id=none", "-o", image, object,
					   NULL });
}
