/* SPDX-License-Identifier: MIT */
/* `fay explain`: the plan by tier, as text. */
#include "explain_private.h"

#include <inttypes.h>

const char *fay_print_event_name(const struct fay_plan_private *p)
{
	return p->checked.event_name ? p->checked.event_name : "event";
}

void fay_print_aggregate(FILE *out, const struct fay_plan_private *p,
			 const struct fay_aggregate *aggregate)
{
	fputs(aggregate->merge == FAY_MERGE_COUNT ? "count" : aggregate->text, out);
	if (aggregate->operand) {
		fputs(" of ", out);
		fay_expr_print(out, aggregate->operand, fay_print_event_name(p));
	}
	if (aggregate->condition) {
		fputs(" where ", out);
		fay_expr_print(out, aggregate->condition, fay_print_event_name(p));
	}
	if (aggregate->when) {
		fputs(" by ", out);
		fay_expr_print(out, aggregate->when, fay_print_event_name(p));
	}
}

const char *fay_print_merge_name(enum fay_merge merge)
{
	static const char *const names[] = {
		[FAY_MERGE_KEY] = "key",
		[FAY_MERGE_COUNT] = "count",
		[FAY_MERGE_SUM] = "sum",
		[FAY_MERGE_MIN] = "min",
		[FAY_MERGE_MAX] = "max",
		[FAY_MERGE_AVERAGE] = "average",
		[FAY_MERGE_HIST_LOG2] = "histogram_log2",
		[FAY_MERGE_HIST_LINEAR] = "histogram_linear",
		[FAY_MERGE_HIST_LOGLINEAR] = "histogram_loglinear",
		[FAY_MERGE_QUANTILE] = "quantiles",
		[FAY_MERGE_DISTINCT] = "distinct",
		[FAY_MERGE_TOP] = "top",
		[FAY_MERGE_FIRST] = "first",
		[FAY_MERGE_LAST] = "last",
		[FAY_MERGE_SAMPLE] = "sample",
	};
	return merge == FAY_RESULT_COMPUTED ? "computed" : names[merge];
}

const char *fay_print_type_name(const struct fay_plan_column *column)
{
	static const char *const names[] = {
		[FAY_TYPE_I64] = "integer",   [FAY_TYPE_U64] = "unsigned",
		[FAY_TYPE_STRING] = "string", [FAY_TYPE_FUNCTION] = "function",
		[FAY_TYPE_TIME] = "time",     [FAY_TYPE_BOOL] = "bool",
	};
	if (column->stack_frames)
		return "stack";
	if (column->address || column->enumeration)
		return column->address ? "address" : "enumeration";
	return column->type == FAY_RESULT_REAL ? "real number" : names[column->type];
}

bool fay_stage_is_bpf(const struct fay_plan_private *p)
{
	return fay_source_is_bpf(p->checked.kind) && p->checked.domain == DOMAIN_KERNEL;
}

/* The helpers of native probes, each between `quote`s. */
void fay_print_helpers(FILE *out, const struct fay_plan_private *p, const char *quote,
		       const char *none)
{
	const char *rows = p->kind == FAY_STATE_TABLE    ? "fay_flush"
			   : p->kind == FAY_STATE_STREAM ? "fay_emit"
							 : NULL;
	bool members = p->checked.exprs.members || p->checked.exprs.stack_frames, texts = false;
	for (uint32_t i = 0; i < p->text_count && p->kind != FAY_STATE_STREAM; i++)
		texts |= p->texts[i].shown;
	const char *helpers[] = { members ? "fay_try_read" : NULL, rows,
				  texts ? "fay_emit" : NULL };
	const char *before = "";
	if (fay_stage_is_bpf(p) || p->join || p->events || (!rows && !members)) {
		fputs(none, out);
		return;
	}
	for (size_t i = 0; i < sizeof(helpers) / sizeof(helpers[0]); i++) {
		if (!helpers[i])
			continue;
		fprintf(out, "%s%s%s%s", before, quote, helpers[i], quote);
		before = *quote ? "," : ", ";
	}
}

/* --- text --- */

void fay_print_filters(FILE *out, const struct fay_plan_private *p)
{
	for (struct fay_filter *f = p->checked.filters; f; f = f->next) {
		fputs("  filter     ", out);
		fay_expr_print(out, f->expr, fay_print_event_name(p));
		fputc('\n', out);
	}
}

