/* SPDX-License-Identifier: MIT */
#include "trees.h"
#include "tests/query/running.h"

uint64_t random_state = 1;
unsigned events_have = HAS_ARGUMENTS | HAS_ALWAYS;

uint64_t random_word(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state * 0x2545f4914f6cdd1du;
}

unsigned below(unsigned n)
{
	return (unsigned)((random_word() >> 33) % n);
}

int64_t interesting(void)
{
	static const int64_t values[] = { 0,  1,  -1,   2,         -2,        7,         63,
					  64, 65, 1024, INT64_MAX, INT64_MIN, INT32_MIN, 255 };
	if (below(3))
		return values[below(sizeof(values) / sizeof(values[0]))];
	return (int64_t)(random_word() >> below(64));
}

void random_event(struct fay_event *event)
{
	static const char *const names[] = { "redis-server", "redis", "", "postgres",
					     "abcdefghijklmno" };
	memset(event, 0, sizeof(*event));
	for (unsigned i = 0; i < 6; i++)
		event->arg[i] = (uint64_t)interesting();
	event->time = below(4) ? NOW + below(2000) - 1000 : random_word();
	event->cycles = random_word();
	event->function = fay_name_hash(below(2) ? "read" : "write");
	event->module = fay_name_hash("libc.so.6");
	event->pid = (uint32_t)random_word();
	event->tid = below(5);
	event->cpu = below(64);
	snprintf(event->comm, sizeof(event->comm), "%s", names[below(5)]);
}

static const char *const string_tests[] = {
	"x.comm == \"redis\"",
	"x.comm != \"redis-server\"",
	"x.comm.StartsWith(\"redis\")",
	"x.function == \"read\"",
	"\"abcdefghijklmno\" == x.comm",
	"x.comm.StartsWith(\"postgres-\")",
	"x.comm.StartsWith(\"\")",
	"x.module != \"libc.so.6\"",
	"(x.cpu > 9 ? x.comm : \"a\") == \"a\"",
	"x.comm.EndsWith(\"server\")",
	"x.comm.EndsWith(\"\")",
	"x.comm.Contains(\"gre\")",
	"x.comm.Contains(\"s-s\")",
	"x.comm.Contains(\"\")",
	"x.comm.EndsWith(\"abcdefghijklmno\")",
	"x.comm.Contains(\"no\")",
	"x.comm.Length > 7",
	"x.comm.Length == x.comm.Length % 13",
	"(x.cpu > 9 ? x.comm : \"redis\").EndsWith(\"is\")",
};

static bool ends_with(const char *text, const char *end)
{
	return strlen(text) >= strlen(end) && strcmp(text + strlen(text) - strlen(end), end) == 0;
}

static bool string_test(unsigned index, const struct fay_event *e)
{
	switch (index) {
	case 0: return strcmp(e->comm, "redis") == 0;
	case 1: return strcmp(e->comm, "redis-server") != 0;
	case 2: return strncmp(e->comm, "redis", 5) == 0;
	case 3: return e->function == fay_name_hash("read");
	case 4: return strcmp(e->comm, "abcdefghijklmno") == 0;
	case 5: return strncmp(e->comm, "postgres-", 9) == 0;
	case 6: return true;
	case 7: return e->module != fay_name_hash("libc.so.6");
	case 8: return e->cpu > 9 ? strcmp(e->comm, "a") == 0 : true;
	case 9: return ends_with(e->comm, "server");
	case 11: return strstr(e->comm, "gre") != NULL;
	case 12: return strstr(e->comm, "s-s") != NULL;
	case 14: return ends_with(e->comm, "abcdefghijklmno");
	case 15: return strstr(e->comm, "no") != NULL;
	case 16: return strlen(e->comm) > 7;
	case 17: return strlen(e->comm) < 13;
	case 18: return e->cpu > 9 ? ends_with(e->comm, "is") : true;
	default: /* contains "", ends with "" */ return true;
	}
}

static struct tree *leaf_of(const char *op, unsigned index, int64_t constant)
{
	struct tree *t = calloc(1, sizeof(*t));
	assert_non_null(t);
	strcpy(t->op, op);
	t->index = index;
	t->constant = constant;
	return t;
}

