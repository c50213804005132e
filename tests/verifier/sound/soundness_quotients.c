/* SPDX-License-Identifier: MIT */
/*
 * Remainders by multiplication, with other steps between and numbers that may be wrong, as programs
 * of test_soundness: what the analysis says of each result must hold. On rax, rcx, r8 and rdx; r9
 * is the multiplier.
 */
#include "soundness_programs.h"

enum { A, X, COPY, D, MULTIPLIER, REGS };
static const char *const names[4][REGS] = {
	{ "al", "cl", "r8b", "dl", "r9b" },
	{ "ax", "cx", "r8w", "dx", "r9w" },
	{ "eax", "ecx", "r8d", "edx", "r9d" },
	{ "rax", "rcx", "r8", "rdx", "r9" },
};
static const char suffixes[] = "bwlq";

/* A multiplier for division by `divisor` at `width` bits, right or nearly, and its shift. */
static uint64_t multiplier_for(unsigned divisor, unsigned width, unsigned *shift)
{
	unsigned __int128 m;

	for (*shift = 0; 1u << *shift < divisor;)
		++*shift;
	m = (((unsigned __int128)1 << (width + *shift)) + divisor - 1) / divisor;
	if (m >> width) { /* a bit too many */
		m = program_pick(2) ? m / 2 : m;
		*shift -= program_pick(8) != 0;
	}
	return (uint64_t)m + (program_pick(6) ? 0 : program_pick(5) - 2);
}

/* What quotients are made of, in any order; w: 2 for 32 bits, 3 for 64. */
static void step(FILE *f, unsigned divisor, unsigned w)
{
	unsigned i = program_pick(4), k = program_pick(4), width = program_pick(6) ? w : 5 - w;
	const char *a = names[width][i], *b = names[width][k];
	char s = suffixes[width];

	switch (program_pick(14)) {
	case 0:
	case 1: fprintf(f, "\tmov%c %%%s, %%%s\n", s, a, b); break;
	case 2: fprintf(f, "\tshr%c $%u, %%%s\n", s, program_pick(5), a); break;
	case 3:
		fprintf(f, "\timul%c $%d, %%%s, %%%s\n", s,
			program_pick(2) ? (int)divisor : -(int)divisor, a, b);
		break;
	case 4:
	case 5: fprintf(f, "\t%s%c %%%s, %%%s\n", program_pick(3) ? "sub" : "add", s, a, b); break;
	case 6:
		fprintf(f, "\tlea%c (%%%s,%%%s,%u), %%%s\n", s, names[3][i], names[3][k],
			1u << program_pick(4), names[width][program_pick(4)]);
		break;
	case 7:
		fprintf(f, "\tand%c $%d, %%%s\n", s,
			program_pick(2) ? -(1 << program_pick(5)) : (1 << program_pick(17)) - 1, a);
		break;
	case 8: fprintf(f, "\tshl%c $%u, %%%s\n", s, program_pick(5), a); break;
	case 9:
		fprintf(f, "\t%s%c %%%s\n",
			(const char *[]){ "neg", "not", "sar", "inc" }[program_pick(4)], s, a);
		break;
	case 10:
		fprintf(f, "\tmovz%cl %%%s, %%%s\n", suffixes[width & 1], names[width & 1][i],
			names[2][k]);
		break;
	case 11:
		fprintf(f, "\t%s%c $%d, %%%s\n", program_pick(2) ? "add" : "sub", s,
			(int)program_pick(9) - 4, a);
		break;
	case 12: fprintf(f, "\timul %%r9, %%%s\n", names[3][i]); break;
	default: fprintf(f, "\tmul%c %%%s\n", s, names[width][MULTIPLIER]);
	}
}

/* rax := rax * multiplier >> width + shift, r8 the number. */
static void divide(FILE *f, unsigned w, unsigned shift)
{
	const char *const *n = names[w];
	char s = suffixes[w];

	fputs(w == 3 ? "\tmul %r9\n\tmov %rdx, %rax\n" : "\timul %r9, %rax\n\tshr $32, %rax\n", f);
	if (program_pick(4) == 0) /* ((x - q >> 1) + q) >> shift - 1 */
		fprintf(f, "\tsub%c %%%s, %%%s\n\tshr%c $1, %%%s\n\tadd%c %%%s, %%%s\n", s, n[A],
			n[COPY], s, n[COPY], s, n[COPY], n[A]);
	if (shift)
		fprintf(f, "\tshr%c $%u, %%%s\n", s, shift - (program_pick(8) == 0), n[A]);
}

void program_quotient(FILE *f)
{
	static const unsigned divisors[] = { 3,  5,  6,   7,   10,  12,   14,  24,
					     28, 60, 100, 365, 641, 1000, 3600 };
	unsigned divisor = divisors[program_pick(15)], w = 2 + program_pick(2), shift,
		 before = program_pick(3) ? 0 : (unsigned)__builtin_ctz(divisor);
	uint64_t multiplier = multiplier_for(divisor >> before, w == 3 ? 64 : 32, &shift);
	unsigned one_in = 3 + program_pick(12);
	const char *const *n = names[w];
	char s = suffixes[w];

	fprintf(f, "\tmov%c %u(%%rdi), %%%s\n", s, 8 * program_pick(6), n[X]);
	if (program_pick(3) == 0)
		fprintf(f, "\tshr%c $%u, %%%s\n", s, program_pick(w == 3 ? 64 : 32), n[X]);
	fprintf(f, "\tmovabs $%lld, %%r9\n\tmov%c %%%s, %%%s\n\tmov%c %%%s, %%%s\n",
		(long long)multiplier, s, n[X], n[A], s, n[X], n[COPY]);
	for (unsigned part = 0; part < 4; part++) {
		if (program_pick(one_in) == 0)
			step(f, divisor, w);
		if (part == 0 && before)
			fprintf(f, "\tshr%c $%u, %%%s\n", s, before, n[A]);
		else if (part == 1)
			divide(f, w, shift);
		else if (part == 2)
			fprintf(f, "\timul%c $%u, %%%s, %%%s\n", s,
				program_pick(12) ? divisor : divisor + 1, n[A], n[A]);
		else if (part == 3)
			fprintf(f, "\tsub%c %%%s, %%%s\n", s, n[A], n[X]);
	}
}