void fay_print_columns(FILE *out, const struct fay_plan_private *p)
{
	for (uint32_t i = 0; i < p->keys; i++) {
		fprintf(out, "  %-10s %s = ", p->kind == FAY_STATE_STREAM ? "column" : "key",
			p->columns[i].name);
		fay_expr_print(out, p->columns[i].expr, fay_print_event_name(p));
		fputc('\n', out);
	}
	for (uint32_t i = p->keys; i < p->keys + p->values; i++) {
		fprintf(out, "  update     %s = ", p->columns[i].name);
		fay_print_aggregate(out, p, p->columns[i].expr->aggregate);
		fputc('\n', out);
	}
}

static void print_kept(FILE *out, const struct fay_plan_private *p)
{
	const char *separator = "  keeps      ";
	if (!p->checked.return_arguments)
		return;
	for (unsigned i = 0; i < 6; i++)
		if (p->checked.exprs.arguments >> i & 1) {
			fprintf(out, "%s%s.Arg(%u)", separator, fay_print_event_name(p), i);
			separator = ", ";
		}
	fputs(" of each call, from its entry to its return\n", out);
}

/* Strings that are read whole. */
static void print_texts(FILE *out, const struct fay_plan_private *p)
{
	for (uint32_t i = 0; i < p->text_count; i++) {
		fputs("  string     ", out);
		fay_expr_print(out, p->texts[i].expr, fay_print_event_name(p));
		fprintf(out, ", up to %u bytes%s\n", FAY_TEXT_MAX,
			p->texts[i].shown ? "; its text is sent once, beside the rows" : "");
	}
}

static void print_state(FILE *out, const struct fay_plan_private *p)
{
	const char *owner = fay_stage_is_bpf(p) ? "processor" : "thread";
	print_kept(out, p);
	print_texts(out, p);
	fay_print_columns(out, p);
	if (p->kind == FAY_STATE_TABLE) {
		fprintf(out, "  state      table of %u rows of %u bytes, one per %s", p->first_rows,
			p->row_size, owner);
		if (p->first_rows < p->rows)
			fprintf(out, "; twice as many each time it runs full, up to %u, %u KiB",
				p->rows, p->state.size >> 10);
		fputc('\n', out);
		fprintf(out, "  overflow   after %u rows searched, or at 7/8 full: %s\n",
			FAY_TABLE_STEPS,
			fay_stage_is_bpf(p) ? "the event's row is sent by itself"
					    : "all rows are flushed and the table is cleared");
	} else if (p->kind == FAY_STATE_CELL) {
		fprintf(out, "  state      one row of %u bytes per %s\n", p->row_size, owner);
	} else {
		fprintf(out, "  state      none: each row of %u bytes is sent\n", p->row_size);
	}
	if (fay_stage_is_bpf(p))
		return;
	fputs("  helpers    ", out);
	fay_print_helpers(out, p, "", "none");
	fputc('\n', out);
}

void fay_print_merge(FILE *out, const struct fay_plan_private *p, const char *of)
{
	if (p->kind == FAY_STATE_STREAM) {
		fprintf(out, "  collect    the rows of all %s\n", of);
		return;
	}
	fprintf(out, "  merge      the %s of all %s",
		p->kind == FAY_STATE_TABLE ? "rows" : "values", of);
	if (p->kind == FAY_STATE_TABLE)
		fputs(" by key", out);
	const char *separator = ": ";
	for (uint32_t i = p->keys; i < p->keys + p->values; i++) {
		fprintf(out, "%s%s by %s", separator, p->columns[i].name,
			fay_print_merge_name(p->columns[i].expr->aggregate->merge));
		separator = ", ";
	}
	fputc('\n', out);
}

static void print_orders(FILE *out, const struct fay_plan_private *p, const struct fay_order *order)
{
	for (; order; order = order->next) {
		fay_expr_print(out, order->expr, fay_print_event_name(p));
		fputs(order->descending ? " descending" : "", out);
		fputs(order->next ? ", " : "", out);
	}
}

/* What one operation of the root does, on one line. */
void fay_print_root_op(FILE *out, const struct fay_plan_private *p, const struct fay_root_op *op)
{
	switch (op->kind) {
	case ROOT_FILTER:
		fputs("keep rows where ", out);
		fay_expr_print(out, op->expr, fay_print_event_name(p));
		break;
	case ROOT_ORDER:
		fputs("order by ", out);
		print_orders(out, p, op->orders);
		break;
	case ROOT_DISTINCT:
		fputs("rows distinct in ", out);
		print_orders(out, p, op->orders);
		break;
	case ROOT_KMEANS:
		fprintf(out, "%" PRIu64 " clusters by vector, dimension and value: ", op->count);
		print_orders(out, p, op->orders);
		break;
	case ROOT_TAKE:
	case ROOT_SKIP:
		fprintf(out,
			op->kind == ROOT_TAKE ? "the first %" PRIu64 " rows"
					      : "all but the first %" PRIu64 " rows",
			op->count);
		break;
	case ROOT_FOLD:
		fprintf(out, "%s over all rows", op->text);
		if (op->expr) {
			fputs(" of ", out);
			fay_expr_print(out, op->expr, fay_print_event_name(p));
		}
		break;
	}
}

