/* SPDX-License-Identifier: MIT */
/* The single instructions of random programs: see soundness_programs_parts.h. */
#include "soundness_programs_parts.h"

void arithmetic_item(FILE *f, unsigned kind, unsigned w)
{
	static const char *const alu[] = { "add", "sub", "and", "or", "xor",
					   "add", "sub", "adc", "sbb" };
	static const char *const shift[] = { "shl", "shr", "sar", "rol", "ror" };

	switch (kind) {
	case 0:
	case 1:
	case 2:
		fprintf(f, "\t%s%c %%%s, %%%s\n", alu[program_pick(9)], suffixes[w], reg(w),
			reg(w));
		break;
	case 3:
	case 4:
	case 5:
		fprintf(f, "\t%s%c $%lld, %%%s\n", alu[program_pick(9)], suffixes[w],
			(long long)constant(w), reg(w));
		break;
	case 6: fprintf(f, "\tmov%c %%%s, %%%s\n", suffixes[w], reg(w), reg(w)); break;
	case 7:
		fprintf(f, "\tmov%c $%lld, %%%s\n", suffixes[w], (long long)constant(w), reg(w));
		break;
	case 8: {
		unsigned from = program_pick(2), to = 2 + program_pick(2);

		fprintf(f, "\tmov%c%c%c %%%s, %%%s\n", program_pick(2) ? 'z' : 's', suffixes[from],
			suffixes[to], reg(from), reg(to));
		break;
	}
	case 9: fprintf(f, "\tmovslq %%%s, %%%s\n", reg(2), reg(3)); break;
	case 10:
		fprintf(f, "\tlea%c %lld(%%%s,%%%s,%u), %%%s\n", suffixes[2 + (w & 1)],
			(long long)constant(2), reg(3), reg(3), 1u << program_pick(4),
			reg(2 + (w & 1)));
		break;
	case 11:
	case 12:
		fprintf(f, "\t%s%c $%u, %%%s\n", shift[program_pick(5)], suffixes[w],
			program_pick(w == 3   ? 64
				     : w == 2 ? 32
					      : 8),
			reg(w));
		break;
	case 13:
		fprintf(f, "\t%s%c %%cl, %%%s\n", shift[program_pick(5)], suffixes[w], reg(w));
		break;
	case 14:
		w = 2 + (w & 1);
		if (program_pick(2))
			fprintf(f, "\timul%c %%%s, %%%s\n", suffixes[w], reg(w), reg(w));
		else
			fprintf(f, "\timul%c $%lld, %%%s, %%%s\n", suffixes[w],
				(long long)constant(2), reg(w), reg(w));
		break;
	case 15:
		w = 2 + (w & 1);
		switch (program_pick(4)) {
		case 0: fprintf(f, "\tmul%c %%%s\n", suffixes[w], reg(w)); break;
		case 1: fprintf(f, "\timul%c %%%s\n", suffixes[w], reg(w)); break;
		case 2:
			fprintf(f, "\t%s\n", w == 3 ? "cqo" : "cltd");
			if (program_pick(2))
				fprintf(f, "\tand%c $%u, %%%s\n\tor%c $1, %%%s\n\tidiv%c %%%s\n",
					suffixes[w], program_pick(2) ? 127u : 7u, names[w][3],
					suffixes[w], names[w][3], suffixes[w], names[w][3]);
			break;
		default:
			fprintf(f, "\tor%c $%u, %%%s\n\txor %%edx, %%edx\n\tdiv%c %%%s\n",
				suffixes[w], 1 + program_pick(100), names[w][3], suffixes[w],
				names[w][3]);
		}
		break;
	case 16:
		fprintf(f, "\t%s%c %%%s\n",
			(const char *[]){ "inc", "dec", "neg", "not" }[program_pick(4)],
			suffixes[w], reg(w));
		break;
	default: break;
	}
}

static const char *high(void)
{
	return (const char *[]){ "ah", "ch", "dh" }[program_pick(3)];
}