static struct tree *random_test(void)
{
	bool timed = events_have & HAS_TIME;
	unsigned test;
	if ((events_have & HAS_FAILED) && below(3) == 0)
		return leaf_of("x", 0, 0);
	if (timed && below(2))
		return leaf_of("t", below(6), 0);
	do
		test = below(sizeof(string_tests) / sizeof(*string_tests));
	while (!(events_have & HAS_MODULE) && strstr(string_tests[test], "x.module"));
	return leaf_of("s", test, 0);
}

static const char *const fields[] = { "pid", "tid", "cpu", "tid", "cpu", "cycles" };

static struct tree *random_number(void)
{
	unsigned choice = below(12);
	if (choice < 7 && (events_have & (HAS_RESULT | HAS_DURATION)) && below(2))
		return leaf_of("r",
			       !(events_have & HAS_RESULT) ||
				       ((events_have & HAS_DURATION) && below(2)),
			       0);
	if (choice < 7 && (events_have & HAS_ARGUMENTS))
		return leaf_of("a", below(6), 0);
	if (choice == 7 && (events_have & HAS_TIME))
		return leaf_of("n", 0, 0);
	if (choice < 10)
		return leaf_of("f", below(events_have & HAS_CYCLES ? 6 : 5), 0);
	return leaf_of("k", below(2), interesting());
}

static struct tree *operation(const char *op, struct tree *a, struct tree *b, struct tree *c)
{
	struct tree *t = leaf_of(op, 0, 0);
	t->a = a;
	t->b = b;
	t->c = c;
	return t;
}

struct tree *random_tree(bool is_bool, unsigned depth)
{
	static const char *const ints[] = { "+",  "-",   "*", "/", "%", "<<",
					    ">>", ">>>", "&", "|", "^", "/" };
	static const char *const compares[] = { "==", "!=", "<", "<=", ">", ">=" };
	static const char *const logics[] = { "&&", "||", "&", "|", "^", "==", "!=" };
	unsigned choice = below(8);
	if (depth == 0 || choice == 0)
		return is_bool ? random_test() : random_number();
	bool logic = is_bool && below(2), tests = choice == 1 || (choice == 2 ? is_bool : logic);
	struct tree *a = random_tree(tests, depth - 1);
	if (choice == 2)
		return operation(is_bool ? "!" : below(2) ? "neg" : "~", a, NULL, NULL);
	struct tree *b = random_tree(choice == 1 ? is_bool : logic, depth - 1);
	if (choice == 1)
		return operation("?", a, b, random_tree(is_bool, depth - 1));
	return operation(!is_bool ? ints[below(12)]
			 : logic  ? logics[below(7)]
				  : compares[below(6)],
			 a, b, NULL);
}

struct tree *random_category(void)
{
	unsigned choice = below(6);
	if (choice == 0 && (events_have & HAS_ARGUMENTS))
		return operation("&", leaf_of("a", 0, 0), leaf_of("k", 1, 3), NULL);
	if (choice == 1 && (events_have & HAS_RESULT))
		return operation("&", leaf_of("r", 0, 0), leaf_of("k", 1, 3), NULL);
	if (choice == 2 && (events_have & HAS_DURATION))
		return operation("%", leaf_of("r", 1, 0), leaf_of("k", 1, 4), NULL);
	if (choice == 3 && (events_have & HAS_TIME))
		return operation("/", leaf_of("n", 0, 0), leaf_of("k", 1, 4000000), NULL);
	if (choice == 4)
		return operation("%", leaf_of("f", 2, 0), leaf_of("k", 1, 3), NULL);
	return leaf_of("f", 1, 0);
}

void free_tree(struct tree *t)
{
	if (!t)
		return;
	free_tree(t->a);
	free_tree(t->b);
	free_tree(t->c);
	free(t);
}

static const char *const ends[] = { "ReturnValue", "Duration" };
static const char *const times[] = { "x.time < Now",     "x.time >= Now.AddMilliseconds(0.0005)",
				     "x.time == Now",    "Now.AddSeconds(-0.0000002) <= x.time",
				     "x.time != x.time", "x.time > Now.AddHours(24)" };