/* Summaries that were kept by bucket. */
static void print_folding(FILE *out, const struct fay_plan_private *p)
{
	const char *separator = "put each group's buckets together: ";
	for (uint32_t i = 0; i < p->values; i++) {
		const struct fay_layout_column *column = &p->columns[p->keys + i];
		if (p->buckets->from[i])
			continue;
		fprintf(out, "%s%s = ", separator, column->name);
		fay_print_aggregate(out, p, column->expr->aggregate);
		separator = ", ";
	}
}

/* Buckets become summaries, or rows are grouped once more: by what, and what is kept of them. */
void fay_print_grouping(FILE *out, const struct fay_plan_private *p)
{
	if (p->buckets) {
		print_folding(out, p);
		return;
	}
	fputs("group by ", out);
	for (uint32_t i = 0; i < p->keys; i++) {
		fputs(i ? ", " : "", out);
		fay_expr_print(out, p->columns[i].expr, fay_print_event_name(p));
	}
	for (uint32_t i = p->keys; i < p->keys + p->values; i++) {
		fprintf(out, "%s%s = ", i == p->keys ? ": " : ", ", p->columns[i].name);
		fay_print_aggregate(out, p, p->columns[i].expr->aggregate);
	}
}

static void print_root(FILE *out, const struct fay_plan *plan, const struct fay_plan_private *p)
{
	const struct fay_plan_private *last = fay_plan_last(plan);
	if (!p->root && !last->computed_count && !plan->window_step && last == p && !p->buckets)
		return;
	fputs("root         where the query was started\n", out);
	if (plan->window_step)
		fprintf(out,
			"  windows    of %" PRIu64 " ms, every %" PRIu64
			" ms; what follows is done in each separately\n",
			plan->window_width / 1000000, plan->window_step / 1000000);
	for (const struct fay_plan_private *stage = p; stage; stage = stage->next) {
		if (stage != p || p->buckets) {
			fputs("  rows       ", out);
			fay_print_grouping(out, stage);
			fputc('\n', out);
		}
		for (const struct fay_root_op *op = stage->root; op; op = op->next) {
			fputs("  rows       ", out);
			fay_print_root_op(out, p, op);
			fputc('\n', out);
		}
	}
	for (uint32_t i = 0; i < plan->column_count; i++) {
		if (plan->columns[i].source != FAY_PLAN_COMPUTED)
			continue;
		fprintf(out, "  compute    %s = ", plan->columns[i].name);
		fay_expr_print(out, last->computed[plan->columns[i].index],
			       fay_print_event_name(p));
		fputc('\n', out);
	}
}

static void print_saved(FILE *out, const struct fay_plan_private *p)
{
	static const char *const kinds[] = { [SOURCE_ENTRY] = "calls",
					     [SOURCE_RETURN] = "returns",
					     [SOURCE_MARKER] = "USDT probes",
					     [SOURCE_SYSCALL] = "system calls",
					     [SOURCE_TRACEPOINT] = "tracepoints",
					     [SOURCE_TIMER] = "ticks",
					     [SOURCE_LINE] = "lines" };
	fprintf(out, "%s%s saved in %s\n", kinds[p->checked.kind],
		p->checked.saved_kernel && !fay_source_is_bpf(p->checked.kind) ? " in the kernel"
									       : "",
		p->checked.pattern);
}

