/* SPDX-License-Identifier: MIT */
/* The join of a plan, as `fay explain` shows it. */
#include "explain_private.h"

#include <inttypes.h>
#include <string.h>

static bool is_field(const struct fay_expr *expr, const char *name)
{
	return expr->op == EXPR_FIELD && strcmp(fay_fields[expr->value].name, name) == 0;
}

/* Of the source itself, or as pairs see it. */
static const struct fay_expr *of_source(const struct fay_expr *expr)
{
	return expr->op == EXPR_SIDE ? expr->a : expr;
}

/* Rows of two processes never have the same pid or tid, so such a join is done process by process.
 * */
static const char *tier_of(const struct fay_check_step *step)
{
	for (const struct fay_join_key *key = step->keys; key; key = key->next) {
		const struct fay_expr *left = of_source(key->sides[0]), *right = key->sides[1];
		if ((is_field(left, "pid") && is_field(right, "pid")) ||
		    (is_field(left, "tid") && is_field(right, "tid")))
			return "process";
	}
	return "machine";
}

static void print_step(FILE *out, const struct fay_plan *plan, unsigned index)
{
	const struct fay_plan_private *p = fay_plan_private(plan);
	const struct fay_check_join *join = p->checked.join;
	const struct fay_check_step *step = &join->steps[index];
	bool last = index + 2 == plan->source_count;
	fprintf(out, "join         in the aggregator, per %s; %s\n", tier_of(step),
		last && plan->wants_unpaired
			? "each left row that no pair has settled, when none can"
		: last && plan->groups_pairs ? "one row for each left row, with its group"
					     : "each pair when its later row arrives");
	for (const struct fay_join_key *key = step->keys; key; key = key->next) {
		fputs("  equal      ", out);
		fay_expr_print(out, key->sides[0], join->names[0]);
		fputs(" == ", out);
		fay_expr_print(out, key->sides[1], join->names[index + 1]);
		fputc('\n', out);
	}
	fprintf(out, "  within     %" PRIu64 " ns\n", step->within);
	fprintf(out, "  buffers    %" PRIu64 " MiB a side; rows dropped early are counted\n",
		FAY_JOIN_BYTES >> 20);
	for (const struct fay_filter *f = last ? NULL : p->join->middle.filters; f; f = f->next) {
		fputs("  filter     ", out);
		fay_expr_print(out, f->expr, join->names[0]);
		fputc('\n', out);
	}
}

void fay_print_pairs(FILE *out, const struct fay_plan *plan)
{
	const struct fay_plan_private *p = fay_plan_private(plan);
	for (unsigned step = 0; step + 1 < plan->source_count; step++)
		print_step(out, plan, step);
	fay_print_filters(out, p);
	fay_print_columns(out, p);
	fputs("machine\n", out);
	fay_print_merge(out, p, "pairs");
}

static void print_json_step(FILE *out, const struct fay_plan_private *p, unsigned index)
{
	const struct fay_check_step *step = &p->checked.join->steps[index];
	fputs("\"keys\":[", out);
	for (const struct fay_join_key *key = step->keys; key; key = key->next) {
		fputc('[', out);
		for (unsigned s = 0; s < 2; s++) {
			fay_print_json_expr(out, index && !s ? p : p->join->sides[index + s],
					    key->sides[s], NULL);
			fputs(s ? "]" : ",", out);
		}
		fputs(key->next ? "," : "", out);
	}
	fprintf(out, "],\"within\":%" PRIu64 ",\"tier\":\"%s\",\"bytes\":%" PRIu64, step->within,
		tier_of(step), FAY_JOIN_BYTES);
}

void fay_print_json_join(FILE *out, const struct fay_plan *plan)
{
	const struct fay_plan_private *p = fay_plan_private(plan);
	fputs("\"join\":{\"sides\":[", out);
	for (unsigned s = 0; s < plan->source_count; s++) {
		const struct fay_plan_private *side = p->join->sides[s];
		fputs(s ? ",{\"pattern\":" : "{\"pattern\":", out);
		fay_print_string(out, side->checked.pattern, strlen(side->checked.pattern));
		fprintf(out, ",\"tracepoint\":\"%s\",\"probe\":", fay_print_tracepoint_name(side));
		fay_print_json_stage(out, side);
		fputc('}', out);
	}
	fputs("],", out);
	print_json_step(out, p, 0);
	if (plan->source_count > 2) {
		fputs(",\"then\":{", out);
		print_json_step(out, p, 1);
		fputc('}', out);
	}
	fprintf(out, "%s}", plan->groups_pairs ? ",\"groups\":true" : "");
}
