/* SPDX-License-Identifier: MIT */
#include "reference.h"

#include <math.h>

/* What the query is asked over, and which of its events are in the window that is looked at. */
static const struct stream *events;
static bool in_window[MAX_EVENTS];
static struct cell keys[MAX_EVENTS][2]; /* of the events in the window */

static bool passes(const struct shape *s, const struct fay_event *e, unsigned filters)
{
	if (e->reserved & s->without)
		return false;
	for (unsigned i = 0; i < filters; i++)
		if (!evaluate(s->filters[i], e))
			return false;
	return true;
}

/* --- aggregates --- */

/* Equal names get one number. */
static int64_t number_of(const struct aggregate *a, unsigned event)
{
	struct cell own = scalar_cell(&a->operand, &events->events[event]);
	for (unsigned i = 0; i < event; i++) {
		struct cell other = scalar_cell(&a->operand, &events->events[i]);
		if (compare_cells(&own, &other) == 0)
			return i;
	}
	return event;
}

static struct cell aggregate(const struct aggregate *a, const bool *takes_part)
{
	struct sample samples[MAX_EVENTS];
	bool names = a->has_operand && (a->operand.type == NAME || a->operand.type == STACK);
	size_t count = 0;
	for (unsigned i = 0; i < events->count; i++) {
		const struct fay_event *e = &events->events[i];
		if (!takes_part[i] || (a->condition && !evaluate(a->condition, e)))
			continue;
		int64_t value = !a->has_operand ? 1
				: names         ? number_of(a, i)
						: scalar_cell(&a->operand, e).integer;
		samples[count++] = (struct sample){ value, e->time };
	}
	if (names)
		return distinct_names(samples, count);
	struct cell cell = aggregate_samples(a->kind, a->percent, samples, count);
	if (cell.kind == INTEGER && a->has_operand &&
	    (a->operand.type == FUNCTION || a->operand.type == TIME))
		cell.kind = WORD;
	return cell;
}

/* As integers, or as real numbers, of which a result may be off as far as its operands are. */
static struct cell compute(const struct shape *s, const struct cell *x, const struct cell *y)
{
	double a = x->kind == REAL ? x->real : (double)x->integer,
	       b = y->kind == REAL ? y->real : (double)y->integer;
	__int128 i = x->integer, j = y->integer;
	if (x->kind == NONE || y->kind == NONE)
		return (struct cell){ NONE };
	switch (s->operator) {
	case '*':
		return s->as_real ? real_cell(a * b)
				  : integer_cell(
					    (int64_t)((uint64_t)x->integer * (uint64_t)y->integer));
	case '/':
		return s->as_real ? real_cell(b == 0 ? 0 : a / b)
				  : integer_cell(j ? (int64_t)(i / j) : 0);
	default:
		if (!s->as_real)
			return integer_cell((int64_t)(s->operator== '+' ? i + j : i - j));
		struct cell sum = real_cell(s->operator== '+' ? a + b : a - b);
		sum.slack = 1e-12 * (fabs(a) + fabs(b));
		return sum;
	}
}

/* --- rows --- */

static bool meets_condition(const struct shape *s, const struct cell *value)
{
	if (!s->has_condition || value->kind == NONE)
		return !s->has_condition;
	if (IS_BOOL(s->aggregates[0].kind))
		return value->integer;
	return value->kind == REAL ? value->real > (double)s->limit : value->integer > s->limit;
}

/* Which events are of the same group as event `of`, and when the first and the last of them were.
 * false: an earlier event's group is the same. */
static bool find_group(const struct shape *s, unsigned of, bool *takes_part, struct row *row)
{
	row->first = UINT64_MAX;
	for (unsigned i = 0; i < events->count; i++) {
		uint64_t time = events->events[i].time;
		takes_part[i] = in_window[i];
		for (unsigned k = 0; k < s->key_count && takes_part[i]; k++)
			takes_part[i] = compare_cells(&keys[of][k], &keys[i][k]) == 0;
		if (takes_part[i] && i < of && s->kind != VALUE)
			return false;
		if (takes_part[i] && time < row->first)
			row->first = time;
		if (takes_part[i] && time > row->last)
			row->last = time;
	}
	return true;
}

static void add_group(const struct shape *s, unsigned of, uint64_t window, struct table *t)
{
	bool takes_part[MAX_EVENTS];
	struct row *row = &t->rows[t->count];
	struct cell *next = row->cells;
	memset(row, 0, sizeof(*row));
	if (!find_group(s, of, takes_part, row))
		return;
	if (has_windows(s))
		*next++ = (struct cell){ .kind = WORD, .integer = (int64_t)window };
	for (unsigned k = 0; k < s->key_count; k++)
		*next++ = keys[of][k];
	struct cell *aggregates = next;
	for (unsigned a = 0; a < s->aggregate_count; a++)
		*next++ = aggregate(&s->aggregates[a], takes_part);
	if (s->computes)
		*next = compute(s, &aggregates[0], &aggregates[1]);
	if (meets_condition(s, aggregates))
		t->count++;
}

