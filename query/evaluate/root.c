/* SPDX-License-Identifier: MIT */
/*
 * fay_plan_finish(): the operations of the root stage, one after the other, over an array of rows;
 * then the computed columns.
 */
#include "evaluate_private.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fay/aggregator.h"
#include "kmeans_private.h"

struct rows {
	const uint8_t **at;
	size_t count;
};

struct finisher {
	struct fay_measured *measured; /* or NULL */
	const struct fay_plan_private *p;
	struct fay_evaluator evaluator;
	fay_plan_name_function *name;
	void *name_context;
	bool is_folded;
	const struct fay_result *source; /* in whose memory the stage's rows lie */
	uint32_t *labels;                /* of the source's rows; NULL: none */
};

static struct fay_cell value_of(struct finisher *f, const uint8_t *row, const struct fay_expr *expr)
{
	f->evaluator.row = row;
	return fay_evaluate(&f->evaluator, expr);
}

/* --- order --- */

static int compare_functions(const struct finisher *f, uint64_t a, uint64_t b)
{
	const char *x = f->name ? f->name(f->name_context, a) : NULL;
	const char *y = f->name ? f->name(f->name_context, b) : NULL;
	if (x && y && strcmp(x, y) != 0)
		return strcmp(x, y);
	return (a > b) - (a < b);
}

static int compare_cells(const struct finisher *f, enum fay_type type, struct fay_cell x,
			 struct fay_cell y)
{
	if (x.kind == CELL_NONE || y.kind == CELL_NONE) /* nothing comes first */
		return (x.kind != CELL_NONE) - (y.kind != CELL_NONE);
	if (x.kind == CELL_STRING)
		return fay_cell_compare_strings(x, y);
	if (x.kind == CELL_REAL || y.kind == CELL_REAL) {
		double a = x.kind == CELL_REAL ? x.real : (double)x.integer;
		double b = y.kind == CELL_REAL ? y.real : (double)y.integer;
		return (a > b) - (a < b);
	}
	if (type == TYPE_FUNCTION || type == TYPE_MODULE)
		return compare_functions(f, (uint64_t)x.integer, (uint64_t)y.integer);
	if (type == TYPE_TIME)
		return ((uint64_t)x.integer > (uint64_t)y.integer) -
		       ((uint64_t)x.integer < (uint64_t)y.integer);
	return (x.integer > y.integer) - (x.integer < y.integer);
}

/* A row with its keys evaluated once. */
struct sortable {
	size_t place; /* before: equal rows keep their order */
	const struct fay_cell *keys;
	const struct finisher *finisher;
	const struct fay_order *orders;
};

static int compare_sortables(const void *left, const void *right)
{
	const struct sortable *a = left, *b = right;
	size_t i = 0;
	for (const struct fay_order *order = a->orders; order; order = order->next, i++) {
		int c = compare_cells(a->finisher, order->expr->type, a->keys[i], b->keys[i]);
		if (c)
			return order->descending ? -c : c;
	}
	return a->place < b->place ? -1 : a->place > b->place;
}

/* The rows' places in order, or NULL for want of memory. */
static size_t *sorted_places(struct finisher *f, const struct fay_order *orders,
			     const struct rows *rows)
{
	size_t keys = 0;
	for (const struct fay_order *order = orders; order; order = order->next)
		keys++;
	struct sortable *sortable = calloc(rows->count + 1, sizeof(*sortable));
	struct fay_cell *cells = calloc(rows->count + 1, keys * sizeof(*cells));
	size_t *places = calloc(rows->count + 1, sizeof(*places));
	if (sortable && cells && places) {
		for (size_t r = 0; r < rows->count; r++) {
			struct fay_cell *own = cells + r * keys;
			sortable[r] = (struct sortable){ r, own, f, orders };
			for (const struct fay_order *order = orders; order; order = order->next)
				*own++ = value_of(f, rows->at[r], order->expr);
		}
		qsort(sortable, rows->count, sizeof(*sortable), compare_sortables);
		for (size_t r = 0; r < rows->count; r++)
			places[r] = sortable[r].place;
	} else {
		free(places);
		places = NULL;
	}
	free(sortable);
	free(cells);
	return places;
}

static bool order_rows(struct finisher *f, const struct fay_order *orders, struct rows *rows)
{
	size_t *places = sorted_places(f, orders, rows);
	const uint8_t **sorted = calloc(rows->count + 1, sizeof(*sorted));
	bool fine = places && sorted;
	for (size_t r = 0; fine && r < rows->count; r++)
		sorted[r] = rows->at[places[r]];
	if (fine)
		memcpy(rows->at, sorted, rows->count * sizeof(*sorted));
	free(places);
	free(sorted);
	return fine;
}

