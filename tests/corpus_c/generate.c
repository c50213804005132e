/* SPDX-License-Identifier: MIT */
/* See generate.h. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "generate.h"

enum { SCALARS = 6, ARRAYS = 3, LOCALS = 5 };

static const char *const types[] = {"uint8_t", "int8_t", "uint16_t", "int16_t", "uint32_t", "int32_t", "uint64_t", "int64_t"};

struct generator {
	FILE *out;
	uint64_t random;
	unsigned indent, loops, functions, depth;
	unsigned scalar_type[SCALARS], array_type[ARRAYS], array_size[ARRAYS], local_type[LOCALS];
	unsigned buffer_size, table_size, loop_vars[8], loop_count, budget;
	int in_function; /* number of the function that is being written, -1 in the probe */
};

static unsigned pick(struct generator *g, unsigned n)
{
	uint64_t z = g->random += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (unsigned)((z ^ z >> 31) % n);
}

static void __attribute__((format(printf, 2, 3))) say(struct generator *g, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(g->out, format, args);
	va_end(args);
}

static void line(struct generator *g)
{
	fputc('\n', g->out);
	for (unsigned i = 0; i < g->indent; i++)
		fputc('\t', g->out);
}

static void expression(struct generator *g, unsigned depth);

/* An index below `size`: masked, by remainder, by comparison, by a shift, or a loop's counter. */
static void index_below(struct generator *g, unsigned size, unsigned depth)
{
	if (g->loop_count && pick(g, 3) == 0) {
		say(g, "i%u %% %u", g->loop_vars[pick(g, g->loop_count)], size);
		return;
	}
	switch (pick(g, 4)) {
	case 0:
		say(g, "(uint64_t)");
		expression(g, depth);
		say(g, " %% %u", size);
		return;
	case 1:
		say(g, "below((uint64_t)");
		expression(g, depth);
		say(g, ", %u)", size);
		return;
	case 2:
		if (!(size & (size - 1))) {
			say(g, "(unsigned)");
			expression(g, depth);
			say(g, " & %u", size - 1);
			return;
		}
		/* fall through */
	default:
		say(g, "(uint32_t)(((uint64_t)(uint32_t)");
		expression(g, depth);
		say(g, " * %u) >> 32)", size);
	}
}

static void leaf(struct generator *g)
{
	static const char *const constants[] = {"0", "1", "-1", "7", "255", "4096", "0x7fffffff", "0x80000000u", "UINT64_C(0x8000000000000000)", "~UINT64_C(0)"};

	switch (pick(g, g->in_function < 0 ? 7 : 5)) {
	case 0:
		say(g, "%s", constants[pick(g, 10)]);
		return;
	case 1:
	case 2:
		say(g, "v%u", pick(g, LOCALS));
		return;
	case 3:
		if (g->loop_count) {
			say(g, "i%u", g->loop_vars[pick(g, g->loop_count)]);
			return;
		}
		/* fall through */
	case 4:
		say(g, "state->s%u", pick(g, SCALARS));
		return;
	case 5:
		say(g, "event->arg[%u]", pick(g, 3) ? 2 + pick(g, 2) : pick(g, 2) * 5);
		return;
	default:
		say(g, "event->%s", pick(g, 2) ? "tid" : "cpu");
	}
}

static void element(struct generator *g, unsigned depth)
{
	unsigned a = pick(g, ARRAYS + 2);

	if (a < ARRAYS) {
		say(g, "state->a%u[", a);
		index_below(g, g->array_size[a], depth);
	} else if (a == ARRAYS) {
		say(g, "table[");
		index_below(g, g->table_size, depth);
	} else {
		say(g, "bytes[");
		index_below(g, g->buffer_size, depth);
	}
	say(g, "]");
}

static void call(struct generator *g, unsigned depth)
{
	unsigned f = pick(g, g->in_function < 0 ? g->functions : (unsigned)g->in_function);

	say(g, "f%u(state, bytes, ", f);
	expression(g, depth);
	say(g, ", ");
	expression(g, depth);
	say(g, ")");
}

static void unary(struct generator *g, unsigned depth)
{
	static const char *const before[] = {"(uint64_t)~(", "(uint64_t)-(uint64_t)(", "(uint8_t)(", "(int16_t)(", "(uint64_t)(int32_t)(", "!(", "(uint64_t)__builtin_popcountll(",
					     "__builtin_bswap32((uint32_t)", "(uint64_t)__builtin_clzll(1 | (uint64_t)", "(uint64_t)__builtin_ctzll(UINT64_C(1) << 63 | (uint64_t)",
					     "rotate((uint64_t)", "high_half((uint64_t)"};

	say(g, "%s", before[pick(g, sizeof(before) / sizeof(*before))]);
	expression(g, depth - 1);
	say(g, ")");
}

