/* SPDX-License-Identifier: MIT */
/* State that is new or larger, and functions whose code is not the same. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "diff.h"
#include "verifier/explain/report_names.h"

/* ---- state ---- */

static void compare_size(struct fay_diff *d, const char *kind, const char *where, uint64_t before,
			 uint64_t after)
{
	struct fay_arena *arena = d->new->run->arena;

	if (before != after)
		fay_diff_add(d, after > before, kind, where,
			     fay_arena_printf(arena, "%" PRIu64, before),
			     fay_arena_printf(arena, "%" PRIu64, after));
}

static const char *describe(struct fay_diff *d, const struct fay_schema_column *c)
{
	return fay_arena_printf(d->new->run->arena, "%s %s", NAME(type_names, c->type),
				NAME(merge_names, c->merge));
}

static const struct fay_schema_column *
find_column(const struct fay_schema *schema, const struct fay_schema_state *state, const char *name)
{
	for (unsigned i = 0; i < (unsigned)state->keys + state->values; i++)
		if (!strcmp(schema->columns[state->first_column + i].name, name))
			return &schema->columns[state->first_column + i];
	return NULL;
}

static void compare_columns(struct fay_diff *d, const char *where,
			    const struct fay_schema_state *before,
			    const struct fay_schema_state *after)
{
	const struct fay_schema *old = &d->old->verdict.schema, *new = &d->new->verdict.schema;

	for (unsigned i = 0; i < (unsigned)after->keys + after->values; i++) {
		const struct fay_schema_column *c = &new->columns[after->first_column + i];
		const struct fay_schema_column *was = find_column(old, before, c->name);
		const char *place =
			fay_arena_printf(d->new->run->arena, "%s, column %s", where, c->name);

		if (!was)
			fay_diff_add(d, true, "column", place, "", describe(d, c));
		else if (was->type != c->type || was->merge != c->merge)
			fay_diff_add(d, true, "column", place, describe(d, was), describe(d, c));
		else
			compare_size(d, "column_size", place, was->size, c->size);
	}
}

static void compare_state(struct fay_diff *d, const struct fay_schema_state *after)
{
	const struct fay_schema *old = &d->old->verdict.schema;
	const struct fay_schema_state *before = NULL;
	const char *kind = NAME(state_names, after->kind);

	for (uint32_t i = 0; !before && i < old->state_count; i++)
		if (!strcmp(old->states[i].name, after->name))
			before = &old->states[i];
	if (!before) {
		fay_diff_add(d, true, "state", after->name, "", kind);
		return;
	}
	if (before->kind != after->kind)
		fay_diff_add(d, true, "state", after->name, NAME(state_names, before->kind), kind);
	if (before->scope != after->scope)
		fay_diff_add(d, after->scope == FAY_SCOPE_GLOBAL, "scope", after->name,
			     before->scope == FAY_SCOPE_GLOBAL ? "global" : "thread",
			     after->scope == FAY_SCOPE_GLOBAL ? "global" : "thread");
	compare_size(d, "rows", after->name, before->rows, after->rows);
	compare_size(d, "row_size", after->name, before->row_size, after->row_size);
	compare_columns(d, after->name, before, after);
}

void fay_diff_states(struct fay_diff *d)
{
	const struct fay_schema *old = &d->old->verdict.schema, *new = &d->new->verdict.schema;

	compare_size(d, "state_size", "per thread", old->local_size, new->local_size);
	compare_size(d, "state_size", "shared", old->global_size, new->global_size);
	for (uint32_t i = 0; i < new->state_count; i++)
		compare_state(d, &new->states[i]);
}

/* ---- functions ---- */

/* A place in the code: which function, how far from its start. */
static bool same_target(const struct fay_diff *d, uint64_t before, uint64_t after)
{
	const struct fay_inspected_function *f = fay_inspect_function(d->old, before);
	const struct fay_inspected_function *g = fay_inspect_function(d->new, after);

	return f && g ? !strcmp(f->name, g->name) && before - f->start == after - g->start : f == g;
}

/* A place that an instruction reads: a slot of one helper, or constants of which the first 8 bytes
 * are the same. */
static bool same_data(const struct fay_diff *d, uint64_t before, uint64_t after)
{
	const struct fay_image *old = &d->old->run->image, *new = &d->new->run->image;
	int helper = fay_image_slot(old, before);
	uint64_t a = before - old->layout_base, b = after - new->layout_base;

	if (helper >= 0 || fay_image_slot(new, after) >= 0)
		return helper == fay_image_slot(new, after);
	return old->layout.size >= 8 && new->layout.size >= 8 && a <= old->layout.size - 8 &&
	       b <= new->layout.size - 8 &&
	       !memcmp(old->layout.bytes + a, new->layout.bytes + b, 8);
}