/* --- the other operations --- */

static void filter_rows(struct finisher *f, const struct fay_expr *condition, struct rows *rows)
{
	size_t kept = 0;
	for (size_t r = 0; r < rows->count; r++) {
		struct fay_cell passes = value_of(f, rows->at[r], condition);
		if (passes.kind == CELL_INT && passes.integer)
			rows->at[kept++] = rows->at[r];
	}
	rows->count = kept;
}

static void skip_rows(uint64_t count, struct rows *rows)
{
	size_t skipped = count < rows->count ? (size_t)count : rows->count;
	memmove(rows->at, rows->at + skipped, (rows->count - skipped) * sizeof(*rows->at));
	rows->count -= skipped;
}

/* Of equal rows the first stays, where it is. */
static bool distinct_rows(struct finisher *f, const struct fay_order *columns, struct rows *rows)
{
	size_t *places = sorted_places(f, columns, rows);
	bool *repeated = calloc(rows->count + 1, sizeof(*repeated));
	bool fine = places && repeated;
	size_t kept = 0;
	for (size_t r = 1; fine && r < rows->count; r++) {
		bool same = true;
		for (const struct fay_order *c = columns; c && same; c = c->next)
			same = compare_cells(f, c->expr->type,
					     value_of(f, rows->at[places[r - 1]], c->expr),
					     value_of(f, rows->at[places[r]], c->expr)) == 0;
		repeated[places[r]] = same;
	}
	for (size_t r = 0; fine && r < rows->count; r++)
		if (!repeated[r])
			rows->at[kept++] = rows->at[r];
	if (fine)
		rows->count = kept;
	free(places);
	free(repeated);
	return fine;
}

/* An aggregate over rows. What has no value takes no part. */
static struct fay_cell fold_rows(struct finisher *f, const struct fay_root_op *op,
				 const struct rows *rows)
{
	if (op->merge == FAY_MERGE_COUNT)
		return (struct fay_cell){ .kind = CELL_INT, .integer = (int64_t)rows->count };
	struct fay_cell result = { .kind = op->merge == FAY_MERGE_SUM ? CELL_INT : CELL_NONE };
	__float128 total = 0; /* has 113 bits: sums of integers are not rounded */
	uint64_t values = 0;
	for (size_t r = 0; r < rows->count; r++) {
		struct fay_cell x = value_of(f, rows->at[r], op->expr);
		if (x.kind == CELL_NONE)
			continue;
		values++;
		/* the sides of `? :` may be one and the other */
		total += x.kind == CELL_REAL ? (__float128)x.real : (__float128)x.integer;
		int order =
			result.kind == CELL_NONE ? 0 : compare_cells(f, op->expr->type, x, result);
		if (op->merge == FAY_MERGE_SUM)
			result.integer = (int64_t)((uint64_t)result.integer + (uint64_t)x.integer);
		else if (result.kind == CELL_NONE ||
			 (op->merge == FAY_MERGE_MIN ? order < 0 : order > 0))
			result = x;
	}
	if (op->merge == FAY_MERGE_SUM && op->expr->type == TYPE_REAL)
		return fay_cell_real((double)total);
	if (op->merge == FAY_MERGE_AVERAGE && values)
		return fay_cell_real((double)(total / values));
	return result;
}

/* Numbers rows by `key`: equal ones alike, in the key's order. How many numbers there are; 0 for
 * want of memory, or of rows. */
static size_t number_rows(struct finisher *f, const struct fay_order *key, const struct rows *rows,
			  size_t *numbers)
{
	struct fay_order alone = { .expr = key->expr };
	size_t *places = sorted_places(f, &alone, rows), count = 0;
	for (size_t r = 0; places && r < rows->count; r++) {
		count += r == 0 || compare_cells(f, key->expr->type,
						 value_of(f, rows->at[places[r - 1]], key->expr),
						 value_of(f, rows->at[places[r]], key->expr)) != 0;
		numbers[places[r]] = count - 1;
	}
	free(places);
	return count;
}

/* What of a vector no row tells is 0; rows of the same place in a vector are added. */
static double *make_vectors(struct finisher *f, const struct fay_expr *value,
			    const struct rows *rows, const size_t *vector, const size_t *dimension,
			    size_t count, size_t size)
{
	double *values = size && count <= FAY_KMEANS_VALUES_MAX / size
				 ? calloc(count * size, sizeof(*values))
				 : NULL;
	for (size_t r = 0; values && r < rows->count; r++) {
		struct fay_cell x = value_of(f, rows->at[r], value);
		values[vector[r] * size + dimension[r]] += x.kind == CELL_REAL  ? x.real
							   : x.kind == CELL_INT ? (double)x.integer
										: 0;
	}
	return values;
}

