/* SPDX-License-Identifier: MIT */
/* Random programs in assembly, of every operation but helpers and calls: see soundness_programs.h.
 * */
#include "soundness_programs_parts.h"

#include <stdbool.h>

#include "fay/event.h"
#include "tests/xorshift.h"

uint64_t program_seed;

uint64_t program_random(void)
{
	return xorshift(&program_seed);
}

unsigned program_pick(unsigned n)
{
	return (unsigned)(program_random() >> 20) % n;
}

const char *const names[4][REGS] = {
	{ "al", "cl", "r8b", "r9b", "r10b", "bpl", "dl" },
	{ "ax", "cx", "r8w", "r9w", "r10w", "bp", "dx" },
	{ "eax", "ecx", "r8d", "r9d", "r10d", "ebp", "edx" },
	{ "rax", "rcx", "r8", "r9", "r10", "rbp", "rdx" },
};
const char suffixes[] = "bwlq";
static int label;

int64_t constant(unsigned width)
{
	static const int64_t interesting[] = { 0,    1,   -1,   2,  7,          8,
					       15,   16,  63,   64, 100,        127,
					       -128, 255, 1000, -8, 0x7fffffff, -0x7fffffff - 1 };
	int64_t c = program_pick(3) ? interesting[program_pick(18)]
				    : (int64_t)(int32_t)program_random();

	if (width == 0)
		return (int8_t)c;
	return width == 1 ? (int16_t)c : c;
}

const char *reg(unsigned width)
{
	return names[width][program_pick(REGS)];
}

const char *condition(void)
{
	static const char *const cc[] = { "o",  "no", "b",  "ae", "e", "ne", "be", "a", "s",
					  "ns", "l",  "ge", "le", "g", "b",  "ae", "e", "ne" };

	return cc[program_pick(18)];
}