static void expression(struct generator *g, unsigned depth)
{
	static const char *const operators[] = {"+", "-", "*", "&", "|", "^", "+", "-"};
	static const char *const comparisons[] = {"<", "<=", ">", ">=", "==", "!="};

	if (!depth) {
		leaf(g);
		return;
	}
	switch (pick(g, 12)) {
	case 0:
	case 1:
		element(g, depth - 1);
		return;
	case 2:
		unary(g, depth);
		return;
	case 3:
		say(g, "((uint64_t)(");
		expression(g, depth - 1);
		say(g, pick(g, 2) ? ") << (" : ") >> (");
		expression(g, depth - 1);
		say(g, " & %u))", pick(g, 2) ? 63 : 31);
		return;
	case 4:
		say(g, pick(g, 2) ? "quotient((uint64_t)" : "signed_remainder((int64_t)");
		expression(g, depth - 1);
		say(g, ", ");
		expression(g, depth - 1);
		say(g, ")");
		return;
	case 5:
		say(g, "(");
		expression(g, depth - 1);
		say(g, " %s ", comparisons[pick(g, 6)]);
		expression(g, depth - 1);
		say(g, " ? (uint64_t)");
		expression(g, depth - 1);
		say(g, " : ");
		expression(g, depth - 1);
		say(g, ")");
		return;
	case 6:
		if (g->in_function < 0 ? g->functions : (unsigned)g->in_function) {
			call(g, depth - 1);
			return;
		}
		/* fall through */
	default:
		say(g, "((%s)", types[4 + pick(g, 4)]);
		expression(g, depth - 1);
		say(g, " %s ", operators[pick(g, 8)]);
		expression(g, depth - 1);
		say(g, ")");
	}
}

static void statements(struct generator *g, unsigned count);

static void assignment(struct generator *g)
{
	static const char *const assign[] = {"=", "+=", "-=", "^=", "|=", "&=", "="};
	unsigned a = pick(g, ARRAYS);

	line(g);
	switch (pick(g, 7)) {
	case 0:
	case 1:
		say(g, "v%u %s ", pick(g, LOCALS), assign[pick(g, 7)]);
		break;
	case 2:
		say(g, "state->s%u %s ", pick(g, SCALARS), assign[pick(g, 7)]);
		break;
	case 3:
		say(g, "state->field.%c = ", "abcd"[pick(g, 4)]);
		break;
	case 4:
		say(g, "bytes[");
		index_below(g, g->buffer_size, 1);
		say(g, "] = (uint8_t)");
		break;
	case 5:
		say(g, "*(%s ? &v0 : &v1) ^= ", pick(g, 2) ? "state->field.b" : "v2 & 1");
		break;
	default:
		say(g, "state->a%u[", a);
		index_below(g, g->array_size[a], 1);
		say(g, "] %s ", assign[pick(g, 7)]);
	}
	expression(g, 2);
	say(g, ";");
}

static void block(struct generator *g, unsigned count)
{
	say(g, " {");
	g->indent++;
	statements(g, count);
	g->indent--;
	line(g);
	say(g, "}");
}

static void loop(struct generator *g)
{
	unsigned n = g->loops++, bound = 1 + pick(g, g->loop_count ? 6 : 20);

	line(g);
	switch (pick(g, 4)) {
	case 0:
		say(g, "for (unsigned i%u = %u; i%u-- > 0;)", n, bound, n);
		break;
	case 1:
		say(g, "for (unsigned i%u = 0, n%u = (unsigned)v%u & %u; i%u < n%u; i%u++)", n, n, pick(g, LOCALS), (bound | 3) & 15, n, n, n);
		break;
	case 2:
		say(g, "for (int i%u = %d; i%u < %u; i%u += %u)", n, pick(g, 3), n, bound, n, 1 + pick(g, 3));
		break;
	default:
		say(g, "for (unsigned i%u = 0; i%u < %u; i%u++)", n, n, bound, n);
	}
	g->loop_vars[g->loop_count++] = n;
	block(g, 1 + pick(g, 2));
	g->loop_count--;
	if (pick(g, 3) == 0 && g->loop_count) {
		line(g);
		say(g, "if (v%u == 3)", pick(g, LOCALS));
		g->indent++;
		line(g);
		say(g, pick(g, 2) ? "break;" : "continue;");
		g->indent--;
	}
}

static void branch(struct generator *g)
{
	line(g);
	say(g, "if (");
	expression(g, 2);
	say(g, ")");
	block(g, 1 + pick(g, 2));
	if (pick(g, 2)) {
		say(g, " else");
		block(g, 1);
	}
}

static void choose(struct generator *g)
{
	unsigned cases = 3 + pick(g, 6);

	line(g);
	say(g, "switch ((uint64_t)");
	expression(g, 1);
	say(g, " %% %u) {", cases + 1);
	for (unsigned c = 0; c < cases; c++) {
		line(g);
		say(g, "case %u:", c);
		g->indent++;
		assignment(g);
		if (pick(g, 4)) {
			line(g);
			say(g, "break;");
		}
		g->indent--;
	}
	line(g);
	say(g, "default:");
	g->indent++;
	assignment(g);
	g->indent--;
	line(g);
	say(g, "}");
}

