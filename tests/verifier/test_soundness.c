/* SPDX-License-Identifier: MIT */
/*
 * Differential test of the analysis: random programs, and for each that the verifier would accept, executions on random inputs by
 * the concrete interpreter. At every instruction the machine must lie within the abstract state: every register and stack slot in its value,
 * every pair with a common name at its distance; no access may fault, no condition read an undefined flag, no path end where the analysis
 * ended it, and the instruction count must not exceed the proved worst case.
 *
 * The solver's encoding is tested the same way: of some values that a register was seen to have at an instruction, the solver is asked
 * to prove that it never has them there. It must not.
 *
 *	test_soundness [PROGRAMS [SEED]]
 *
 * Limits: the interpreter is itself compared with the CPU by test_silicon. Programs use every operation but helpers and calls.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analysis.h"
#include "exec.h"
#include "fixpoint.h"
#include "smt.h"

#define RUNS 40
#define MAX_STEPS 2000 /* of one execution; a longer one is left there */
#define BASE(region) ((uint64_t)((region) + 1) << 40)
#define LOCAL_SIZE 64
#define GLOBAL_SIZE 256

static uint64_t seed;

static uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static unsigned pick(unsigned n) { return (unsigned)(rnd() >> 20) % n; }

/* ---- programs ---- */

#define REGS 7 /* those that programs compute with */
static const char *const names[4][REGS] = {
	{ "al", "cl", "r8b", "r9b", "r10b", "bpl", "dl" },
	{ "ax", "cx", "r8w", "r9w", "r10w", "bp", "dx" },
	{ "eax", "ecx", "r8d", "r9d", "r10d", "ebp", "edx" },
	{ "rax", "rcx", "r8", "r9", "r10", "rbp", "rdx" },
};
static const char suffixes[] = "bwlq";
static int label;

static int64_t constant(unsigned width)
{
	static const int64_t interesting[] = { 0, 1, -1, 2, 7, 8, 15, 16, 63, 64, 100, 127, -128, 255, 1000, -8, 0x7fffffff, -0x7fffffff - 1 };
	int64_t c = pick(3) ? interesting[pick(18)] : (int64_t)(int32_t)rnd();

	if (width == 0)
		return (int8_t)c;
	return width == 1 ? (int16_t)c : c;
}

static const char *reg(unsigned width) { return names[width][pick(REGS)]; }

static const char *condition(void)
{
	static const char *const cc[] = { "o", "no", "b", "ae", "e", "ne", "be", "a", "s", "ns", "l", "ge", "le", "g", "b", "ae", "e", "ne" };

	return cc[pick(18)];
}

static void compare(FILE *f)
{
	unsigned w = pick(8) ? 2 + pick(2) : pick(4);

	switch (pick(4)) {
	case 0: fprintf(f, "\tcmp%c $%lld, %%%s\n", suffixes[w], (long long)constant(w), reg(w)); break;
	case 1: fprintf(f, "\tcmp%c %%%s, %%%s\n", suffixes[w], reg(w), reg(w)); break;
	case 2: fprintf(f, "\ttest%c $%lld, %%%s\n", suffixes[w], (long long)constant(w), reg(w)); break;
	default: { const char *r = reg(w); fprintf(f, "\ttest%c %%%s, %%%s\n", suffixes[w], r, r); }
	}
}

static void item(FILE *f, unsigned depth);

static void items(FILE *f, unsigned n, unsigned depth)
{
	while (n--)
		item(f, depth);
}

/* Loops whose accesses or ends rest on how two values lie to one another: rbx walks beside r13. */
static void paired_loop(FILE *f)
{
	unsigned n = 1 + pick(8), off = pick(8) ? 0 : pick(3), l = (unsigned)label++;

	switch (pick(5)) {
	case 0: /* a pointer up to an end that is not constant */
		fprintf(f, "\tmov %u(%%rdi), %%r13\n\tand $7, %%r13d\n\tje %uf\n\tlea (%%rsi,%%r13,8), %%r13\n\tmov %%rsi, %%rbx\n%u:\n", 8 * pick(6), l, l);
		items(f, pick(3), 2);
		fprintf(f, "\taddq $1, %u(%%rbx)\n\tadd $8, %%rbx\n\tcmp %%%s\n\t%s %ub\n%u:\n", 8 * off, pick(2) ? "r13, %rbx" : "rbx, %r13",
			pick(4) ? "jne" : "jb", l, l);
		break;
	case 1: /* a counter down, a pointer up */
		fprintf(f, "\tmov $%u, %%r13d\n\tmov %%rsi, %%rbx\n%u:\n", n, l);
		items(f, pick(3), 2);
		fprintf(f, "\tmov (%%rbx), %%%s\n\tadd $8, %%rbx\n\tsub $1, %%r13d\n\tjne %ub\n", reg(3), l);
		break;
	case 2: /* an index up to a bound that is not constant, kept on the stack */
		fprintf(f, "\tmov %u(%%rdi), %%r13\n\tand $%u, %%r13d\n\tmov %%r13, 24(%%rsp)\n\txor %%ebx, %%ebx\n\tjmp %df\n%u:\n", 8 * pick(6),
			pick(2) ? 7u : 15u, label, l);
		items(f, pick(3), 2);
		fprintf(f, "\taddq $1, (%%rsi,%%rbx,%u)\n\tinc %%rbx\n%d:\tcmp 24(%%rsp), %%rbx\n\t%s %ub\n", pick(2) ? 4u : 8u, label,
			(const char *[]){ "jne", "jb", "jl" }[pick(3)], l);
		label++;
		break;
	case 3: /* two that meet */
		fprintf(f, "\txor %%ebx, %%ebx\n\tmov $%u, %%r13d\n%u:\n", n, l);
		items(f, pick(3), 2);
		fprintf(f, "\tadd $%u, %%rbx\n\tsub $%u, %%r13\n\tcmp %%r13, %%rbx\n\t%s %ub\n", 1 + pick(2), pick(3), pick(2) ? "jl" : "jb", l);
		break;
	default: /* an output position that goes on with some of the input */
		fprintf(f, "\txor %%ebx, %%ebx\n\txor %%r13d, %%r13d\n%u:\n", l);
		items(f, pick(3), 2);
		compare(f);
		fprintf(f, "\tj%s %df\n\taddq $1, (%%rsi,%%rbx,8)\n\tadd $%u, %%rbx\n%d:\tinc %%r13\n\tcmp $%u, %%r13\n\tjne %ub\n", condition(), label,
			1 + pick(2), label, n, l);
		label++;
	}
}