/* Gives each row its vector's cluster. */
static bool cluster_rows(struct finisher *f, const struct fay_root_op *op, const struct rows *rows)
{
	const struct fay_result *source = f->source;
	const struct fay_order *key = op->orders;
	size_t *vector = calloc(2 * rows->count + 1, sizeof(*vector)),
	       *dimension = vector ? vector + rows->count : NULL;
	size_t count = vector ? number_rows(f, key, rows, vector) : 0,
	       size = vector ? number_rows(f, key->next, rows, dimension) : 0;
	double *values =
		make_vectors(f, key->next->next->expr, rows, vector, dimension, count, size);
	uint32_t *clusters = calloc(count + 1, sizeof(*clusters));
	f->labels = calloc(source->row_count + 1, sizeof(*f->labels));
	bool fine = vector && clusters && f->labels && (values || !rows->count) &&
		    (!rows->count ||
		     fay_kmeans(values, count, size, (unsigned)op->count, clusters) >= 0);
	for (size_t r = 0; fine && r < rows->count; r++)
		f->labels[(size_t)(rows->at[r] - source->rows) / source->row_size] =
			clusters[vector[r]];
	f->evaluator.labels = f->labels;
	f->evaluator.first_row = source->rows;
	f->evaluator.row_size = source->row_size;
	free(vector);
	free(values);
	free(clusters);
	return fine;
}

static bool apply(struct finisher *f, const struct fay_root_op *op, struct rows *rows)
{
	switch (op->kind) {
	case ROOT_FILTER: filter_rows(f, op->expr, rows); return true;
	case ROOT_ORDER: return order_rows(f, op->orders, rows);
	case ROOT_DISTINCT: return distinct_rows(f, op->orders, rows);
	case ROOT_TAKE:
		rows->count = op->count < rows->count ? (size_t)op->count : rows->count;
		return true;
	case ROOT_SKIP: skip_rows(op->count, rows); return true;
	case ROOT_KMEANS: return cluster_rows(f, op, rows);
	case ROOT_FOLD:
		f->evaluator.folded = fold_rows(f, op, rows);
		f->is_folded = true;
		return true;
	}
	return false;
}

/* --- results --- */

static void store_computed(uint8_t *at, struct fay_cell cell)
{
	uint64_t words[2] = { cell.kind != CELL_NONE, (uint64_t)cell.integer };
	if (cell.kind == CELL_REAL)
		memcpy(&words[1], &cell.real, sizeof(cell.real));
	memcpy(at, words, sizeof(words));
}

/* An aggregate over the rows of a window: the first one says which window it is, also where there
 * is none (fay_plan_window()). */
static void write_window(const struct fay_plan_private *p, const struct fay_result *merged,
			 uint8_t *to)
{
	/* of every stage, at the same place */
	const struct fay_layout_column *key = &p->columns[0];
	if (p->checked.window.step && merged->rows)
		memcpy(to + key->offset, merged->rows + key->offset, key->size);
}

static bool write_rows(struct finisher *f, const struct rows *rows, const struct fay_result *merged,
		       struct fay_result *out)
{
	const struct fay_plan_private *p = f->p;
	out->row_size = p->row_size + p->computed_count * FAY_RESULT_COMPUTED_SIZE;
	out->row_count = f->is_folded ? 1 : rows->count;
	out->rows = calloc(out->row_count + 1, out->row_size + 1u);
	if (!out->rows)
		return false;
	for (size_t r = 0; r < out->row_count; r++) {
		uint8_t *to = out->rows + r * out->row_size;
		if (f->is_folded)
			write_window(p, merged, to);
		else
			memcpy(to, rows->at[r], p->row_size);
		for (uint32_t c = 0; c < p->computed_count; c++) {
			struct fay_cell value =
				value_of(f, f->is_folded ? to : rows->at[r], p->computed[c]);
			if (p->computed[c]->type == TYPE_REAL && value.kind == CELL_INT)
				value = (struct fay_cell){ .kind = CELL_REAL,
							   .real = (double)value.integer };
			store_computed(to + p->row_size + c * FAY_RESULT_COMPUTED_SIZE, value);
		}
	}
	return true;
}

static struct rows all_rows(const struct fay_result *result)
{
	struct rows rows = { calloc(result->row_count + 1, sizeof(*rows.at)), result->row_count };
	for (size_t r = 0; rows.at && r < rows.count; r++)
		rows.at[r] = result->rows + r * result->row_size;
	return rows;
}

