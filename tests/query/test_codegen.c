/* SPDX-License-Identifier: MIT */
/*
 * The generated probe, run in this process by LLVM's JIT, against a reference that shares no code with
 * query/: random expression trees are written as text, planned, generated and run over random events, and
 * the test evaluates the same trees itself. Tables are compared with a plain list of groups, also when
 * they overflow into a fay_flush() of the test's. FAY_SEED sets the seed (printed).
 */
#include "running.h"

/* --- random events and expressions --- */

static uint64_t random_state = 1;

static uint64_t random_word(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state * 0x2545f4914f6cdd1du;
}

static unsigned below(unsigned n)
{
	return (unsigned)((random_word() >> 33) % n);
}

static int64_t interesting(void)
{
	static const int64_t values[] = {0,	    1,	       -1,	  2,  -2, 7, 63, 64, 65, 1024,
					 INT64_MAX, INT64_MIN, INT32_MIN, 255};
	if (below(3))
		return values[below(sizeof(values) / sizeof(values[0]))];
	return (int64_t)(random_word() >> below(64));
}

static void random_event(struct fay_event *event)
{
	static const char *const names[] = {"redis-server", "redis", "", "postgres", "abcdefghijklmno"};
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

/* A random expression: its operator, operands, and for leaves what to read. */
struct tree {
	char op[4]; /* "a": argument, "f": field, "k": constant, "t": time, "s": string test, "?" */
	bool is_bool;
	unsigned index;
	int64_t constant;
	struct tree *a, *b, *c;
};

static const char *const string_tests[] = {
	"x.comm == \"redis\"",		     "x.comm != \"redis-server\"",
	"x.comm.StartsWith(\"redis\")",	     "x.function == \"read\"",
	"\"abcdefghijklmno\" == x.comm",     "x.comm.StartsWith(\"postgres-\")",
	"x.comm.StartsWith(\"\")",	     "x.module != \"libc.so.6\"",
	"(x.cpu > 9 ? x.comm : \"a\") == \"a\"",
};

static bool string_test(unsigned index, const struct fay_event *e)
{
	switch (index) {
	case 0:
		return strcmp(e->comm, "redis") == 0;
	case 1:
		return strcmp(e->comm, "redis-server") != 0;
	case 2:
		return strncmp(e->comm, "redis", 5) == 0;
	case 3:
		return e->function == fay_name_hash("read");
	case 4:
		return strcmp(e->comm, "abcdefghijklmno") == 0;
	case 5:
		return strncmp(e->comm, "postgres-", 9) == 0;
	case 6:
		return true;
	case 7:
		return e->module != fay_name_hash("libc.so.6");
	default:
		return e->cpu > 9 ? strcmp(e->comm, "a") == 0 : true;
	}
}

static struct tree *random_tree(bool is_bool, unsigned depth)
{
	static const char *const ints[] = {"+", "-", "*", "/", "%", "<<", ">>", ">>>", "&", "|", "^", "/"};
	static const char *const compares[] = {"==", "!=", "<", "<=", ">", ">="};
	static const char *const logics[] = {"&&", "||", "&", "|", "^", "==", "!="};
	struct tree *t = calloc(1, sizeof(*t));
	assert_non_null(t);
	t->is_bool = is_bool;
	unsigned choice = below(8);
	if (depth == 0 || choice == 0) {
		strcpy(t->op, is_bool ? (below(2) ? "t" : "s") : below(3) ? "a" : below(2) ? "f" : "k");
		t->index = below(strcmp(t->op, "s") ? 6 : sizeof(string_tests) / sizeof(*string_tests));
		t->constant = interesting();
	} else if (choice == 1) {
		strcpy(t->op, "?");
		t->a = random_tree(true, depth - 1);
		t->b = random_tree(is_bool, depth - 1);
		t->c = random_tree(is_bool, depth - 1);
	} else if (choice == 2) {
		strcpy(t->op, is_bool ? "!" : below(2) ? "neg" : "~");
		t->a = random_tree(is_bool, depth - 1);
	} else {
		bool logic = is_bool && below(2);
		strcpy(t->op, !is_bool ? ints[below(12)] : logic ? logics[below(7)] : compares[below(6)]);
		t->a = random_tree(logic, depth - 1);
		t->b = random_tree(logic, depth - 1);
	}
	return t;
}

static void free_tree(struct tree *t)
{
	if (!t)
		return;
	free_tree(t->a);
	free_tree(t->b);
	free_tree(t->c);
	free(t);
}

static const char *const fields[] = {"pid", "tid", "cpu", "cycles", "tid", "cpu"};
static const char *const times[] = {"x.time < Now",	 "x.time >= Now.AddMilliseconds(0.0005)",
				    "x.time == Now",	 "Now.AddSeconds(-0.0000002) <= x.time",
				    "x.time != x.time",	 "x.time > Now.AddHours(24)"};

static void print_tree(FILE *out, const struct tree *t)
{
	if (!strcmp(t->op, "a"))
		fprintf(out, "x.Arg(%u)", t->index);
	else if (!strcmp(t->op, "f"))
		fprintf(out, "x.%s", fields[t->index]);
	else if (!strcmp(t->op, "k"))
		fprintf(out, t->index % 2 ? "(%lld)" : "(0x%llx)", (long long)t->constant);
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
	const uint64_t values[] = {e->pid, e->tid, e->cpu, e->cycles, e->tid, e->cpu};
	const bool tests[] = {e->time < NOW,  e->time >= NOW + 500,	   e->time == NOW,
			      NOW - 200 <= e->time, false, e->time > NOW + 86400000000000u};
	switch (t->op[0]) {
	case 'a':
		return (int64_t)e->arg[t->index];
	case 'f':
		return (int64_t)values[t->index];
	case 'k':
		return t->constant;
	case 't':
		return tests[t->index];
	default:
		return string_test(t->index, e);
	}
}

/* The language's definition, in 128-bit arithmetic where the result wraps. */
static int64_t evaluate(const struct tree *t, const struct fay_event *e)
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

static char *text_of(const char *before, const struct tree *t, const char *middle,
		     const struct tree *u, const char *after)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	assert_non_null(out);
	fputs(before, out);
	print_tree(out, t);
	fputs(middle, out);
	if (u)
		print_tree(out, u);
	fputs(after, out);
	fclose(out);
	return text;
}