/* What the probe is attached to, in words. */
void fay_print_tracepoint(FILE *out, const struct fay_plan_private *p)
{
	const struct fay_checked *checked = &p->checked;
	if (fay_stage_is_bpf(p)) {
		const char *what = checked->kind == SOURCE_TRACEPOINT ? "tracepoint"
				   : checked->uses_end                ? "return of system call"
								      : "entry of system call";
		if (checked->kernel->period)
			fprintf(out, "each processor's clock, every %" PRIu64 " ns\n",
				checked->kernel->period);
		else if (checked->kernel->count == 1)
			fprintf(out, "%s %s\n", what, checked->kernel->points[0].name);
		else
			fprintf(out, "%s, %u that match %s\n", what, checked->kernel->count,
				checked->pattern);
		return;
	}
	if (checked->domain == DOMAIN_FILE) {
		print_saved(out, p);
		return;
	}
	fprintf(out, "%s %s\n",
		checked->kind == SOURCE_ENTRY       ? "entry of"
		: checked->kind == SOURCE_MARKER    ? "USDT probe"
		: checked->kind == SOURCE_LINE      ? "statement at"
		: fay_check_has_exceptions(checked) ? "return or exception of"
						    : "return of",
		checked->pattern);
	if (checked->inlined)
		fprintf(out, "             and of its copies that were inlined, %s\n",
			checked->inlined);
	if (checked->calls)
		fprintf(out, "             and what its calls begin with, %s\n", checked->calls);
}

static const char *probe_text(const struct fay_plan_private *p)
{
	return fay_stage_is_bpf(p)
		       ? "probe        a BPF program, checked and compiled by the kernel\n"
	       : p->checked.domain == DOMAIN_FILE
		       ? "probe        native code, run over the saved events\n"
		       : "probe        native code, inline at the patch point\n";
}

/* The processes and machines that the query names, and what it says of full rings. */
static void print_origin(FILE *out, const struct fay_plan *plan)
{
	if (plan->process && plan->process->comm)
		fprintf(out, "of           the processes named %s\n", plan->process->comm);
	else if (plan->process)
		fprintf(out, "of           process %d\n", plan->process->pid);
	if (plan->machine)
		fprintf(out, "on           the machines named %s\n", plan->machine);
	if (plan->when_full)
		fprintf(out, "when full    %s, and counted as lost\n",
			plan->when_full == FAY_FULL_DROP
				? "events that find no room in their thread's ring are dropped"
				: "the oldest rows in a thread's ring are overwritten");
}

/* What begins a plan: sources, probes, and what each tier merges. */
static void print_tiers(FILE *out, const struct fay_plan *plan, const struct fay_plan_private *p)
{
	fputs("source       ", out);
	fay_print_tracepoint(out, p);
	print_origin(out, plan);
	if (plan->back_end)
		fprintf(out, "back end     %s\n", plan->back_end);
	if (plan->deadline) {
		fputs("until        ", out);
		fay_time_print(out, plan->deadline);
		fputc('\n', out);
	}
	fputs(probe_text(p), out);
	fay_print_filters(out, p);
	print_state(out, p);
	if (fay_stage_is_bpf(p)) {
		fputs("machine\n", out);
		fay_print_merge(out, p, "processors");
	} else {
		fputs("process\n", out);
		fay_print_merge(out, p, "threads");
		fputs("machine\n", out);
		fay_print_merge(out, p, "processes");
	}
}

/* The sources of a join, then what is done with its pairs. */
static void print_join(FILE *out, const struct fay_plan *plan, const struct fay_plan_private *p)
{
	for (unsigned s = 0; s < plan->source_count; s++) {
		const struct fay_plan_private *side = p->join->sides[s];
		fputs("source       ", out);
		fay_print_tracepoint(out, side);
		if (plan->back_end && side->checked.domain == DOMAIN_KERNEL)
			fprintf(out, "back end     %s\n", plan->back_end);
		fputs(probe_text(side), out);
		fay_print_filters(out, side);
		print_state(out, side);
	}
	print_origin(out, plan);
	if (plan->deadline) {
		fputs("until        ", out);
		fay_time_print(out, plan->deadline);
		fputc('\n', out);
	}
	fay_print_pairs(out, plan);
}

void fay_plan_print(FILE *out, const struct fay_plan *plan)
{
	const struct fay_plan_private *p = fay_plan_private(plan);
	for (uint32_t i = 0; i < p->query->extension_count; i++)
		fprintf(out, "extended by  %s\n", p->query->extensions[i].path);
	if (plan->joins)
		print_join(out, plan, p);
	else
		print_tiers(out, plan, fay_plan_stage(plan, 0));
	if (plan->window_events)
		fay_print_events(out, plan);
	fputs("cluster      no other machine is configured: this machine's result is the result\n",
	      out);
	print_root(out, plan, p);
	fputs("result\n", out);
	for (uint32_t i = 0; i < plan->column_count; i++) {
		const struct fay_plan_column *column = &plan->columns[i];
		fprintf(out, "  column     %s: %s", column->name, fay_print_type_name(column));
		if (column->source != FAY_PLAN_KEY)
			fprintf(out, ", %s", fay_print_merge_name(column->merge));
		fputc('\n', out);
	}
}