static void loop(FILE *f, unsigned depth)
{
	/* Counters outside of the registers that programs compute with. */
	const char *counter = depth ? "r12" : "r11", *low = depth ? "r12d" : "r11d";
	unsigned n = 1 + pick(12), step = 1 + pick(3), l = (unsigned)label++;

	if (!depth && pick(2)) {
		paired_loop(f);
		return;
	}
	switch (pick(5)) {
	case 0:
		fprintf(f, "\tmov $%u, %%%s\n%u:\n", n, low, l);
		items(f, 1 + pick(4), depth + 1);
		fprintf(f, "\tdec %%%s\n\tjne %ub\n", pick(2) ? counter : low, l);
		break;
	case 1:
		fprintf(f, "\txor %%%s, %%%s\n%u:\n", low, low, l);
		items(f, 1 + pick(4), depth + 1);
		fprintf(f, "\tadd $%u, %%%s\n\tcmp $%u, %%%s\n\t%s %ub\n", step, counter, n * step, counter, pick(2) ? "jne" : "jb", l);
		break;
	case 2:
		fprintf(f, "\tmov $%u, %%%s\n%u:\n", n, low, l);
		items(f, 1 + pick(4), depth + 1);
		fprintf(f, "\tsub $%u, %%%s\n\tja %ub\n", step, low, l);
		break;
	case 3:
		fprintf(f, "\tmov $%d, %%%s\n%u:\n", -(int)(n * step), counter, l);
		items(f, 1 + pick(4), depth + 1);
		fprintf(f, "\tadd $%u, %%%s\n\tjne %ub\n", step, counter, l);
		break;
	default:
		fprintf(f, "\tmov %d(%%rdi), %%%s\n\tand $15, %%%s\n%u:\n", 8 * (int)pick(6), counter, counter, l);
		items(f, 1 + pick(4), depth + 1);
		fprintf(f, "\tsub $1, %%%s\n\tjge %ub\n", counter, l);
	}
}

static const char *high(void) { return (const char *[]){ "ah", "ch", "dh" }[pick(3)]; }

