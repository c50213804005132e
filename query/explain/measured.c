/* SPDX-License-Identifier: MIT */
/*
 * `--analyze`: the plan as a tree, the result at its top and the probes at its leaves, with rows,
 * bytes, nanoseconds and losses at each edge. Tiers that merge in one step (process and machine)
 * are one line.
 */
#include "explain_private.h"

#include <inttypes.h>
#include <string.h>

/* A step of the root: an operation, or (op NULL) the grouping of a later stage. */
struct step {
	const struct fay_plan_private *stage;
	const struct fay_root_op *op;
};

/* In the order in which fay_plan_finish() measures them. */
static uint32_t find_steps(const struct fay_plan_private *p, const struct fay_measured *m,
			   struct step steps[FAY_MEASURED_OPS])
{
	uint32_t count = 0;
	for (; p; p = p->next) {
		if (p->number && count < m->op_count)
			steps[count++] = (struct step){ p, NULL };
		for (const struct fay_root_op *op = p->root; op && count < m->op_count;
		     op = op->next)
			steps[count++] = (struct step){ p, op };
	}
	return count;
}

/* --- text --- */

static void branch(FILE *out, unsigned depth)
{
	fprintf(out, "  %*s%s", (int)(2 * depth), "", depth ? "<- " : "");
}

static void print_duration(FILE *out, uint64_t ns)
{
	if (ns >= 1000000)
		fprintf(out, "%.1f ms", (double)ns / 1e6);
	else
		fprintf(out, "%.1f us", (double)ns / 1e3);
}

static void print_rows(FILE *out, uint64_t count)
{
	fprintf(out, "%" PRIu64 " row%s", count, count == 1 ? "" : "s");
}

/* The last step first. Returns the depth of what feeds the first one. */
static unsigned print_steps(FILE *out, const struct fay_plan_private *p,
			    const struct fay_measured *m, unsigned depth)
{
	struct step steps[FAY_MEASURED_OPS];
	for (uint32_t i = find_steps(p, m, steps); i-- > 0;) {
		branch(out, depth++);
		print_rows(out, m->ops[i].out);
		fprintf(out, " of %" PRIu64 ", ", m->ops[i].in);
		print_duration(out, m->ops[i].nanoseconds);
		fputs(": ", out);
		if (steps[i].op)
			fay_print_root_op(out, steps[i].stage, steps[i].op);
		else
			fay_print_grouping(out, steps[i].stage);
		fputc('\n', out);
	}
	return depth;
}

/* The last join first. */
static unsigned print_joins(FILE *out, const struct fay_plan *plan, const struct fay_measured *m,
			    unsigned depth)
{
	unsigned step = plan->source_count - 1;
	branch(out, depth++);
	fprintf(out, "%" PRIu64 " pairs of %" PRIu64 ": conditions on both\n", m->joins.kept,
		m->joins.joins[step - 1].pairs);
	while (step-- > 0) {
		const struct fay_join_counts *c = &m->joins.joins[step];
		branch(out, depth++);
		fprintf(out,
			"%" PRIu64 " pairs of %" PRIu64 " left and %" PRIu64 " right rows, %" PRIu64
			" dropped early, %" PRIu64 " late: join\n",
			c->pairs, c->rows[0], c->rows[1], c->evicted[0] + c->evicted[1],
			c->late[0] + c->late[1]);
	}
	return depth;
}

void fay_plan_print_measured(FILE *out, const struct fay_plan *plan, const struct fay_measured *m)
{
	const struct fay_plan_private *p = fay_plan_private(plan);
	branch(out, 0);
	print_rows(out, m->result_rows);
	fputs(": result\n", out);
	unsigned depth = print_steps(out, p, m, 1);
	if (!plan->streams) {
		branch(out, depth++);
		print_rows(out, m->merged_rows);
		fputs(", ", out);
		print_duration(out, m->merge_ns);
		fputs(": merged by key; the threads' tables held ", out);
		print_rows(out, m->live_rows);
		fputc('\n', out);
	}
	if (plan->joins)
		depth = print_joins(out, plan, m, depth);
	branch(out, depth++);
	print_duration(out, m->poll_ns);
	fputs(": taking over rows from the threads\n", out);
	for (unsigned side = 0; side < plan->source_count; side++) {
		branch(out, depth);
		print_rows(out, m->handed_on[side].rows);
		fprintf(out, ", %" PRIu64 " bytes: ", m->handed_on[side].bytes);
		fay_print_tracepoint(out, fay_plan_stage(plan, side));
	}
	branch(out, depth + 1);
	if (m->events)
		fprintf(out, "%" PRIu64 " events, %" PRIu64 " ns each, ", m->events,
			m->probe_ns / m->events);
	fprintf(out, "%" PRIu64 " lost: probe%s\n", m->lost, plan->joins ? "s" : "");
}

/* --- JSON --- */

static void print_number(FILE *out, const char *name, uint64_t value)
{
	fprintf(out, ",\"%s\":%" PRIu64, name, value);
}

static void print_json_steps(FILE *out, const struct fay_plan_private *p,
			     const struct fay_measured *m)
{
	struct step steps[FAY_MEASURED_OPS];
	uint32_t count = find_steps(p, m, steps);
	fputs(",\"root\":[", out);
	for (uint32_t i = 0; i < count; i++) {
		fputs(i ? ",{\"step\":" : "{\"step\":", out);
		fay_print_json_op(out, steps[i].stage, steps[i].op, true);
		print_number(out, "rows_in", m->ops[i].in);
		print_number(out, "rows_out", m->ops[i].out);
		print_number(out, "nanoseconds", m->ops[i].nanoseconds);
		fputc('}', out);
	}
	fputc(']', out);
}

void fay_plan_print_measured_json(FILE *out, const struct fay_plan *plan,
				  const struct fay_measured *m, bool final)
{
	fprintf(out, "{\"type\":\"analysis\",\"final\":%s,\"sources\":[", final ? "true" : "false");
	for (unsigned side = 0; side < plan->source_count; side++) {
		const struct fay_plan_private *stage = fay_plan_stage(plan, side);
		fputs(side ? ",{\"pattern\":" : "{\"pattern\":", out);
		fay_print_string(out, stage->checked.pattern, strlen(stage->checked.pattern));
		print_number(out, "rows", m->handed_on[side].rows);
		print_number(out, "bytes", m->handed_on[side].bytes);
		fputc('}', out);
	}
	fputc(']', out);
	print_number(out, "events", m->events);
	print_number(out, "probe_ns", m->probe_ns);
	print_number(out, "events_lost", m->lost);
	print_number(out, "poll_ns", m->poll_ns);
	if (plan->joins) {
		print_number(out, "pairs", m->joins.joins[plan->source_count - 2].pairs);
		print_number(out, "pairs_kept", m->joins.kept);
	}
	print_number(out, "live_rows", m->live_rows);
	print_number(out, "merged_rows", m->merged_rows);
	print_number(out, "merge_ns", m->merge_ns);
	print_json_steps(out, fay_plan_private(plan), m);
	print_number(out, "result_rows", m->result_rows);
	fputs("}\n", out);
}