static void add_event(unsigned i, struct table *t)
{
	struct row *row = &t->rows[t->count++];
	memset(row, 0, sizeof(*row));
	for (unsigned c = 0; c < 2; c++)
		row->cells[c] = keys[i][c];
	row->place = i;
}

/* --- the order of rows --- */

static const struct shape *sorted_shape;

static int compare_rows(const void *left, const void *right)
{
	const struct row *x = left, *y = right;
	const struct shape *s = sorted_shape;
	unsigned before = has_windows(s), named = s->kind == ROWS     ? 0
						  : s->regrouping.key ? 1
								      : s->key_count;
	for (unsigned i = 0; i < s->order_count; i++) {
		unsigned column = before + s->orders[i].column;
		int c = compare_cells(&x->cells[column], &y->cells[column]);
		if (c)
			return s->orders[i].descending ? -c : c;
	}
	for (unsigned k = 0; k < named; k++) {
		int c = compare_cells(&x->cells[before + k], &y->cells[before + k]);
		if (c)
			return c;
	}
	return (x->place > y->place) - (x->place < y->place);
}

/* --- groups of groups --- */

/* What the second grouping makes of one group's key and aggregate. */
static struct cell outer_key(const struct shape *s, const struct cell *key,
			     const struct cell *value)
{
	if (s->regrouping.key == BY_KEY)
		return *key;
	if (s->regrouping.key == ALL_TOGETHER)
		return integer_cell(1);
	if (value->kind == NONE)
		return integer_cell(0);
	return integer_cell(s->regrouping.key == BY_REST ? value->integer % 3 : value->integer);
}

/* Over the groups that are marked, in the order in which they lie. */
static struct cell outer_aggregate(const struct shape *s, enum kind kind, const struct table *t,
				   const bool *takes_part)
{
	struct sample samples[MAX_EVENTS];
	size_t taken = 0;
	for (size_t r = 0; r < t->count; r++) {
		const struct cell *value = &t->rows[r].cells[1 + has_windows(s)];
		if (!takes_part[r] || (value->kind == NONE && !IS_TEST(kind) && kind != COUNT))
			continue;
		samples[taken].time = s->regrouping.order ? r
				      : kind == FIRST     ? t->rows[r].first
							  : t->rows[r].last;
		samples[taken++].value = IS_TEST(kind)
						 ? value->kind != NONE && value->integer > s->limit
						 : value->integer;
	}
	return aggregate_samples(kind, 0, samples, taken);
}

/* The order that groups have before they are grouped: by the aggregate if it is asked for; equal
 * ones by the key. */
static int compare_inner(const void *left, const void *right)
{
	unsigned before = has_windows(sorted_shape);
	const struct cell *x = ((const struct row *)left)->cells + before,
			  *y = ((const struct row *)right)->cells + before;
	int c = sorted_shape->regrouping.order ? compare_cells(&x[1], &y[1]) : 0;
	if (c)
		return sorted_shape->regrouping.order == DESCENDING ? -c : c;
	return compare_cells(&x[0], &y[0]);
}

static void regroup(const struct shape *s, struct table *t)
{
	static struct table out;
	bool takes_part[MAX_EVENTS];
	unsigned before = has_windows(s);
	out.count = 0;
	qsort(t->rows, t->count, sizeof(*t->rows), compare_inner);
	for (size_t r = 0; r < t->count; r++) {
		const struct cell *own = &t->rows[r].cells[before];
		struct cell key = outer_key(s, own, own + 1);
		bool seen = false;
		for (size_t o = 0; o < t->count; o++) {
			const struct cell *other = &t->rows[o].cells[before];
			struct cell other_key = outer_key(s, other, other + 1);
			takes_part[o] = compare_cells(&key, &other_key) == 0;
			seen |= takes_part[o] && o < r;
		}
		if (seen)
			continue;
		struct cell *cells = out.rows[out.count++].cells;
		if (before)
			*cells++ = t->rows[r].cells[0];
		*cells++ = key;
		for (unsigned i = 0; i < 2; i++)
			*cells++ = outer_aggregate(s, s->regrouping.kinds[i], t, takes_part);
	}
	*t = out;
}

/* --- what is done with rows --- */

static bool same_shown(const struct shape *s, const struct row *x, const struct row *y)
{
	for (unsigned c = has_windows(s) + first_shown(s); c < MAX_COLUMNS; c++)
		if (compare_cells(&x->cells[c], &y->cells[c]))
			return false;
	return true;
}