/* Forms that are rarer: high bytes, 8 and 16 bits, bits, exchanges, double shifts, BMI, strings. */
static void rare_item(FILE *f)
{
	unsigned w = 2 + pick(2);
	const char *r;

	switch (pick(16)) {
	case 0: fprintf(f, "\tmov %%%s, %%%s\n", high(), (const char *[]){ "al", "cl", "dl" }[pick(3)]); break;
	case 1: fprintf(f, "\t%sb $%d, %%%s\n", (const char *[]){ "and", "add", "xor", "mov", "cmp" }[pick(5)], (int)(int8_t)pick(256), high()); break;
	case 2: fprintf(f, "\tmovzbl %%%s, %%%s\n", high(), (const char *[]){ "eax", "ecx", "edx" }[pick(3)]); break;
	case 3: fprintf(f, "\t%s%c $%u, %%%s\n", (const char *[]){ "bts", "btr", "btc" }[pick(3)], suffixes[w], pick(64), reg(w)); break;
	case 4: r = reg(w); fprintf(f, "\t%s%c %%%s, %%%s\n\tsetc %%%s\n", (const char *[]){ "bts", "btr", "btc", "bt" }[pick(4)], suffixes[w], r, reg(w), reg(0)); break;
	case 5: fprintf(f, "\t%sq $%u, %u(%%rsi)\n", (const char *[]){ "bts", "lock btr", "btc" }[pick(3)], pick(64), 8 * pick(8)); break;
	case 6: fprintf(f, "\tmovzbl %%al, %%eax\n\tor $%u, %%cl\n\t%s %%cl\n", 1 + pick(100), pick(2) ? "div" : "mul"); break;
	case 7: fprintf(f, "\timul %%%s, %%%s\n\tcwtd\n", reg(1), reg(1)); break;
	case 8:
		compare(f);
		fprintf(f, "\tcmov%s %%%s, %%%s\n", condition(), reg(1), reg(1));
		break;
	case 9: fprintf(f, "\t%s%c %%cl, %%%s, %%%s\n", pick(2) ? "shld" : "shrd", suffixes[w], reg(w), reg(w)); break;
	case 10: w = pick(4); fprintf(f, "\txchg%c %%%s, %u(%%rsi)\n", suffixes[w], reg(w), 8 * pick(8)); break;
	case 11: w = pick(4); fprintf(f, "\tlock xadd%c %%%s, %u(%%%s)\n", suffixes[w], reg(w), 8 * pick(4), pick(2) ? "rsi" : "rsp"); break;
	case 12: fprintf(f, "\tpushq %u(%%%s)\n\tpop %%%s\n", 8 * pick(8), pick(2) ? "rdi" : "rsi", reg(3)); break;
	case 13: fprintf(f, "\t%s %%%s, %%%s\n", (const char *[]){ "bsf", "bsr", "tzcnt", "lzcnt", "popcnt" }[pick(5)], reg(w), reg(w)); break;
	case 14:
		if (pick(2))
			fprintf(f, "\t%s %%%s, %%%s\n", (const char *[]){ "blsi", "blsr", "blsmsk" }[pick(3)], reg(w), reg(w));
		else
			fprintf(f, "\t%s %%%s, %%%s, %%%s\n", (const char *[]){ "andn", "bzhi", "shlx", "shrx", "sarx", "mulx" }[pick(6)], reg(w), reg(w), reg(w));
		break;
	default: /* the argument registers are kept in others meanwhile */
		fprintf(f, "\tmov %%rdi, %%rbx\n\tmov %%rsi, %%r13\n");
		if (pick(2))
			fprintf(f, "\tmov $%u, %%ecx\n\tlea (%%r%s), %%rdi\n\trep stos%c\n", pick(5), pick(2) ? "sp" : "si", (char)"bq"[pick(2)]);
		else
			fprintf(f, "\tmov $%u, %%ecx\n\txchg %%rsi, %%rdi\n\t%srep movs%c\n", pick(9), pick(2) ? "mov %rsp, %rdi\n\tand $3, %ecx\n\t" : "", (char)"bq"[pick(2)]);
		fprintf(f, "\tmov %%rbx, %%rdi\n\tmov %%r13, %%rsi\n\txor %%ebx, %%ebx\n");
	}
}

/* Two places of one region, at or beyond its ends and the frame's (64 bytes), and what a comparison says of them. */
static void pointers(FILE *f)
{
	static const char *const bases[] = { "rsp", "rsp", "rsi", "rdi" };
	static const int sizes[] = { 64, 64, LOCAL_SIZE, sizeof(struct fay_event) };
	unsigned region = pick(4);

	for (int i = 0; i < 2; i++) {
		int at = pick(3) ? sizes[region] - 8 * (int)pick(3) + 8 * (int)pick(2) : 8 * (int)pick(3) - 8;

		if (pick(3) == 0)
			fprintf(f, "\tmov %u(%%rdi), %%r10\n\tand $%u, %%r10d\n\tlea %d(%%%s,%%r10), %%%s\n", 8 * pick(6), pick(2) ? 8u : 24u, at, bases[region],
				i ? "r13" : "rbx");
		else
			fprintf(f, "\tlea %d(%%%s), %%%s\n", at, bases[region], i ? "r13" : "rbx");
	}
	fprintf(f, "\t%s %%r13, %%rbx\n", pick(4) ? "cmp" : "sub");
	if (pick(2))
		fprintf(f, "\tset%s %%%s\n", condition(), reg(0));
	else
		fprintf(f, "\tj%s %df\n\tadd $%u, %%%s\n%d:\n", condition(), label, 1 + pick(9), reg(3), label), label++;
	fprintf(f, "\txor %%ebx, %%ebx\n\txor %%r13d, %%r13d\n");
}