static uint64_t now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* A step that began with `in` rows at `since` is over. */
static void measure(struct finisher *f, uint64_t in, const struct rows *rows, uint64_t since)
{
	struct fay_measured *m = f->measured;
	if (m && m->op_count < FAY_MEASURED_OPS)
		m->ops[m->op_count++] =
			(struct fay_measured_op){ in, f->is_folded ? 1 : rows->count,
						  now() - since };
}

/* From the rows of one stage to those of the next: *rows then points into *grouped, whose memory
 * before is freed. */
static int regroup(struct finisher *f, struct rows *rows, struct fay_result *grouped,
		   struct fay_error *error)
{
	struct fay_result next;
	uint64_t in = rows->count, since = now();
	if (fay_stage_group(f->p->next, &f->evaluator, rows->at, rows->count, &next, error))
		return (int)error->code;
	free(grouped->rows);
	free(rows->at);
	free(f->labels);
	f->labels = NULL;
	f->evaluator.labels = NULL;
	*grouped = next;
	f->source = grouped;
	*rows = all_rows(grouped);
	f->p = f->p->next;
	f->evaluator.columns = f->p->schema;
	f->evaluator.column_of = f->p->column_of;
	f->evaluator.buckets = NULL;
	measure(f, in, rows, since);
	return rows->at ? FAY_OK
			: fay_error_set(error, FAY_E_LIMIT, "query: out of memory for the result");
}

static bool apply_all(struct finisher *f, struct rows *rows)
{
	bool fine = rows->at != NULL;
	for (const struct fay_root_op *op = f->p->root; op && fine; op = op->next) {
		uint64_t in = rows->count, since = now();
		fine = apply(f, op, rows);
		measure(f, in, rows, since);
	}
	return fine;
}

int fay_plan_finish(const struct fay_plan *plan, const struct fay_result *merged,
		    fay_plan_name_function *name, void *name_context, struct fay_result *out,
		    struct fay_error *error)
{
	const struct fay_plan_private *p = fay_plan_private(plan);
	struct fay_result grouped = { 0 };
	int code = FAY_OK;
	if (p->buckets && fay_buckets_fold(p, merged, &grouped, error))
		return (int)error->code;
	const struct fay_result *source = p->buckets ? &grouped : merged;
	struct finisher f = { .p = p,
			      .evaluator = { .texts = p->query->texts,
					     .columns = p->schema,
					     .column_of = p->column_of,
					     .buckets = p->buckets,
					     .by_bucket = merged },
			      .name = name,
			      .name_context = name_context,
			      .source = source };
	struct rows rows = all_rows(source);
	f.measured = plan->measured;
	if (f.measured)
		f.measured->op_count = 0;
	*out = *merged;
	out->rows = NULL;
	bool fine = apply_all(&f, &rows);
	while (fine && !code && f.p->next) {
		code = regroup(&f, &rows, &grouped, error);
		fine = !code && apply_all(&f, &rows);
	}
	fine = fine && write_rows(&f, &rows, merged, out);
	free(rows.at);
	free(f.labels);
	fay_result_deinit(&grouped);
	if (code || fine)
		return code;
	return fay_error_set(error, FAY_E_LIMIT, "query: out of memory for the result");
}

bool fay_plan_prune(const struct fay_plan *plan, struct fay_result *rows_in,
		    fay_plan_name_function *name, void *name_context)
{
	const struct fay_plan_private *p = fay_plan_private(plan);
	const struct fay_root_op *op = p->root;
	while (op && (op->kind == ROOT_FILTER || op->kind == ROOT_ORDER))
		op = op->next;
	if (!op || op->kind != ROOT_TAKE || op->count >= rows_in->row_count)
		return false;
	struct finisher f = { .p = p,
			      .evaluator = { .texts = p->query->texts,
					     .columns = p->schema,
					     .column_of = p->column_of },
			      .name = name,
			      .name_context = name_context };
	struct rows rows = all_rows(rows_in);
	uint8_t *kept = rows.at ? malloc((size_t)op->count * p->row_size + 1) : NULL;
	bool fine = kept != NULL;
	for (const struct fay_root_op *o = p->root; fine && o != op->next; o = o->next)
		fine = apply(&f, o, &rows);
	for (size_t r = 0; fine && r < rows.count; r++)
		memcpy(kept + r * p->row_size, rows.at[r], p->row_size);
	free(rows.at);
	if (!fine) {
		free(kept);
		return false;
	}
	free(rows_in->rows);
	rows_in->rows = kept;
	rows_in->row_count = rows.count;
	return true;
}