static bool same_operand(const struct fay_diff *d, const struct fay_operand *a,
			 const struct fay_operand *b)
{
	if (a->kind != b->kind || a->reg != b->reg || a->base != b->base || a->index != b->index ||
	    a->scale != b->scale || a->rip != b->rip || a->imm != b->imm)
		return false;
	return a->rip ? same_data(d, (uint64_t)a->disp, (uint64_t)b->disp) : a->disp == b->disp;
}

static bool same_insn(const struct fay_diff *d, const struct fay_insn *a, const struct fay_insn *b)
{
	bool jumps = a->op == OP_JMP || a->op == OP_JCC || a->op == OP_CALL;

	return a->op == b->op && a->width == b->width && a->src_width == b->src_width &&
	       a->cc == b->cc && a->locked == b->locked && a->row == b->row &&
	       a->vector == b->vector && a->access == b->access && a->imm == b->imm &&
	       a->vex == b->vex && same_operand(d, &a->dst, &b->dst) &&
	       same_operand(d, &a->src, &b->src) && same_operand(d, &a->src2, &b->src2) &&
	       (!jumps || same_target(d, a->target, b->target)) &&
	       (a->op != OP_CALL_SLOT || same_data(d, a->target, b->target));
}

static bool same_blocks(const struct fay_diff *d, const struct fay_inspected_function *f,
			const struct fay_inspected_function *g)
{
	const struct fay_cfg *old = &d->old->run->cfg, *new = &d->new->run->cfg;
	uint32_t i = old->blocks[f->first].first, k = new->blocks[g->first].first;
	uint32_t count = old->blocks[f->last - 1].first + old->blocks[f->last - 1].count - i;

	if (count != new->blocks[g->last - 1].first + new->blocks[g->last - 1].count - k)
		return false;
	while (count--)
		if (!same_insn(d, &old->insns[i++], &new->insns[k++]))
			return false;
	return true;
}

static bool same_function(const struct fay_diff *d, const struct fay_inspected_function *f,
			  const struct fay_inspected_function *g)
{
	const struct fay_image *old = &d->old->run->image, *new = &d->new->run->image;

	if (f->first != f->last && g->first != g->last)
		return same_blocks(d, f, g);
	return (f->first != f->last) == (g->first != g->last) &&
	       f->end - f->start == g->end - g->start &&
	       !memcmp(old->layout.bytes + (f->start - old->layout_base),
		       new->layout.bytes + (g->start - new->layout_base), f->end - f->start);
}

static int compare_functions(const void *a, const void *b)
{
	const struct fay_inspected_function *x = *(const struct fay_inspected_function *const *)a;
	const struct fay_inspected_function *y = *(const struct fay_inspected_function *const *)b;
	int order = strcmp(x->name, y->name);

	return order ? order : x->start < y->start ? -1 : x->start > y->start;
}

/* The functions by name, those of one name by address; NULL: out of memory. To be freed. */
static const struct fay_inspected_function **by_name(const struct fay_inspected *in)
{
	const struct fay_inspected_function **sorted =
		calloc((size_t)in->function_count + 1, sizeof(*sorted));

	for (uint32_t i = 0; sorted && i < in->function_count; i++)
		sorted[i] = &in->functions[i];
	if (sorted)
		qsort(sorted, in->function_count, sizeof(*sorted), compare_functions);
	return sorted;
}

static void add_function(struct fay_diff *d, const char *name, enum fay_function_change change)
{
	d->functions[d->function_count++] = (struct fay_changed_function){ name, change };
}

void fay_diff_functions(struct fay_diff *d)
{
	const struct fay_inspected_function **f = by_name(d->old), **g = by_name(d->new);
	uint32_t i = 0, k = 0, m = d->old->function_count, n = d->new->function_count;

	d->functions = calloc((size_t)m + n + 1, sizeof(*d->functions));
	d->failed |= !f || !g || !d->functions;
	while (!d->failed && (i < m || k < n)) {
		int order = i == m ? 1 : k == n ? -1 : strcmp(f[i]->name, g[k]->name);

		if (order < 0)
			add_function(d, f[i++]->name, FAY_FUNCTION_GONE);
		else if (order > 0)
			add_function(d, g[k++]->name, FAY_FUNCTION_NEW);
		else {
			if (!same_function(d, f[i], g[k]))
				add_function(d, g[k]->name, FAY_FUNCTION_CHANGED);
			i++;
			k++;
		}
	}
	free(f);
	free(g);
}