static void item(FILE *f, unsigned depth)
{
	static const char *const alu[] = { "add", "sub", "and", "or", "xor", "add", "sub", "adc", "sbb" };
	static const char *const shift[] = { "shl", "shr", "sar", "rol", "ror" };
	unsigned w = pick(8) ? 2 + pick(2) : pick(4), l, kind = pick(30);
	const char *r;

	switch (kind) {
	case 0: case 1: case 2:
		fprintf(f, "\t%s%c %%%s, %%%s\n", alu[pick(9)], suffixes[w], reg(w), reg(w));
		break;
	case 3: case 4: case 5:
		fprintf(f, "\t%s%c $%lld, %%%s\n", alu[pick(9)], suffixes[w], (long long)constant(w), reg(w));
		break;
	case 6:
		fprintf(f, "\tmov%c %%%s, %%%s\n", suffixes[w], reg(w), reg(w));
		break;
	case 7:
		fprintf(f, "\tmov%c $%lld, %%%s\n", suffixes[w], (long long)constant(w), reg(w));
		break;
	case 8: {
		unsigned from = pick(2), to = 2 + pick(2);

		fprintf(f, "\tmov%c%c%c %%%s, %%%s\n", pick(2) ? 'z' : 's', suffixes[from], suffixes[to], reg(from), reg(to));
		break;
	}
	case 9:
		fprintf(f, "\tmovslq %%%s, %%%s\n", reg(2), reg(3));
		break;
	case 10:
		fprintf(f, "\tlea%c %lld(%%%s,%%%s,%u), %%%s\n", suffixes[2 + (w & 1)], (long long)constant(2), reg(3), reg(3), 1u << pick(4), reg(2 + (w & 1)));
		break;
	case 11: case 12:
		fprintf(f, "\t%s%c $%u, %%%s\n", shift[pick(5)], suffixes[w], pick(w == 3 ? 64 : w == 2 ? 32 : 8), reg(w));
		break;
	case 13:
		fprintf(f, "\t%s%c %%cl, %%%s\n", shift[pick(5)], suffixes[w], reg(w));
		break;
	case 14:
		w = 2 + (w & 1);
		if (pick(2))
			fprintf(f, "\timul%c %%%s, %%%s\n", suffixes[w], reg(w), reg(w));
		else
			fprintf(f, "\timul%c $%lld, %%%s, %%%s\n", suffixes[w], (long long)constant(2), reg(w), reg(w));
		break;
	case 15:
		w = 2 + (w & 1);
		switch (pick(4)) {
		case 0: fprintf(f, "\tmul%c %%%s\n", suffixes[w], reg(w)); break;
		case 1: fprintf(f, "\timul%c %%%s\n", suffixes[w], reg(w)); break;
		case 2: fprintf(f, "\t%s\n", w == 3 ? "cqo" : "cltd"); break;
		default: fprintf(f, "\tor%c $%u, %%%s\n\txor %%edx, %%edx\n\tdiv%c %%%s\n", suffixes[w], 1 + pick(100), names[w][3], suffixes[w], names[w][3]);
		}
		break;
	case 16:
		fprintf(f, "\t%s%c %%%s\n", (const char *[]){ "inc", "dec", "neg", "not" }[pick(4)], suffixes[w], reg(w));
		break;
	case 17:
		compare(f);
		fprintf(f, "\tset%s %%%s\n", condition(), reg(0));
		break;
	case 18: case 19:
		compare(f);
		w = 2 + (w & 1);
		fprintf(f, "\tcmov%s %%%s, %%%s\n", condition(), reg(w), reg(w));
		break;
	case 20: {
		unsigned size = 1u << w;

		if (pick(2))
			fprintf(f, "\tmov%c %%%s, %u(%%rsp)\n", suffixes[w], reg(w), size * pick(32 / size));
		else
			fprintf(f, "\tmov%c %u(%%rsp), %%%s\n", suffixes[w], pick(4) ? size * pick(32 / size) : pick(33 - size), reg(w));
		break;
	}
	case 21: { /* a bounded access to state or to the stack */
		unsigned i = pick(REGS);

		fprintf(f, "\tand $%u, %%%s\n", pick(2) ? 7u : 3u, names[2][i]);
		switch (pick(3)) {
		case 0: fprintf(f, "\tadd%c %%%s, (%%rsi,%%%s,8)\n", suffixes[w], reg(w), names[3][i]); break;
		case 1: fprintf(f, "\tmov%c (%%rsi,%%%s,8), %%%s\n", suffixes[w], names[3][i], reg(w)); break;
		default: fprintf(f, "\tand $3, %%%s\n\tmov%c %%%s, (%%rsp,%%%s,8)\n", names[2][i], suffixes[w], reg(w), names[3][i]);
		}
		break;
	}
	case 22: /* a bounded access by a branch */
		r = names[3][l = pick(REGS)];
		fprintf(f, "\tcmp $%u, %%%s\n\tjae %df\n\tmov (%%rsi,%%%s,8), %%%s\n", 1 + pick(8), r, label, r, reg(3));
		items(f, pick(3), depth + 1);
		fprintf(f, "%d:\n", label++);
		break;
	case 23: case 24:
		if (pick(3)) {
			compare(f);
			l = (unsigned)label++;
			fprintf(f, "\tj%s %uf\n", condition(), l);
			if (depth < 3)
				items(f, 1 + pick(3), depth + 1);
			fprintf(f, "%u:\n", l);
		} else if (depth < 2) {
			loop(f, depth);
		}
		break;
	case 26: case 27: /* a branch on the flags of arithmetic, and an access that may rest on it */
		w = 2 + (w & 1);
		l = pick(REGS);
		fprintf(f, "\tmov %u(%%rdi), %%%s\n\tand $%u, %%%s\n", 8 * pick(6), names[3][l], pick(2) ? 15u : 63u, names[2][l]);
		if (pick(3) == 0)
			compare(f);
		fprintf(f, "\t%s%c $%d, %%%s\n", pick(2) ? "add" : "sub", suffixes[w], (int)pick(20) - 10, names[w][l]);
		if (pick(2))
			fprintf(f, "\t%s%c %%%s\n", (const char *[]){ "inc", "dec", "neg" }[pick(3)], suffixes[w], names[w][l]);
		fprintf(f, "\tj%s %df\n", (const char *[]){ "b", "ae", "be", "a", "e", "ne", "s", "ns", "l", "ge", "le", "g" }[pick(12)], label);
		items(f, 1 + pick(2), depth + 1);
		fprintf(f, "%d:\n", label++);
		break;
	case 29: /* the registers are those of loops within */
		if (depth == 0)
			pointers(f);
		break;
	case 28: { /* copies at differing distances on the two sides of a branch */
		const char *from = reg(3), *to = reg(3);

		compare(f);
		fprintf(f, "\tj%s %df\n\tlea %d(%%%s), %%%s\n\tjmp %df\n%d:\tlea %d(%%%s), %%%s\n%d:\n", condition(), label, (int)pick(3), from, to,
			label + 1, label, (int)pick(3), from, to, label + 1);
		label += 2;
		if (pick(2))
			fprintf(f, "\tcmp $%u, %%%s\n\tjae %df\n\tnop\n%d:\n", pick(64), to, label, label), label++;
		break;
	}
	default:
		switch (pick(18)) {
		case 0: fprintf(f, "\tbt%c $%u, %%%s\n\tsetc %%%s\n", suffixes[2 + (w & 1)], pick(32), reg(2 + (w & 1)), reg(0)); break;
		case 1: fprintf(f, "\tbswap %%%s\n", reg(2 + (w & 1))); break;
		case 2: fprintf(f, "\txchg %%%s, %%%s\n", reg(3), reg(3)); break;
		case 3: r = reg(3); fprintf(f, "\tor $%u, %%%s\n\t%s %%%s, %%%s\n", 1 + pick(100), r, pick(2) ? "bsf" : "bsr", r, reg(3)); break;
		case 4: fprintf(f, "\tlock xadd%c %%%s, %u(%%rsi)\n", suffixes[3], reg(3), 8 * pick(8)); break;
		case 5: fprintf(f, "\tmov $%u, %%eax\n\tlock cmpxchgq %%%s, %u(%%rsi)\n", pick(9), reg(3), 8 * pick(8)); break;
		default:
			if (depth == 0 || pick(2)) /* the last uses registers of loops */
				rare_item(f);
		}
	}
}