/* Sum of a random expression over the events that pass a random condition. */
static void random_expressions(void **state)
{
	for (unsigned round = 0; round < 150; round++) {
		struct tree *filter = random_tree(true, 3), *sum = random_tree(false, 4);
		char *text = text_of("cluster.Function(\"a!b\").Where(x => ", filter,
				     ").Sum(x => ", sum, ")");
		struct running r;
		struct fay_event event;
		int64_t expected = 0;
		start(&r, text);
		for (unsigned i = 0; i < 60; i++) {
			random_event(&event);
			r.probe(&event, r.local, NULL);
			if (evaluate(filter, &event))
				expected = (int64_t)((uint64_t)expected +
						     (uint64_t)evaluate(sum, &event));
			if (word(r.local, 0) != expected)
				fail_msg("%s: %lld, expected %lld", text,
					 (long long)word(r.local, 0), (long long)expected);
		}
		stop(&r);
		free(text);
		free_tree(filter);
		free_tree(sum);
	}
}

/* Constants alone: the folder against the reference. */
static void random_constants(void **state)
{
	struct fay_event event;
	random_event(&event);
	for (unsigned round = 0; round < 150; round++) {
		int64_t a = interesting(), b = interesting();
		static const char *const ops[] = {"+", "-", "*", "/", "%", "<<", ">>", ">>>", "&", "|", "^"};
		struct tree left = {"k", false, 1, a, NULL, NULL, NULL};
		struct tree right = {"k", false, 1, b, NULL, NULL, NULL};
		struct tree t = {"", false, 0, 0, &left, &right, NULL};
		struct running r;
		strcpy(t.op, ops[below(11)]);
		char *text = text_of("cluster.Function(\"a!b\").Sum(x => ", &t, ")", NULL, "");
		start(&r, text);
		r.probe(&event, r.local, NULL);
		if (word(r.local, 0) != evaluate(&t, &event))
			fail_msg("%s: %lld", text, (long long)word(r.local, 0));
		stop(&r);
		free(text);
	}
}

/* --- groups --- */

struct group {
	int64_t key[3]; /* an integer, a string's two words */
	uint64_t count, big;
	int64_t sum, smallest, largest;
	uint64_t buckets[65];
};

