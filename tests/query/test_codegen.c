/* SPDX-License-Identifier: MIT */
/*
 * The generated probe, run in this process by LLVM's JIT, against a reference that shares no code
 * with query/: random expression trees are written as text, planned, generated and run over random
 * events, and the test evaluates the same trees itself. Tables are compared with a plain list of
 * groups, also when they overflow into a fay_flush() of the test's. FAY_SEED sets the seed
 * (printed).
 */
#include "running.h"
#include "tests/query/reference/trees.h"

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
		char *text = text_of("cluster.Function(\"a!b\").Where(x => ", filter, ").Sum(x => ",
				     sum, ")");
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
		static const char *const ops[] = { "+",  "-",   "*", "/", "%", "<<",
						   ">>", ">>>", "&", "|", "^" };
		struct tree left = { "k", 1, a, NULL, NULL, NULL };
		struct tree right = { "k", 1, b, NULL, NULL, NULL };
		struct tree t = { "", 0, 0, &left, &right, NULL };
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
	uint64_t buckets[65], others[65];
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
	int64_t key[3] = { (int64_t)e->arg[0], 0, 0 }, x = (int64_t)e->arg[1],
		y = (int64_t)e->arg[2];
	memcpy(&key[1], e->comm, 16);
	struct group *g = find_group(key);
	g->count++;
	g->big += e->cpu > 30;
	g->sum = (int64_t)((uint64_t)g->sum + (uint64_t)x);
	g->smallest = x < g->smallest ? x : g->smallest;
	g->largest = x > g->largest ? x : g->largest;
	g->buckets[bucket_of(x)]++;
	g->others[bucket_of(y)]++;
}

/* Subtracts a row from the reference's groups; extremes are collected for the check at the end. */
struct extremes {
	int64_t smallest, largest;
};

static void subtract_row(const struct fay_plan *plan, const unsigned char *row,
			 struct extremes *extremes)
{
	const struct fay_spec_column *c = plan->spec.columns;
	int64_t key[3] = { word(row, c[0].offset), word(row, c[1].offset),
			   word(row, c[1].offset + 8) };
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
	for (unsigned i = 0; i < 65; i++) {
		g->buckets[i] -= (uint64_t)word(row, c[7].offset + 8 * i);
		g->others[i] -= (uint64_t)word(row, c[8].offset + 8 * i);
	}
	/* The average: sum and count, compared with the row's own. */
	assert_int_equal(word(row, c[9].offset), word(row, c[4].offset));
	assert_int_equal(word(row, c[9].offset + 8), word(row, c[2].offset));
}

/* Histograms of two values are not kept by bucket. */
static const char group_query[] =
	"from x in cluster.Function(\"a!b\") let v = x.Arg(1) group x by new { k = x.Arg(0), "
	"x.comm } "
	"into g select new { g.Key, n = g.Count(), big = g.Count(x => x.cpu > 30), s = g.Sum(x => "
	"x.Arg(1)), lo = g.Min(x => x.Arg(1)), hi = g.Max(x => x.Arg(1)), h = g.Histogram(x => "
	"x.Arg(1)), i = g.Histogram(x => x.Arg(2)), mean = g.Average(x => x.Arg(1)) }";

static void check_groups(const struct running *r)
{
	const struct fay_spec_state *s = &r->plan->spec.states[0];
	struct extremes *extremes = calloc(group_count, sizeof(*extremes));
	assert_non_null(extremes);
	for (size_t i = 0; i < group_count; i++)
		extremes[i] = (struct extremes){ INT64_MAX, INT64_MIN };
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
		for (unsigned b = 0; b < 65; b++) {
			assert_int_equal(groups[i].buckets[b], 0);
			assert_int_equal(groups[i].others[b], 0);
		}
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

/* Few keys have room, whichever of their bits are different. */
static void keys_alike_in_part(void **state)
{
	struct running r;
	struct fay_event event;
	start(&r,
	      "from x in cluster.Function(\"a!b\") group x by new { k = x.Arg(0), x.comm } into g "
	      "select new { g.Key, n = g.Count() }");
	memset(&event, 0, sizeof(event));
	for (unsigned shift = 0; shift <= 52; shift += 4) {
		memset(r.local, 0, r.plan->spec.states[0].rows * r.plan->spec.states[0].row_size);
		for (uint64_t i = 0; i < 256; i++) {
			event.arg[0] = shift < 52 ? i << shift : 0;
			snprintf(event.comm, sizeof(event.comm), "worker-of-a-%03u",
				 shift < 52 ? 0 : (unsigned)i);
			r.probe(&event, r.local, NULL);
		}
		assert_int_equal(flushes, 0);
	}
	stop(&r);
}

/* fay_flush has no room: the event is dropped, the table is as it was, known keys still count. */
static void no_room_for_flush(void **state)
{
	struct running r;
	struct fay_event event;
	uint64_t total = 0;
	start(&r, "from x in cluster.Function(\"a!b\") group x by x.Arg(0) into g select new { "
		  "g.Key, n "
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
	start(&r, "from x in cluster.Function(\"a!b\") where x.cpu > 31 select new { x.comm, "
		  "x.tid, big = "
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_expressions), cmocka_unit_test(random_constants),
		cmocka_unit_test(few_groups),         cmocka_unit_test(table_overflow),
		cmocka_unit_test(keys_alike_in_part), cmocka_unit_test(no_room_for_flush),
		cmocka_unit_test(stream_rows),
	};
	int failed = cmocka_run_group_tests(tests, seed_and_prepare_jit, NULL);
	free(groups);
	return failed;
}