static void program(FILE *f, unsigned number)
{
	fprintf(f, "p%u:\n\tpush %%rbp\n\tpush %%r12\n\tpush %%rbx\n\tpush %%r13\n\tsub $32, %%rsp\n", number);
	for (unsigned i = 0; i < REGS; i++)
		fprintf(f, "\tmov %u(%%rdi), %%%s\n", 8 * i, names[3][i]);
	for (unsigned i = 0; i < 4; i++)
		fprintf(f, "\tmovq $%d, %u(%%rsp)\n", (int)constant(2), 8 * i);
	fprintf(f, "\txor %%r11d, %%r11d\n\txor %%r12d, %%r12d\n");
	label = 1;
	items(f, 4 + pick(20), 0);
	fprintf(f, "\tadd $32, %%rsp\n\tpop %%r13\n\tpop %%rbx\n\tpop %%r12\n\tpop %%rbp\n\tret\n");
}

static void image_tables(FILE *f, unsigned programs)
{
	fprintf(f, ".section .fay.image, \"a\"\n.ascii \"FAYPROBE\"\n.long 1, 0, %u, %u, %u, 1, 1, 0, 0, 0, 0, 0, 0, 0\n", LOCAL_SIZE, GLOBAL_SIZE, programs);
	fprintf(f, ".section .fay.probes, \"a\"\n");
	for (unsigned i = 0; i < programs; i++)
		fprintf(f, ".long s_read - ., 1, p%u - ., 0\n.quad 0, 0\n", i);
	fprintf(f, ".section .fay.state, \"a\"\n.long s_cell - .\n.short 1, 1\n.long 0, 8, 0\n.short 0, 1\n.long 1, 8, 0, 0, 0, 0\n");
	fprintf(f, ".section .fay.columns, \"a\"\n.long s_read - .\n.short 2, 1\n.long 0, 8\n.quad 0, 0\n");
	fprintf(f, ".section .fay.strings, \"a\"\ns_read: .asciz \"libc!read\"\ns_cell: .asciz \"cell\"\n.text\n");
}

/* ---- checking ---- */

struct machine_memory {
	uint8_t event[sizeof(struct fay_event)], local[LOCAL_SIZE], global[GLOBAL_SIZE], stack[4096];
};

static struct fay_machine m;
static struct machine_memory memory;
static uint64_t initial[16];
static char failure[512];
static struct fay_obligation seen; /* one register's value somewhere in the last execution */
static unsigned seen_of;