static struct group *groups;
static size_t group_count;

static struct group *find_group(const int64_t key[3])
{
	for (size_t i = 0; i < group_count; i++)
		if (memcmp(groups[i].key, key, sizeof(groups[i].key)) == 0)
			return &groups[i];
	groups = realloc(groups, (group_count + 1) * sizeof(*groups));
	assert_non_null(groups);
	struct group *g = &groups[group_count++];
	memset(g, 0, sizeof(*g));
	memcpy(g->key, key, sizeof(g->key));
	g->smallest = INT64_MAX;
	g->largest = INT64_MIN;
	return g;
}

static unsigned bucket_of(int64_t x)
{
	unsigned bucket = 0;
	if (x <= 0)
		return 0;
	while (x > 0) {
		x >>= 1;
		bucket++;
	}
	return bucket;
}

static void reference_event(const struct fay_event *e)
{
	int64_t key[3] = {(int64_t)e->arg[0], 0, 0}, x = (int64_t)e->arg[1];
	memcpy(&key[1], e->comm, 16);
	struct group *g = find_group(key);
	g->count++;
	g->big += e->cpu > 30;
	g->sum = (int64_t)((uint64_t)g->sum + (uint64_t)x);
	g->smallest = x < g->smallest ? x : g->smallest;
	g->largest = x > g->largest ? x : g->largest;
	g->buckets[bucket_of(x)]++;
}

/* Subtracts a row from the reference's groups; extremes are collected for the check at the end. */
struct extremes {
	int64_t smallest, largest;
};

static void subtract_row(const struct fay_plan *plan, const unsigned char *row,
			 struct extremes *extremes)
{
	const struct fay_spec_column *c = plan->spec.columns;
	int64_t key[3] = {word(row, c[0].offset), word(row, c[1].offset), word(row, c[1].offset + 8)};
	size_t known = group_count;
	struct group *g = find_group(key);
	assert_int_equal(known, group_count); /* no group that there is not */
	struct extremes *e = &extremes[g - groups];
	g->count -= (uint64_t)word(row, c[2].offset);
	g->big -= (uint64_t)word(row, c[3].offset);
	g->sum = (int64_t)((uint64_t)g->sum - (uint64_t)word(row, c[4].offset));
	int64_t smallest = (int64_t)(~(uint64_t)word(row, c[5].offset) ^ (uint64_t)1 << 63);
	int64_t largest = (int64_t)((uint64_t)word(row, c[6].offset) ^ (uint64_t)1 << 63);
	e->smallest = smallest < e->smallest ? smallest : e->smallest;
	e->largest = largest > e->largest ? largest : e->largest;
	for (unsigned i = 0; i < 65; i++)
		g->buckets[i] -= (uint64_t)word(row, c[7].offset + 8 * i);
	/* The average: sum and count, compared with the row's own. */
	assert_int_equal(word(row, c[8].offset), word(row, c[4].offset));
	assert_int_equal(word(row, c[8].offset + 8), word(row, c[2].offset));
}

static const char group_query[] =
	"from x in cluster.Function(\"a!b\") let v = x.Arg(1) group x by new { k = x.Arg(0), x.comm } "
	"into g select new { g.Key, n = g.Count(), big = g.Count(x => x.cpu > 30), s = g.Sum(x => "
	"x.Arg(1)), lo = g.Min(x => x.Arg(1)), hi = g.Max(x => x.Arg(1)), h = g.Histogram(x => "
	"x.Arg(1)), mean = g.Average(x => x.Arg(1)) }";

static void check_groups(const struct running *r)
{
	const struct fay_spec_state *s = &r->plan->spec.states[0];
	struct extremes *extremes = calloc(group_count, sizeof(*extremes));
	assert_non_null(extremes);
	for (size_t i = 0; i < group_count; i++)
		extremes[i] = (struct extremes){INT64_MAX, INT64_MIN};
	for (size_t i = 0; i < handed_count; i++)
		subtract_row(r->plan, handed_on + i * s->row_size, extremes);
	const unsigned char *rows = r->local + s->offset + sizeof(struct fay_table_header);
	for (uint32_t i = 0; i < s->rows; i++, rows += s->row_size)
		if (word(rows, 0))
			subtract_row(r->plan, rows, extremes);
	for (size_t i = 0; i < group_count; i++) {
		assert_int_equal(groups[i].count, 0);
		assert_int_equal(groups[i].big, 0);
		assert_int_equal(groups[i].sum, 0);
		assert_int_equal(groups[i].smallest, extremes[i].smallest);
		assert_int_equal(groups[i].largest, extremes[i].largest);
		for (unsigned b = 0; b < 65; b++)
			assert_int_equal(groups[i].buckets[b], 0);
	}
	free(extremes);
}