void rare_item(FILE *f)
{
	unsigned w = 2 + program_pick(2);
	const char *r;

	switch (program_pick(16)) {
	case 0:
		fprintf(f, "\tmov %%%s, %%%s\n", high(),
			(const char *[]){ "al", "cl", "dl" }[program_pick(3)]);
		break;
	case 1:
		fprintf(f, "\t%sb $%d, %%%s\n",
			(const char *[]){ "and", "add", "xor", "mov", "cmp" }[program_pick(5)],
			(int)(int8_t)program_pick(256), high());
		break;
	case 2:
		fprintf(f, "\tmovzbl %%%s, %%%s\n", high(),
			(const char *[]){ "eax", "ecx", "edx" }[program_pick(3)]);
		break;
	case 3:
		fprintf(f, "\t%s%c $%u, %%%s\n",
			(const char *[]){ "bts", "btr", "btc" }[program_pick(3)], suffixes[w],
			program_pick(64), reg(w));
		break;
	case 4:
		r = reg(w);
		fprintf(f, "\t%s%c %%%s, %%%s\n\tsetc %%%s\n",
			(const char *[]){ "bts", "btr", "btc", "bt" }[program_pick(4)], suffixes[w],
			r, reg(w), reg(0));
		break;
	case 5:
		fprintf(f, "\t%sq $%u, %u(%%rsi)\n",
			(const char *[]){ "bts", "lock btr", "btc" }[program_pick(3)],
			program_pick(64), 8 * program_pick(8));
		break;
	case 6:
		fprintf(f, "\tmovzbl %%al, %%eax\n\tor $%u, %%cl\n\t%s %%cl\n",
			1 + program_pick(100), program_pick(2) ? "div" : "mul");
		break;
	case 7: fprintf(f, "\timul %%%s, %%%s\n\tcwtd\n", reg(1), reg(1)); break;
	case 8:
		compare(f);
		fprintf(f, "\tcmov%s %%%s, %%%s\n", condition(), reg(1), reg(1));
		break;
	case 9:
		fprintf(f, "\t%s%c %%cl, %%%s, %%%s\n", program_pick(2) ? "shld" : "shrd",
			suffixes[w], reg(w), reg(w));
		break;
	case 10:
		w = program_pick(4);
		fprintf(f, "\txchg%c %%%s, %u(%%rsi)\n", suffixes[w], reg(w), 8 * program_pick(8));
		break;
	case 11:
		w = program_pick(4);
		fprintf(f, "\tlock xadd%c %%%s, %u(%%%s)\n", suffixes[w], reg(w),
			8 * program_pick(4), program_pick(2) ? "rsi" : "rsp");
		break;
	case 12:
		fprintf(f, "\tpushq %u(%%%s)\n\tpop %%%s\n", 8 * program_pick(8),
			program_pick(2) ? "rdi" : "rsi", reg(3));
		break;
	case 13:
		fprintf(f, "\t%s %%%s, %%%s\n",
			(const char *[]){ "bsf", "bsr", "tzcnt", "lzcnt",
					  "popcnt" }[program_pick(5)],
			reg(w), reg(w));
		break;
	case 14:
		if (program_pick(2))
			fprintf(f, "\t%s %%%s, %%%s\n",
				(const char *[]){ "blsi", "blsr", "blsmsk" }[program_pick(3)],
				reg(w), reg(w));
		else
			fprintf(f, "\t%s %%%s, %%%s, %%%s\n",
				(const char *[]){ "andn", "bzhi", "shlx", "shrx", "sarx",
						  "mulx" }[program_pick(6)],
				reg(w), reg(w), reg(w));
		break;
	default: /* the argument registers are kept in others meanwhile */
		fprintf(f, "\tmov %%rdi, %%rbx\n\tmov %%rsi, %%r13\n");
		if (program_pick(2))
			fprintf(f, "\tmov $%u, %%ecx\n\tlea (%%r%s), %%rdi\n\trep stos%c\n",
				program_pick(5), program_pick(2) ? "sp" : "si",
				(char)"bq"[program_pick(2)]);
		else
			fprintf(f, "\tmov $%u, %%ecx\n\txchg %%rsi, %%rdi\n\t%srep movs%c\n",
				program_pick(9),
				program_pick(2) ? "mov %rsp, %rdi\n\tand $3, %ecx\n\t" : "",
				(char)"bq"[program_pick(2)]);
		fprintf(f, "\tmov %%rbx, %%rdi\n\tmov %%r13, %%rsi\n\txor %%ebx, %%ebx\n");
	}
}