static bool number_of(const struct fay_value *v, uint64_t concrete, uint64_t *number)
{
	if (v->kind == KIND_SCALAR)
		*number = concrete;
	else if (v->kind == KIND_POINTER)
		*number = concrete - BASE(v->tag);
	else
		return false;
	return v->init == 0xff;
}

/* The concrete content of a location; false for those that are not compared. */
static bool concrete_at(const struct fay_state *s, uint32_t i, uint64_t *number)
{
	uint64_t raw = 0;
	int64_t offset;

	if (i < 16)
		return number_of(&s->loc[i], m.gpr[i], number);
	if (i < LOC_SLOTS || s->loc[i].kind == KIND_UPPER)
		return false;
	offset = -4 * (int64_t)(i - LOC_SLOTS + 1);
	if (s->loc[i].size == 8 && i == LOC_SLOTS)
		return false;
	memcpy(&raw, memory.stack + sizeof(memory.stack) - 64 + offset, s->loc[i].size);
	return number_of(&s->loc[i], raw, number);
}

/* The signed number that a name and a distance stand for; false: nobody whose content is known bears the name. */
static bool named(const struct fay_state *s, const bool *known, const uint64_t *numbers, uint32_t id, uint64_t delta, __int128 *number)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (known[i] && s->loc[i].id == id) {
			*number = (int64_t)(numbers[i] - s->loc[i].delta + delta);
			return true;
		}
	return false;
}

static uint64_t relations_seen;

static bool related(const struct fay_state *s, const bool *known, const uint64_t *numbers, const char *where)
{
	for (uint32_t i = 0; i < s->relation_count; i++) {
		const struct fay_relation *r = &s->relations[i];
		__int128 x, y, sum;

		if (!named(s, known, numbers, r->x, r->dx, &x) || !named(s, known, numbers, r->y, r->dy, &y))
			continue;
		relations_seen++;
		sum = r->a * x + r->b * y;
		if ((r->lo != INT64_MIN && sum < r->lo) || (r->hi != INT64_MAX && sum > r->hi)) {
			snprintf(failure, sizeof(failure), "%s: %lld * %lld + %lld * %lld is not within [%lld, %lld]", where, (long long)r->a,
				 (long long)x, (long long)r->b, (long long)y, (long long)r->lo, (long long)r->hi);
			return false;
		}
	}
	return true;
}

static bool described(const struct fay_state *s, const char *where)
{
	static uint64_t numbers[FAY_MAX_LOCATIONS];
	static bool known[FAY_MAX_LOCATIONS];

	for (uint32_t i = 0; i < s->count; i++) {
		char text[128];

		known[i] = concrete_at(s, i, &numbers[i]);
		if (known[i] && !fay_scalar_contains(&s->loc[i].s, numbers[i])) {
			snprintf(failure, sizeof(failure), "%s: location %u is 0x%llx, not within %s (bits 0x%llx/0x%llx)", where, i,
				 (unsigned long long)numbers[i], fay_scalar_print(&s->loc[i].s, text, sizeof(text)),
				 (unsigned long long)s->loc[i].s.value, (unsigned long long)s->loc[i].s.unknown);
			return false;
		}
		if (i < 16 && s->loc[i].kind == KIND_SAVED && m.gpr[i] != initial[s->loc[i].tag]) {
			snprintf(failure, sizeof(failure), "%s: register %u is not the saved one", where, i);
			return false;
		}
		for (uint32_t k = 0; known[i] && s->loc[i].id && k < i; k++)
			if (known[k] && s->loc[k].id == s->loc[i].id &&
			    numbers[i] - s->loc[i].delta != numbers[k] - s->loc[k].delta) {
				snprintf(failure, sizeof(failure), "%s: locations %u and %u are not at the distance that is claimed", where, k, i);
				return false;
			}
	}
	return related(s, known, numbers, where);
}

static void reset(unsigned run)
{
	static const uint64_t words[] = { 0, 1, UINT64_MAX, 7, 8, 0x7fffffff, 0x80000000, 0xffffffff, (uint64_t)1 << 63, 100, 63, 64 };
	uint8_t *bytes = (uint8_t *)&memory;

	for (size_t i = 0; i + 8 <= sizeof(memory); i += 8) {
		uint64_t word = run % 3 == 0 ? rnd() : run % 3 == 1 ? words[pick(12)] : pick(2) ? rnd() >> pick(64) : -(rnd() >> pick(64));

		memcpy(bytes + i, &word, 8);
	}
	m = (struct fay_machine){ .region_count = 4, .flags_undefined = FLAG_ALL, .regions = {
		{ BASE(REGION_EVENT), sizeof(struct fay_event), memory.event, false, "event" },
		{ BASE(REGION_LOCAL), LOCAL_SIZE, memory.local, true, "local" },
		{ BASE(REGION_GLOBAL), GLOBAL_SIZE, memory.global, true, "global" },
		{ BASE(REGION_STACK) - sizeof(memory.stack) + 64, sizeof(memory.stack), memory.stack, true, "stack" },
	} };
	for (unsigned i = 0; i < 16; i++)
		m.gpr[i] = initial[i] = rnd();
	m.gpr[FAY_RDI] = BASE(REGION_EVENT);
	m.gpr[FAY_RSI] = BASE(REGION_LOCAL);
	m.gpr[FAY_RDX] = BASE(REGION_GLOBAL);
	m.gpr[FAY_RSP] = BASE(REGION_STACK);
}