static void group_rounds(unsigned keys, unsigned events, bool overflow)
{
	struct running r;
	struct fay_event event;
	group_count = 0;
	start(&r, group_query);
	for (unsigned i = 0; i < events; i++) {
		random_event(&event);
		event.arg[0] = below(keys) * 0x100000001u;
		r.probe(&event, r.local, NULL);
		reference_event(&event);
	}
	assert_int_equal(flushes != 0, overflow);
	check_groups(&r);
	stop(&r);
}

static void few_groups(void **state)
{
	group_rounds(3, 5000, false);
	group_rounds(10, 5000, false);
}

static void table_overflow(void **state)
{
	group_rounds(200, 4000, true);
	group_rounds(100000, 3000, true);
}

/* fay_flush has no room: the event is dropped, the table is as it was, known keys still count. */
static void no_room_for_flush(void **state)
{
	struct running r;
	struct fay_event event;
	uint64_t total = 0;
	start(&r, "from x in cluster.Function(\"a!b\") group x by x.Arg(0) into g select new { g.Key, n "
		  "= g.Count() }");
	const struct fay_spec_state *s = &r.plan->spec.states[0];
	memset(&event, 0, sizeof(event));
	no_room = true;
	for (unsigned i = 0; i < 3 * s->rows; i++) {
		event.arg[0] = i;
		r.probe(&event, r.local, NULL);
	}
	assert_true(flushes > 0);
	for (uint32_t i = 0; i < s->rows; i++)
		total += (uint64_t)word(r.local, s->offset + 16 + i * s->row_size + 16);
	assert_int_equal(total + flushes, 3 * s->rows);
	assert_int_equal(word(r.local, 0), total);
	assert_true(total <= s->rows - s->rows / 8);
	event.arg[0] = 0;
	unsigned before = flushes;
	r.probe(&event, r.local, NULL);
	assert_int_equal(flushes, before);
	stop(&r);
}

static void stream_rows(void **state)
{
	struct running r;
	struct fay_event event;
	start(&r, "from x in cluster.Function(\"a!b\") where x.cpu > 31 select new { x.comm, x.tid, big = "
		  "x.Arg(2) > 5, x.time, name = \"abcdefghijklmnop\" }");
	const struct fay_spec_column *c = r.plan->spec.columns;
	for (unsigned i = 0; i < 1000; i++) {
		random_event(&event);
		size_t before = handed_count;
		r.probe(&event, r.local, NULL);
		assert_int_equal(handed_count - before, event.cpu > 31);
		if (handed_count == before)
			continue;
		const unsigned char *row = handed_on + before * r.plan->spec.states[0].row_size;
		assert_memory_equal(row + c[0].offset, event.comm, 16);
		assert_int_equal(word(row, c[1].offset), event.tid);
		assert_int_equal(word(row, c[2].offset), (int64_t)event.arg[2] > 5);
		assert_int_equal(word(row, c[3].offset), event.time);
		assert_memory_equal(row + c[4].offset, "abcdefghijklmnop", 16);
	}
	assert_true(handed_count > 100);
	stop(&r);
}

static int seed(void **state)
{
	const char *text = getenv("FAY_SEED");
	random_state = text ? strtoull(text, NULL, 0) | 1 : 0x5eed;
	print_message("FAY_SEED=%#llx\n", (unsigned long long)random_state);
	return prepare_jit();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_expressions), cmocka_unit_test(random_constants),
		cmocka_unit_test(few_groups),	      cmocka_unit_test(table_overflow),
		cmocka_unit_test(no_room_for_flush),  cmocka_unit_test(stream_rows),
	};
	int failed = cmocka_run_group_tests(tests, seed, NULL);
	free(groups);
	return failed;
}