static void statements(struct generator *g, unsigned count)
{
	for (unsigned i = 0; i < count && g->budget; i++) {
		unsigned kind = g->depth >= 3 ? 0 : pick(g, 8);

		g->budget--;
		g->depth++;
		if (kind < 4)
			assignment(g);
		else if (kind < 6)
			branch(g);
		else if (kind == 6 && g->loop_count < 2)
			loop(g);
		else
			choose(g);
		g->depth--;
	}
}

static void locals(struct generator *g, const char *const *from)
{
	for (unsigned i = 0; i < LOCALS; i++) {
		line(g);
		say(g, "%s v%u = (%s)%s;", types[i < 2 ? 6 : g->local_type[i]], i, types[i < 2 ? 6 : g->local_type[i]], from[i]);
	}
}

static void function(struct generator *g, unsigned number)
{
	static const char *const from[LOCALS] = {"x", "y", "(x ^ y)", "(x >> 8)", "0"};

	g->in_function = (int)number;
	g->budget = 6;
	say(g, "\nstatic uint64_t f%u(STATE *state, uint8_t *bytes, uint64_t x, uint64_t y)\n{", number);
	g->indent = 1;
	locals(g, from);
	statements(g, 3);
	line(g);
	say(g, "return v0 ^ (uint64_t)v2 ^ (uint64_t)v4 ^ bytes[%u];\n}\n", g->buffer_size - 1);
}

static void declarations(struct generator *g)
{
	for (unsigned i = 0; i < SCALARS; i++)
		g->scalar_type[i] = pick(g, 8);
	for (unsigned i = 0; i < LOCALS; i++)
		g->local_type[i] = pick(g, 8);
	for (unsigned i = 0; i < ARRAYS; i++) {
		g->array_type[i] = pick(g, 8);
		g->array_size[i] = pick(g, 2) ? 4u << pick(g, 5) : 3 + pick(g, 40);
	}
	g->buffer_size = 8 + pick(g, 40);
	g->table_size = 4 + pick(g, 28);
	say(g, "STATE {\n");
	for (unsigned i = 0; i < SCALARS; i++)
		say(g, "\t%s s%u;\n", types[g->scalar_type[i]], i);
	say(g, "\tstruct { unsigned a : %u, b : 1; int c : %u; uint64_t d : %u; } field;\n", 1 + pick(g, 12), 2 + pick(g, 12), 1 + pick(g, 40));
	for (unsigned i = 0; i < ARRAYS; i++)
		say(g, "\t%s a%u[%u];\n", types[g->array_type[i]], i, g->array_size[i]);
	say(g, "\tuint64_t events;\n};\n\nstatic const %s table[%u] = {", types[pick(g, 8)], g->table_size);
	for (unsigned i = 0; i < g->table_size; i++)
		say(g, "%s%u", i ? ", " : "", pick(g, 128));
	say(g, "};\n");
}

static const char helpers[] =
	"\nstatic inline uint64_t below(uint64_t x, uint64_t n)\n{\n\treturn x < n ? x : n - 1;\n}\n"
	"\nstatic inline uint64_t quotient(uint64_t x, uint64_t y)\n{\n\treturn y ? x / y : x;\n}\n"
	"\nstatic inline int64_t signed_remainder(int64_t x, int64_t y)\n{\n\treturn y > 1 ? x % y : x;\n}\n"
	"\nstatic inline uint64_t rotate(uint64_t x)\n{\n\treturn x << 13 | x >> 51;\n}\n"
	"\nstatic inline uint64_t high_half(uint64_t x)\n{\n\treturn (uint64_t)((unsigned __int128)x * UINT64_C(0x9e3779b97f4a7c15) >> 64);\n}\n";

void generate_program(uint64_t seed, FILE *out)
{
	static const char *const from[LOCALS] = {"event->arg[2]", "event->arg[3]", "event->arg[0]", "event->arg[5]", "event->tid"};
	struct generator g = {.out = out, .random = seed * UINT64_C(0x2545f4914f6cdd1d)};

	say(&g, "/* Generated, seed %llu. */\n// needs: nothing\n#include \"corpus.h\"\n\n", (unsigned long long)seed);
	declarations(&g);
	say(&g, "%s", helpers);
	g.functions = pick(&g, 4);
	for (unsigned f = 0; f < g.functions; f++)
		function(&g, f);
	g.in_function = -1;
	g.budget = 10 + pick(&g, 14);
	say(&g, "\nPROBE(\"libc!write\")\n{");
	g.indent = 1;
	line(&g);
	say(&g, "uint8_t bytes[%u];", g.buffer_size);
	locals(&g, from);
	say(&g, "\n\n\tstate->events++;\n\tif (READ(bytes, event->arg[1]))\n\t\treturn;");
	statements(&g, g.budget);
	for (unsigned i = 0; i < LOCALS; i++) {
		line(&g);
		say(&g, "state->s%u ^= (%s)v%u;", i, types[g.scalar_type[i]], i);
	}
	say(&g, "\n}\n");
}