/* One execution; false with `failure` set. */
static bool execute(struct fay_analysis *an)
{
	uint32_t node = 0;
	uint64_t steps = 0;
	char where[128];

	m.rip = an->cfg->insns[an->cfg->blocks[an->graph->nodes[0].block].first].address;
	while (node != FAY_NONE && steps < MAX_STEPS) {
		const struct fay_node *n = &an->graph->nodes[node];
		const struct fay_block *block = &an->cfg->blocks[n->block];
		const struct fay_insn *insn = NULL;
		uint32_t to = FAY_NONE;

		if (!an->in[node]) {
			snprintf(failure, sizeof(failure), "a block is reached that the analysis did not reach");
			return false;
		}
		fay_state_copy(an->current, an->in[node]);
		for (uint32_t i = 0; i < block->count; i++) {
			char text[96] = "";
			enum fay_exec_status status;

			insn = &an->cfg->insns[block->first + i];
			fay_disassemble(an->image->layout.bytes + (insn->address - an->image->layout_base), 15, insn->address, text, sizeof(text));
			snprintf(where, sizeof(where), "%s%s", i ? "before " : "at block start, before ", text);
			if (!described(an->current, where))
				return false;
			if (pick(++seen_of) == 0) {
				unsigned r = pick(16);

				if (an->current->loc[r].kind == KIND_SCALAR && an->current->loc[r].init == 0xff)
					seen = (struct fay_obligation){ .node = node, .insn = block->first + i, .goal = GOAL_DIFFERS,
									.rule = FAY_RULE_MEM_BOUNDS, .reg = (uint8_t)r, .low = (int64_t)m.gpr[r] };
			}
			status = fay_exec_step(&m, insn);
			if (status != EXEC_OK) {
				snprintf(failure, sizeof(failure), "%s faults with %d", text, (int)status);
				return false;
			}
			if (++steps > an->worst_instructions) {
				snprintf(failure, sizeof(failure), "more than the worst case of %llu instructions", (unsigned long long)an->worst_instructions);
				return false;
			}
			if (!fay_transfer_step(an, node, block->first + i)) {
				snprintf(failure, sizeof(failure), "the analysis ends at %s, the machine goes on", text);
				return false;
			}
			snprintf(where, sizeof(where), "after %s", text);
			if (insn->op != OP_RET && !described(an->current, where))
				return false;
		}
		if (insn->op != OP_RET)
			to = fay_exec_successor(an->graph, an->cfg, node, &m);
		if (n->branch && (!fay_transfer_assume(an, an->current, (enum fay_cc)(n->branch - 1), to == n->succ[0]) || !described(an->current, "at a setcc"))) {
			if (!*failure)
				snprintf(failure, sizeof(failure), "a condition is what the analysis says it cannot be");
			return false;
		}
		if (insn->op == OP_JCC && insn->target != insn->address + insn->length &&
		    (!fay_transfer_assume(an, an->current, (enum fay_cc)insn->cc, m.rip == insn->target) || !described(an->current, "after the branch"))) {
			if (!*failure)
				snprintf(failure, sizeof(failure), "a branch goes where the analysis says it cannot");
			return false;
		}
		node = to;
	}
	return true;
}

struct totals {
	unsigned accepted, refused, failed, loops, asked;
	uint64_t rules[FAY_RULE_COUNT];
};