/* Of equal rows the first stays; then the keys go. */
static void leave_distinct(const struct shape *s, struct table *t)
{
	size_t kept = 0;
	unsigned from = has_windows(s) + s->key_count, to = has_windows(s);
	for (size_t r = 0; r < t->count; r++) {
		bool seen = false;
		for (size_t o = 0; o < kept && !seen; o++)
			seen = same_shown(s, &t->rows[o], &t->rows[r]);
		if (!seen)
			t->rows[kept++] = t->rows[r];
	}
	t->count = kept;
	for (size_t r = 0; r < kept; r++)
		memmove(&t->rows[r].cells[to], &t->rows[r].cells[from],
			(MAX_COLUMNS - from) * sizeof(struct cell));
}

static void cut(const struct shape *s, struct table *t)
{
	size_t skip = s->skip < 0 ? 0 : (size_t)s->skip < t->count ? (size_t)s->skip : t->count;
	memmove(t->rows, t->rows + skip, (t->count - skip) * sizeof(*t->rows));
	t->count -= skip;
	if (s->take >= 0 && (size_t)s->take < t->count)
		t->count = (size_t)s->take;
}

/* Of all values, the extremes too. */
static struct cell fold_extreme(enum kind kind, const struct table *t, unsigned column)
{
	const struct cell *best = &(struct cell){ NONE };
	for (size_t r = 0; r < t->count; r++) {
		const struct cell *x = &t->rows[r].cells[column];
		int order = best->kind == NONE ? 0 : compare_cells(x, best);
		if (x->kind != NONE &&
		    (best->kind == NONE || (kind == MIN ? order < 0 : order > 0)))
			best = x;
	}
	return *best;
}

static struct cell fold_rows(const struct shape *s, const struct table *t, unsigned column)
{
	struct sample samples[MAX_EVENTS];
	size_t count = 0;
	if (s->fold == COUNT)
		return integer_cell((int64_t)t->count);
	if (s->fold == MIN || s->fold == MAX)
		return fold_extreme(s->fold, t, column);
	for (size_t r = 0; r < t->count; r++) {
		const struct cell *x = &t->rows[r].cells[column];
		if (x->kind != NONE || IS_TEST(s->fold))
			samples[count++].value = IS_TEST(s->fold)
							 ? x->kind != NONE && x->integer > s->limit
							 : x->integer;
	}
	return s->fold == AVERAGE ? mean_of(samples, count)
				  : aggregate_samples(s->fold, 0, samples, count);
}

/* One row of all. */
static void fold(const struct shape *s, uint64_t window, struct table *t)
{
	struct cell value = fold_rows(s, t, has_windows(s) + (s->distinct ? 0 : folded_column(s)));
	struct cell *next = t->rows[0].cells;
	t->count = 1;
	if (has_windows(s))
		*next++ = (struct cell){ .kind = WORD, .integer = (int64_t)window };
	*next = value;
}

/* --- windows --- */

/* How many events happened before event `i` of those that pass what stands before the window. */
static unsigned rank_of(const struct shape *s, const struct stream *stream, unsigned i)
{
	unsigned rank = 0;
	for (unsigned e = 0; e < stream->count; e++)
		rank += stream->events[e].time < stream->events[i].time &&
			passes(s, &stream->events[e], s->before);
	return rank;
}

uint64_t count_windows(const struct shape *s, const struct stream *stream)
{
	uint64_t passed = 0;
	for (unsigned i = 0; i < stream->count; i++)
		passed += passes(s, &stream->events[i], s->before);
	return (passed + s->every - 1) / s->every;
}

static bool lies_in(const struct shape *s, unsigned i, uint64_t start)
{
	uint64_t time = events->events[i].time;
	if (s->every)
		return rank_of(s, events, i) / s->every == start;
	return !s->step || (time >= start && time < start + s->width);
}

void refer(const struct shape *s, const struct stream *stream, uint64_t start, struct table *t)
{
	events = stream;
	sorted_shape = s;
	t->count = 0;
	forget_tallies();
	for (unsigned i = 0; i < events->count; i++) {
		in_window[i] =
			passes(s, &events->events[i], s->filter_count) && lies_in(s, i, start);
		for (unsigned k = 0; k < s->key_count && in_window[i]; k++)
			keys[i][k] = scalar_cell(&s->keys[k], &events->events[i]);
	}
	if (s->kind == VALUE)
		add_group(s, 0, start, t);
	for (unsigned i = 0; i < events->count && s->kind != VALUE; i++)
		if (in_window[i] && s->kind == ROWS)
			add_event(i, t);
		else if (in_window[i])
			add_group(s, i, start, t);
	if (s->regrouping.key)
		regroup(s, t);
	qsort(t->rows, t->count, sizeof(*t->rows), compare_rows);
	if (s->distinct)
		leave_distinct(s, t);
	cut(s, t);
	if (s->folds)
		fold(s, start, t);
}
