/* SPDX-License-Identifier: MIT */
/* The join of a plan, as `fay explain` shows it. */
#include "check_join.h"
#include "print.h"

#include <inttypes.h>
#include <string.h>

static bool is_field(const struct fay_expr *expr, const char *name)
{
	return expr->op == EXPR_FIELD && strcmp(fay_fields[expr->value].name, name) == 0;
}

/* Rows of two processes never have the same pid or tid, so such a join is done process by process. */
static const char *tier_of(const struct fay_check_join *join)
{
	for (const struct fay_join_key *key = join->keys; key; key = key->next)
		if ((is_field(key->sides[0], "pid") && is_field(key->sides[1], "pid")) || (is_field(key->sides[0], "tid") && is_field(key->sides[1], "tid")))
			return "process";
	return "machine";
}

void fay_print_pairs(FILE *out, const struct fay_plan *plan)
{
	const struct fay_plan_private *p = fay_plan_private(plan);
	const struct fay_check_join *join = p->checked.join;
	fprintf(out, "join         in the aggregator, of each %s; pairs as their later row comes\n", tier_of(join));
	for (const struct fay_join_key *key = join->keys; key; key = key->next) {
		fputs("  equal      ", out);
		fay_expr_print(out, key->sides[0], join->names[0]);
		fputs(" == ", out);
		fay_expr_print(out, key->sides[1], join->names[1]);
		fputc('\n', out);
	}
	fprintf(out, "  within     %" PRIu64 " ns\n", join->within);
	fprintf(out, "  buffers    %" PRIu64 " MiB a side; what is dropped before its time is counted\n", FAY_JOIN_BYTES >> 20);
	fay_print_filters(out, p);
	fay_print_columns(out, p);
	fputs("machine\n", out);
	fay_print_merge(out, p, "pairs");
}

void fay_print_json_join(FILE *out, const struct fay_plan *plan)
{
	const struct fay_plan_private *p = fay_plan_private(plan);
	const struct fay_check_join *join = p->checked.join;
	fputs("\"join\":{\"sides\":[", out);
	for (unsigned s = 0; s < 2; s++) {
		const struct fay_plan_private *side = p->join->sides[s];
		fputs(s ? ",{\"pattern\":" : "{\"pattern\":", out);
		fay_print_string(out, side->checked.pattern, strlen(side->checked.pattern));
		fprintf(out, ",\"tracepoint\":\"%s\",\"probe\":", fay_print_tracepoint_name(side));
		fay_print_json_stage(out, side);
		fputc('}', out);
	}
	fputs("],\"keys\":[", out);
	for (const struct fay_join_key *key = join->keys; key; key = key->next) {
		fputc('[', out);
		for (unsigned s = 0; s < 2; s++) {
			fay_print_json_expr(out, p->join->sides[s], key->sides[s], NULL);
			fputs(s ? "]" : ",", out);
		}
		fputs(key->next ? "," : "", out);
	}
	fprintf(out, "],\"within\":%" PRIu64 ",\"tier\":\"%s\",\"bytes\":%" PRIu64 "}", join->within, tier_of(join), FAY_JOIN_BYTES);
}