static void check_program(struct fay_arena *arena, const struct fay_image *whole, uint32_t number, struct totals *totals)
{
	struct fay_image image = *whole;
	struct fay_policy policy;
	struct fay_cfg cfg;
	struct fay_graph graph = { 0 };
	struct fay_probe_facts facts = whole->probes[number];
	struct fay_refusal r;
	struct fay_analysis an = { .arena = arena, .image = &image, .policy = &policy, .cfg = &cfg, .graph = &graph, .refine = true, .facts = &facts, .keep = true, .thorough = number % 2 };
	static const int64_t thresholds[] = { -1000, -128, -64, -16, -8, -1, 0, 1, 2, 7, 8, 15, 16, 63, 64, 100, 127, 255, 1000, INT32_MAX, UINT32_MAX };

	fay_policy_default(&policy);
	image.probes = &facts;
	image.probe_count = 1;
	memcpy(an.thresholds.values, thresholds, sizeof(thresholds));
	an.thresholds.count = sizeof(thresholds) / sizeof(thresholds[0]);
	r = fay_cfg_build(&cfg, arena, &image, 0);
	if (r.rule == FAY_RULE_NONE)
		r = fay_graph_build(&graph, &cfg, image.layout_base + facts.code_offset);
	if (r.rule == FAY_RULE_NONE) {
		an.in = calloc(graph.node_count, sizeof(struct fay_state *));
		an.visits = calloc(graph.node_count, sizeof(uint16_t));
		an.bounds = calloc(graph.node_count, sizeof(uint64_t));
		an.current = fay_state_create(FAY_MAX_LOCATIONS);
		an.branch = fay_state_create(FAY_MAX_LOCATIONS);
		r = fay_fixpoint_with_relations(&an);
		if (r.rule == FAY_RULE_NONE && an.pending_count)
			r.rule = an.pending[0].rule;
		if (r.rule == FAY_RULE_NONE)
			r = fay_loops_bound(&an);
	}
	if (r.rule != FAY_RULE_NONE) {
		totals->refused++;
		totals->rules[r.rule]++;
	} else {
		totals->accepted++;
		totals->loops += graph.loop_count;
		for (unsigned run = 0; run < RUNS; run++) {
			reset(run);
			*failure = 0;
			seen_of = 0;
			seen.goal = GOAL_UNREACHABLE;
			if (execute(&an) && number % 24 == 0 && run % 8 == 0 && seen.goal == GOAL_DIFFERS) {
				totals->asked++;
				if (fay_smt_ask(&an, &seen, NULL, NULL) == ANSWER_PROVED)
					snprintf(failure, sizeof(failure), "the solver proves that register %u is never 0x%llx at text offset 0x%llx", seen.reg,
						 (unsigned long long)seen.low, (unsigned long long)(cfg.insns[seen.insn].address - image.text.start));
			}
			if (*failure) {
				fprintf(stderr, "program %u: %s\n", number, failure);
				totals->failed++;
				break;
			}
		}
	}
	if (an.in)
		fay_fixpoint_release(&an);
	free(an.in);
	free(an.visits);
	free(an.bounds);
	free(an.current);
	free(an.branch);
	free(an.pending);
	free(an.templates);
	fay_graph_deinit(&graph);
	fay_cfg_deinit(&cfg);
}

static bool command(const char *format, const char *directory)
{
	char line[512];
	int status;

	snprintf(line, sizeof(line), format, directory, directory);
	status = system(line);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* One image of up to 512 programs. */
static bool batch(const char *directory, unsigned programs, struct totals *totals)
{
	char path[256];
	FILE *f;
	static uint8_t bytes[8 << 20];
	size_t size;
	struct fay_arena *arena = fay_arena_create((size_t)256 << 20);
	struct fay_image image;
	struct fay_refusal r;

	snprintf(path, sizeof(path), "%s/p.s", directory);
	f = fopen(path, "w");
	if (!f || !arena)
		return false;
	image_tables(f, programs);
	for (unsigned i = 0; i < programs; i++)
		program(f, i);
	fclose(f);
	if (!command("as -o %s/p.o %s/p.s", directory) ||
	    !command("ld -shared -nostdlib -z now -z noexecstack --hash-style=gnu --build-id=none -o %s/p.img %s/p.o", directory))
		return false;
	snprintf(path, sizeof(path), "%s/p.img", directory);
	f = fopen(path, "r");
	size = f ? fread(bytes, 1, sizeof(bytes), f) : 0;
	if (f)
		fclose(f);
	r = fay_image_parse(arena, bytes, size, &image);
	if (r.rule != FAY_RULE_NONE) {
		fprintf(stderr, "image: %s: %s\n", fay_rule_id(r.rule), r.what);
		return false;
	}
	for (uint32_t i = 0; i < image.probe_count; i++)
		check_program(arena, &image, i, totals);
	fay_arena_destroy(arena);
	return true;
}

int main(int argc, char **argv)
{
	unsigned programs = argc > 1 ? (unsigned)atoi(argv[1]) : 2000, batches = 0;
	struct totals totals = { 0 };
	char directory[] = "/tmp/fay-soundness-XXXXXX";
	bool ok = mkdtemp(directory) != NULL;

	seed = argc > 2 ? strtoull(argv[2], NULL, 0) * 2 + 1 : 0x9e3779b97f4a7c15u;
	while (ok && totals.accepted + totals.refused < programs) {
		unsigned before = totals.failed;

		fprintf(stderr, "%s", "");
		ok = batch(directory, programs < 500 ? programs : 500, &totals);
		batches++;
		if (totals.failed > before)
			break; /* the programs are kept for a look */
	}
	printf("%u programs accepted (%u loops), %u refused, %u executions each, %u questions to the solver, %llu relations looked at; %u unsound\n", totals.accepted,
	       totals.loops, totals.refused, RUNS, totals.asked, (unsigned long long)relations_seen, totals.failed);
	for (unsigned i = 1; i < FAY_RULE_COUNT; i++)
		if (totals.rules[i])
			printf("  refused by %s: %llu\n", fay_rule_id((enum fay_rule)i), (unsigned long long)totals.rules[i]);
	if (ok && !totals.failed)
		command("rm -rf %s", directory);
	else
		fprintf(stderr, "left in %s\n", directory);
	/* Too few accepted programs would test nothing. */
	return ok && !totals.failed && relations_seen && totals.accepted * 4 >= totals.accepted + totals.refused ? 0 : 1;
}