void print_tree(FILE *out, const struct tree *t)
{
	if (!strcmp(t->op, "a"))
		fprintf(out, "x.Arg(%u)", t->index);
	else if (!strcmp(t->op, "f"))
		fprintf(out, "x.%s", fields[t->index]);
	else if (!strcmp(t->op, "k"))
		fprintf(out, t->index % 2 ? "(%lld)" : "(0x%llx)", (long long)t->constant);
	else if (!strcmp(t->op, "n"))
		fputs("(x.time - Now)", out);
	else if (!strcmp(t->op, "r"))
		fprintf(out, "x.%s", ends[t->index]);
	else if (!strcmp(t->op, "x"))
		fputs("x.Failed", out);
	else if (!strcmp(t->op, "t"))
		fprintf(out, "(%s)", times[t->index]);
	else if (!strcmp(t->op, "s"))
		fprintf(out, "(%s)", string_tests[t->index]);
	else {
		fputc('(', out);
		if (!t->b)
			fputs(!strcmp(t->op, "neg") ? "- " : t->op, out);
		print_tree(out, t->a);
		if (t->b) {
			fprintf(out, " %s ", t->op);
			print_tree(out, t->b);
		}
		if (t->c) {
			fputs(" : ", out);
			print_tree(out, t->c);
		}
		fputc(')', out);
	}
}

static int64_t leaf(const struct tree *t, const struct fay_event *e)
{
	const uint64_t values[] = { e->pid, e->tid, e->cpu, e->tid, e->cpu, e->cycles };
	const bool tests[] = { e->time < NOW,  e->time >= NOW + 500,
			       e->time == NOW, NOW - 200 <= e->time,
			       false,          e->time > NOW + 86400000000000u };
	switch (t->op[0]) {
	case 'a': return (int64_t)e->arg[t->index];
	case 'f': return (int64_t)values[t->index];
	case 'k': return t->constant;
	case 't': return tests[t->index];
	case 'n': return (int64_t)(e->time - NOW);
	case 'r': return (int64_t)(t->index ? e->duration : e->retval);
	case 'x': return e->reserved & EVENT_FAILED;
	default: return string_test(t->index, e);
	}
}

/* The language's definition, in 128-bit arithmetic where the result wraps. */
int64_t evaluate(const struct tree *t, const struct fay_event *e)
{
	const char *op = t->op;
	if (!t->a)
		return leaf(t, e);
	int64_t a = evaluate(t->a, e);
	if (!strcmp(op, "?"))
		return a ? evaluate(t->b, e) : evaluate(t->c, e);
	if (!t->b)
		return !strcmp(op, "!") ? !a : !strcmp(op, "~") ? ~a : (int64_t)-(__int128)a;
	int64_t b = evaluate(t->b, e);
	__int128 x = a, y = b;
	if (!strcmp(op, "+"))
		return (int64_t)(x + y);
	if (!strcmp(op, "-"))
		return (int64_t)(x - y);
	if (!strcmp(op, "*"))
		return (int64_t)((uint64_t)a * (uint64_t)b);
	if (!strcmp(op, "/"))
		return b ? (int64_t)(x / y) : 0;
	if (!strcmp(op, "%"))
		return b ? (int64_t)(x % y) : 0;
	unsigned count = (unsigned)(b & 63);
	if (!strcmp(op, "<<"))
		return (int64_t)((uint64_t)a << count);
	if (!strcmp(op, ">>"))
		return a < 0 ? ~(int64_t)(~(uint64_t)a >> count) : (int64_t)((uint64_t)a >> count);
	if (!strcmp(op, ">>>"))
		return (int64_t)((uint64_t)a >> count);
	if (!strcmp(op, "&") || !strcmp(op, "&&"))
		return a & b;
	if (!strcmp(op, "|") || !strcmp(op, "||"))
		return a | b;
	if (!strcmp(op, "^"))
		return a ^ b;
	if (!strcmp(op, "=="))
		return a == b;
	if (!strcmp(op, "!="))
		return a != b;
	if (!strcmp(op, "<"))
		return a < b;
	if (!strcmp(op, "<="))
		return a <= b;
	return !strcmp(op, ">") ? a > b : a >= b;
}