void compare(FILE *f)
{
	unsigned w = program_pick(8) ? 2 + program_pick(2) : program_pick(4);

	switch (program_pick(4)) {
	case 0:
		fprintf(f, "\tcmp%c $%lld, %%%s\n", suffixes[w], (long long)constant(w), reg(w));
		break;
	case 1: fprintf(f, "\tcmp%c %%%s, %%%s\n", suffixes[w], reg(w), reg(w)); break;
	case 2:
		fprintf(f, "\ttest%c $%lld, %%%s\n", suffixes[w], (long long)constant(w), reg(w));
		break;
	default: {
		const char *r = reg(w);
		fprintf(f, "\ttest%c %%%s, %%%s\n", suffixes[w], r, r);
	}
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
	unsigned n = 1 + program_pick(8), off = program_pick(8) ? 0 : program_pick(3),
		 l = (unsigned)label++;

	switch (program_pick(5)) {
	case 0: /* a pointer up to an end that is not constant */
		fprintf(f,
			"\tmov %u(%%rdi), %%r13\n\tand $7, %%r13d\n\tje %uf\n\tlea "
			"(%%rsi,%%r13,8), %%r13\n\tmov %%rsi, %%rbx\n%u:\n",
			8 * program_pick(6), l, l);
		items(f, program_pick(3), 2);
		fprintf(f, "\taddq $1, %u(%%rbx)\n\tadd $8, %%rbx\n\tcmp %%%s\n\t%s %ub\n%u:\n",
			8 * off, program_pick(2) ? "r13, %rbx" : "rbx, %r13",
			program_pick(4) ? "jne" : "jb", l, l);
		break;
	case 1: /* a counter down, a pointer up */
		fprintf(f, "\tmov $%u, %%r13d\n\tmov %%rsi, %%rbx\n%u:\n", n, l);
		items(f, program_pick(3), 2);
		fprintf(f, "\tmov (%%rbx), %%%s\n\tadd $8, %%rbx\n\tsub $1, %%r13d\n\tjne %ub\n",
			reg(3), l);
		break;
	case 2: /* an index up to a bound that is not constant, kept on the stack */
		fprintf(f,
			"\tmov %u(%%rdi), %%r13\n\tand $%u, %%r13d\n\tmov %%r13, 24(%%rsp)\n\txor "
			"%%ebx, %%ebx\n\tjmp %df\n%u:\n",
			8 * program_pick(6), program_pick(2) ? 7u : 15u, label, l);
		items(f, program_pick(3), 2);
		fprintf(f,
			"\taddq $1, (%%rsi,%%rbx,%u)\n\tinc %%rbx\n%d:\tcmp 24(%%rsp), %%rbx\n\t%s "
			"%ub\n",
			program_pick(2) ? 4u : 8u, label,
			(const char *[]){ "jne", "jb", "jl" }[program_pick(3)], l);
		label++;
		break;
	case 3: /* two that meet */
		fprintf(f, "\txor %%ebx, %%ebx\n\tmov $%u, %%r13d\n%u:\n", n, l);
		items(f, program_pick(3), 2);
		fprintf(f, "\tadd $%u, %%rbx\n\tsub $%u, %%r13\n\tcmp %%r13, %%rbx\n\t%s %ub\n",
			1 + program_pick(2), program_pick(3), program_pick(2) ? "jl" : "jb", l);
		break;
	default: /* an output position that goes on with some of the input */
		fprintf(f, "\txor %%ebx, %%ebx\n\txor %%r13d, %%r13d\n%u:\n", l);
		items(f, program_pick(3), 2);
		compare(f);
		fprintf(f,
			"\tj%s %df\n\taddq $1, (%%rsi,%%rbx,8)\n\tadd $%u, %%rbx\n%d:\tinc "
			"%%r13\n\tcmp $%u, %%r13\n\tjne %ub\n",
			condition(), label, 1 + program_pick(2), label, n, l);
		label++;
	}
}

/* An index and its end, both in registers, neither constant. */
static void walk(FILE *f)
{
	unsigned l = (unsigned)label++;

	fprintf(f,
		"\tmov %u(%%rdi), %%rbx\n\tand $3, %%ebx\n\tlea %u(%%rbx), %%r13\n%u:\tmov "
		"(%%rsi,%%rbx,8), %%%s\n",
		8 * program_pick(6), 1 + program_pick(5), l, reg(3));
	items(f, program_pick(2), 2);
	fprintf(f,
		"\tinc %%rbx\n\tcmp %%r13, %%rbx\n\t%s %ub\n\txor %%ebx, %%ebx\n\txor %%r13d, "
		"%%r13d\n",
		(const char *[]){ "jne", "jb", "jl" }[program_pick(3)], l);
}

static void loop(FILE *f, unsigned depth)
{
	/* Counters outside of the registers that programs compute with. */
	const char *counter = depth ? "r12" : "r11", *low = depth ? "r12d" : "r11d";
	unsigned n = 1 + program_pick(12), step = 1 + program_pick(3), l = (unsigned)label++;

	if (!depth && program_pick(2)) {
		paired_loop(f);
		return;
	}
	switch (program_pick(5)) {
	case 0:
		fprintf(f, "\tmov $%u, %%%s\n%u:\n", n, low, l);
		items(f, 1 + program_pick(4), depth + 1);
		fprintf(f, "\tdec %%%s\n\tjne %ub\n", program_pick(2) ? counter : low, l);
		break;
	case 1:
		fprintf(f, "\txor %%%s, %%%s\n%u:\n", low, low, l);
		items(f, 1 + program_pick(4), depth + 1);
		fprintf(f, "\tadd $%u, %%%s\n\tcmp $%u, %%%s\n\t%s %ub\n", step, counter, n * step,
			counter, program_pick(2) ? "jne" : "jb", l);
		break;
	case 2:
		fprintf(f, "\tmov $%u, %%%s\n%u:\n", n, low, l);
		items(f, 1 + program_pick(4), depth + 1);
		fprintf(f, "\tsub $%u, %%%s\n\tja %ub\n", step, low, l);
		break;
	case 3:
		fprintf(f, "\tmov $%d, %%%s\n%u:\n", -(int)(n * step), counter, l);
		items(f, 1 + program_pick(4), depth + 1);
		fprintf(f, "\tadd $%u, %%%s\n\tjne %ub\n", step, counter, l);
		break;
	default:
		fprintf(f, "\tmov %d(%%rdi), %%%s\n\tand $15, %%%s\n%u:\n",
			8 * (int)program_pick(6), counter, counter, l);
		items(f, 1 + program_pick(4), depth + 1);
		fprintf(f, "\tsub $1, %%%s\n\tjge %ub\n", counter, l);
	}
}

/* Two places of one region, at or beyond its ends and the frame's (64 bytes), and what a comparison
 * says of them: mostly without their order if one is beyond, which is refused. */
static void pointers(FILE *f)
{
	static const char *const bases[] = { "rsp", "rsp", "rsi", "rdi" };
	static const int sizes[] = { 64, 64, LOCAL_SIZE, sizeof(struct fay_event) };
	static const char *const orderless[] = { "e", "ne", "s", "ns" };
	unsigned region = program_pick(4);
	bool within = true;
	const char *asked;

	for (int i = 0; i < 2; i++) {
		const char *to = i ? "r13" : "rbx";
		int index = program_pick(3)   ? 0
			    : program_pick(2) ? 8
					      : 24,
		    at = program_pick(3) ? sizes[region] - 8 * (int)program_pick(3) +
						   8 * (int)program_pick(2)
					 : 8 * (int)program_pick(3) - 8;

		within &= at >= 0 && at + index <= sizes[region];
		if (index)
			fprintf(f,
				"\tmov %u(%%rdi), %%r10\n\tand $%d, %%r10d\n\tlea %d(%%%s,%%r10), "
				"%%%s\n",
				8 * program_pick(6), index, at, bases[region], to);
		else
			fprintf(f, "\tlea %d(%%%s), %%%s\n", at, bases[region], to);
	}
	asked = within || !program_pick(8) ? condition() : orderless[program_pick(4)];
	fprintf(f, "\t%s %%r13, %%rbx\n", program_pick(4) ? "cmp" : "sub");
	if (program_pick(2))
		fprintf(f, "\tset%s %%%s\n", asked, reg(0));
	else
		fprintf(f, "\tj%s %df\n\tadd $%u, %%%s\n%d:\n", asked, label, 1 + program_pick(9),
			reg(3), label),
			label++;
	fprintf(f, "\txor %%ebx, %%ebx\n\txor %%r13d, %%r13d\n");
}

/* Equal, by two comparisons, to what is then equal to a number: `from` is neither greater nor less.
 * */
static void pin(FILE *f, const char *from, unsigned to, int64_t number)
{
	fprintf(f, "\tcmp %%%s, %%%s\n\tjg %df\n\tjl %df\n\tcmp $%lld, %%%s\n\tjne %df\n",
		names[3][to], from, label, label, (long long)number, names[3][to], label);
}

/* Two numbers tied at a great distance, each shown to be one that may not lie so; where the ways
 * meet, others that are just these. */
static void distant(FILE *f)
{
	static const int64_t distances[] = { INT64_MAX, -INT64_MAX, INT64_MIN, (int64_t)1 << 62,
					     3 };
	int64_t distance = distances[program_pick(5)], x = (int64_t)program_pick(9) - 4,
		y = program_pick(4) ? (int64_t)program_pick(9) - 4 : 4 + x;
	unsigned u = program_pick(3), w = 3 + program_pick(3);

	fprintf(f,
		"\tmov %u(%%rdi), %%rbx\n\tmov %u(%%rdi), %%%s\n\tmov %u(%%rdi), %%%s\n\tmovabs "
		"$%lld, %%r13\n\tadd %%rbx, %%r13\n",
		8 * program_pick(6), 8 * program_pick(6), names[3][u], 8 * program_pick(6),
		names[3][w], (long long)distance);
	compare(f);
	fprintf(f, "\tj%s %df\n", condition(), label + 1);
	pin(f, "rbx", u, x);
	pin(f, "r13", w, y);
	fprintf(f, "\txor %%%s, %%%s\n\txor %%%s, %%%s\n\timul %%%s, %%%s\n\tjmp %df\n",
		names[2][u], names[2][u], names[2][w], names[2][w], names[2][u], names[2][w],
		label + 2);
	fprintf(f,
		"%d:\tmov $%lld, %%rbx\n\tmov $%lld, %%r13\n\txor %%%s, %%%s\n\txor %%%s, "
		"%%%s\n\timul %%%s, %%%s\n",
		label + 1, (long long)x, (long long)y, names[2][u], names[2][u], names[2][w],
		names[2][w], names[2][u], names[2][w]);
	fprintf(f,
		"%d:\tcmp %%%s, %%%s\n\tj%s %df\n\tadd $%u, %%%s\n%d:\txor %%ebx, %%ebx\n\txor "
		"%%r13d, %%r13d\n",
		label + 2, reg(3), program_pick(2) ? "rbx" : "r13", condition(), label,
		1 + program_pick(9), reg(3), label);
	label += 3;
}

/* What a comparison leaves, without a branch. */
static void flags_item(FILE *f, unsigned kind, unsigned w)
{
	compare(f);
	if (kind == 17) {
		fprintf(f, "\tset%s %%%s\n", condition(), reg(0));
		return;
	}
	w = 2 + (w & 1);
	fprintf(f, "\tcmov%s %%%s, %%%s\n", condition(), reg(w), reg(w));
}

static void memory_item(FILE *f, unsigned kind, unsigned w)
{
	switch (kind) {
	case 20: {
		unsigned size = 1u << w;

		if (program_pick(2))
			fprintf(f, "\tmov%c %%%s, %u(%%rsp)\n", suffixes[w], reg(w),
				size * program_pick(32 / size));
		else
			fprintf(f, "\tmov%c %u(%%rsp), %%%s\n", suffixes[w],
				program_pick(4) ? size * program_pick(32 / size)
						: program_pick(33 - size),
				reg(w));
		break;
	}
	case 21: { /* a bounded access to state or to the stack */
		unsigned i = program_pick(REGS);

		fprintf(f, "\tand $%u, %%%s\n", program_pick(2) ? 7u : 3u, names[2][i]);
		switch (program_pick(3)) {
		case 0:
			fprintf(f, "\tadd%c %%%s, (%%rsi,%%%s,8)\n", suffixes[w], reg(w),
				names[3][i]);
			break;
		case 1:
			fprintf(f, "\tmov%c (%%rsi,%%%s,8), %%%s\n", suffixes[w], names[3][i],
				reg(w));
			break;
		default:
			fprintf(f, "\tand $3, %%%s\n\tmov%c %%%s, (%%rsp,%%%s,8)\n", names[2][i],
				suffixes[w], reg(w), names[3][i]);
		}
		break;
	}
	default: break;
	}
}

static void branch_item(FILE *f, unsigned depth, unsigned kind, unsigned w)
{
	const char *r;
	unsigned l;

	switch (kind) {
	case 22: /* a bounded access by a branch */
		r = names[3][l = program_pick(REGS)];
		fprintf(f, "\tcmp $%u, %%%s\n\tjae %df\n\tmov (%%rsi,%%%s,8), %%%s\n",
			1 + program_pick(8), r, label, r, reg(3));
		items(f, program_pick(3), depth + 1);
		fprintf(f, "%d:\n", label++);
		break;
	case 23:
	case 24:
		if (program_pick(3)) {
			compare(f);
			l = (unsigned)label++;
			fprintf(f, "\tj%s %uf\n", condition(), l);
			if (depth < 3)
				items(f, 1 + program_pick(3), depth + 1);
			fprintf(f, "%u:\n", l);
		} else if (depth < 2) {
			loop(f, depth);
		}
		break;
	/* a branch on the flags of arithmetic, and an access that may rest on it */
	case 26:
	case 27:
		w = 2 + (w & 1);
		l = program_pick(REGS);
		fprintf(f, "\tmov %u(%%rdi), %%%s\n\tand $%u, %%%s\n", 8 * program_pick(6),
			names[3][l], program_pick(2) ? 15u : 63u, names[2][l]);
		if (program_pick(3) == 0)
			compare(f);
		fprintf(f, "\t%s%c $%d, %%%s\n", program_pick(2) ? "add" : "sub", suffixes[w],
			(int)program_pick(20) - 10, names[w][l]);
		if (program_pick(2))
			fprintf(f, "\t%s%c %%%s\n",
				(const char *[]){ "inc", "dec", "neg" }[program_pick(3)],
				suffixes[w], names[w][l]);
		fprintf(f, "\tj%s %df\n",
			(const char *[]){ "b", "ae", "be", "a", "e", "ne", "s", "ns", "l", "ge",
					  "le", "g" }[program_pick(12)],
			label);
		items(f, 1 + program_pick(2), depth + 1);
		fprintf(f, "%d:\n", label++);
		break;
	case 28: { /* copies at differing distances on the two sides of a branch */
		const char *from = reg(3), *to = reg(3);

		compare(f);
		fprintf(f,
			"\tj%s %df\n\tlea %d(%%%s), %%%s\n\tjmp %df\n%d:\tlea %d(%%%s), "
			"%%%s\n%d:\n",
			condition(), label, (int)program_pick(3), from, to, label + 1, label,
			(int)program_pick(3), from, to, label + 1);
		label += 2;
		if (program_pick(2))
			fprintf(f, "\tcmp $%u, %%%s\n\tjae %df\n\tnop\n%d:\n", program_pick(64), to,
				label, label),
				label++;
		break;
	}
	default: break;
	}
}

static void other_item(FILE *f, unsigned depth, unsigned w)
{
	const char *r;

	switch (program_pick(18)) {
	case 0:
		fprintf(f, "\tbt%c $%u, %%%s\n\tsetc %%%s\n", suffixes[2 + (w & 1)],
			program_pick(32), reg(2 + (w & 1)), reg(0));
		break;
	case 1: fprintf(f, "\tbswap %%%s\n", reg(2 + (w & 1))); break;
	case 2: fprintf(f, "\txchg %%%s, %%%s\n", reg(3), reg(3)); break;
	case 3:
		r = reg(3);
		fprintf(f, "\tor $%u, %%%s\n\t%s %%%s, %%%s\n", 1 + program_pick(100), r,
			program_pick(2) ? "bsf" : "bsr", r, reg(3));
		break;
	case 4:
		fprintf(f, "\tlock xadd%c %%%s, %u(%%rsi)\n", suffixes[3], reg(3),
			8 * program_pick(8));
		break;
	case 5:
		fprintf(f, "\tmov $%u, %%eax\n\tlock cmpxchgq %%%s, %u(%%rsi)\n", program_pick(9),
			reg(3), 8 * program_pick(8));
		break;
	default:
		if (depth == 0 || program_pick(2)) /* the last uses registers of loops */
			rare_item(f);
	}
}

static void item(FILE *f, unsigned depth)
{
	unsigned w = program_pick(8) ? 2 + program_pick(2) : program_pick(4),
		 kind = program_pick(34);

	if (kind <= 16)
		arithmetic_item(f, kind, w);
	else if (kind <= 19)
		flags_item(f, kind, w);
	else if (kind <= 21)
		memory_item(f, kind, w);
	else if (kind <= 28 && kind != 25)
		branch_item(f, depth, kind, w);
	else if (kind == 30)
		program_quotient(f);
	else if (kind == 31 || kind == 32)
		program_form(f, depth);
	else if (kind != 29 && kind != 33)
		other_item(f, depth, w);
	else if (depth == 0) /* the registers are those of loops within */
		kind == 29 ? pointers(f) : distant(f);
}

void program_write(FILE *f, unsigned number)
{
	fprintf(f,
		"p%u:\n\tpush %%rbp\n\tpush %%r12\n\tpush %%rbx\n\tpush %%r13\n\tpush %%r14\n\tsub "
		"$32, %%rsp\n",
		number);
	for (unsigned i = 0; i < REGS; i++)
		fprintf(f, "\tmov %u(%%rdi), %%%s\n", 8 * i, names[3][i]);
	for (unsigned i = 0; i < 4; i++)
		fprintf(f, "\tmovq $%d, %u(%%rsp)\n", (int)constant(2), 8 * i);
	fprintf(f, "\txor %%r11d, %%r11d\n\txor %%r12d, %%r12d\n");
	label = 1;
	if (number % 3 == 2) /* those are swept with relations: they have some */
		walk(f);
	items(f, 4 + program_pick(20), 0);
	fprintf(f, "\tadd $32, %%rsp\n\tpop %%r14\n\tpop %%r13\n\tpop %%rbx\n\tpop %%r12\n\tpop "
		   "%%rbp\n\tret\n");
}

void program_tables(FILE *f, unsigned programs)
{
	fprintf(f,
		".section .fay.image, \"a\"\n.ascii \"FAYPROBE\"\n.long 1, 0, %u, %u, %u, 1, 1, 0, "
		"0, 0, 0, 0, 0, 0\n",
		LOCAL_SIZE, GLOBAL_SIZE, programs);
	fprintf(f, ".section .fay.probes, \"a\"\n");
	for (unsigned i = 0; i < programs; i++)
		fprintf(f, ".long s_read - ., 1, p%u - ., 0\n.quad 0, 0\n", i);
	fprintf(f, ".section .fay.state, \"a\"\n.long s_cell - .\n.short 1, 1\n.long 0, 8, "
		   "0\n.short 0, 1\n.long 1, 8, 0, 0, 0, 0\n");
	fprintf(f, ".section .fay.columns, \"a\"\n.long s_read - .\n.short 2, 1\n.long 0, 8\n.quad "
		   "0, 0\n");
	fprintf(f, ".section .fay.strings, \"a\"\ns_read: .asciz \"libc!read\"\ns_cell: .asciz "
		   "\"cell\"\n.text\n");
}
