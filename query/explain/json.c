/* SPDX-License-Identifier: MIT */
/* The plan as one JSON object on one line. */
#include "explain_private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* An expression as a JSON string: its text goes through the escaper. */
void fay_print_json_expr(FILE *out, const struct fay_plan_private *p, const struct fay_expr *expr,
			 const struct fay_aggregate *aggregate)
{
	char *text = NULL;
	size_t size = 0;
	FILE *memory = open_memstream(&text, &size);
	if (memory) {
		if (aggregate)
			fay_print_aggregate(memory, p, aggregate);
		else
			fay_expr_print(memory, expr, fay_print_event_name(p));
		fclose(memory);
	}
	fay_print_string(out, text ? text : "", size);
	free(text);
}

/* Strings that are read whole. */
static void print_json_texts(FILE *out, const struct fay_plan_private *p)
{
	fputs(",\"strings\":[", out);
	for (uint32_t i = 0; i < p->text_count; i++) {
		fprintf(out, "%s{\"bytes\":%u,\"shown\":%s,\"expression\":", i ? "," : "",
			FAY_TEXT_MAX, p->texts[i].shown ? "true" : "false");
		fay_print_json_expr(out, p, p->texts[i].expr, NULL);
		fputc('}', out);
	}
	fputc(']', out);
}

void fay_print_json_stage(FILE *out, const struct fay_plan_private *p)
{
	fputs("{\"filters\":[", out);
	for (struct fay_filter *f = p->checked.filters; f; f = f->next) {
		fay_print_json_expr(out, p, f->expr, NULL);
		fputs(f->next ? "," : "", out);
	}
	fputs("],\"state\":{\"kind\":", out);
	fputs(p->kind == FAY_STATE_TABLE  ? "\"table\""
	      : p->kind == FAY_STATE_CELL ? "\"cell\""
					  : "\"stream\"",
	      out);
	fprintf(out, ",\"rows\":%u,\"row_size\":%u,", p->rows, p->row_size);
	if (p->kind == FAY_STATE_TABLE && p->first_rows < p->rows)
		fprintf(out, "\"first_rows\":%u,", p->first_rows);
	fputs("\"columns\":[", out);
	for (uint32_t i = 0; i < p->keys + p->values; i++) {
		const struct fay_aggregate *aggregate = p->columns[i].expr->aggregate;
		fprintf(out, "%s{\"name\":\"%s\",\"merge\":\"%s\",\"expression\":", i ? "," : "",
			p->columns[i].name,
			fay_print_merge_name(aggregate ? aggregate->merge : FAY_MERGE_KEY));
		fay_print_json_expr(out, p, p->columns[i].expr, aggregate);
		fputc('}', out);
	}
	fputs("]},\"helpers\":[", out);
	fay_print_helpers(out, p, "\"", "");
	fputs("]", out);
	if (p->text_count)
		print_json_texts(out, p);
	fputs("}", out);
}

/* One operation as a JSON string: of `op`, or the grouping of a stage. */
void fay_print_json_op(FILE *out, const struct fay_plan_private *p, const struct fay_root_op *op,
		       bool first)
{
	char *text = NULL;
	size_t size = 0;
	FILE *memory = open_memstream(&text, &size);
	if (memory) {
		if (op)
			fay_print_root_op(memory, p, op);
		else
			fay_print_grouping(memory, p);
		fclose(memory);
	}
	fputs(first ? "" : ",", out);
	fay_print_string(out, text ? text : "", size);
	free(text);
}

static void print_json_root(FILE *out, const struct fay_plan_private *p)
{
	bool first = true;
	fputs(",\"root\":[", out);
	for (const struct fay_plan_private *stage = p; stage; stage = stage->next) {
		if (stage != p || p->buckets) {
			fay_print_json_op(out, stage, NULL, first);
			first = false;
		}
		for (const struct fay_root_op *op = stage->root; op; op = op->next, first = false)
			fay_print_json_op(out, stage, op, first);
	}
	fputc(']', out);
}

const char *fay_print_tracepoint_name(const struct fay_plan_private *p)
{
	return p->checked.kind == SOURCE_ENTRY        ? "entry"
	       : p->checked.kind == SOURCE_MARKER     ? "marker"
	       : p->checked.kind == SOURCE_TRACEPOINT ? "tracepoint"
	       : p->checked.kind == SOURCE_TIMER      ? "timer"
	       : p->checked.kind == SOURCE_LINE       ? "line"
	       : p->checked.kind == SOURCE_SYSCALL
		       ? p->checked.uses_end ? "end of system call" : "begin of system call"
	       : fay_check_has_exceptions(&p->checked) ? "return or exception"
						       : "return";
}

void fay_plan_print_json(FILE *out, const struct fay_plan *plan)
{
	const struct fay_plan_private *p = fay_plan_private(plan);
	const char *merge = p->kind == FAY_STATE_STREAM || p->events ? "collect"
			    : p->kind == FAY_STATE_TABLE             ? "merge by key"
								     : "merge";
	fputs("{\"query\":", out);
	fay_print_string(out, plan->text, strlen(plan->text));
	fputs(",\"pattern\":", out);
	fay_print_string(out, plan->pattern, strlen(plan->pattern));
	fprintf(out, ",\"tracepoint\":\"%s\"", fay_print_tracepoint_name(p));
	if (plan->process) {
		fputs(",\"of\":", out);
		if (plan->process->comm)
			fay_print_string(out, plan->process->comm, strlen(plan->process->comm));
		else
			fprintf(out, "%d", plan->process->pid);
	}
	if (plan->machine) {
		fputs(",\"on\":", out);
		fay_print_string(out, plan->machine, strlen(plan->machine));
	}
	if (plan->when_full)
		fprintf(out, ",\"when_full\":\"%s\"",
			plan->when_full == FAY_FULL_DROP ? "drop" : "overwrite");
	if (plan->back_end) {
		fputs(",\"back_end\":", out);
		fay_print_string(out, plan->back_end, strlen(plan->back_end));
	}
	fprintf(out, ",\"result\":\"%s\"",
		plan->scalar    ? "scalar"
		: plan->streams ? "rows"
				: "groups");
	if (plan->window_step)
		fprintf(out, ",\"window\":{\"width\":%" PRIu64 ",\"step\":%" PRIu64 "}",
			plan->window_width, plan->window_step);
	if (plan->deadline)
		fprintf(out, ",\"deadline\":%" PRIu64, plan->deadline);
	fputc(',', out);
	if (plan->joins)
		fay_print_json_join(out, plan);
	fputs(plan->joins ? ",\"pairs\":" : "\"probe\":", out);
	fay_print_json_stage(out, plan->joins ? p : fay_plan_stage(plan, 0));
	if (plan->window_events)
		fay_print_json_events(out, plan);
	if (plan->joins)
		fputs(",\"cluster\":null", out);
	else if (fay_stage_is_bpf(p))
		fprintf(out, ",\"process\":null,\"machine\":\"%s\",\"cluster\":null", merge);
	else
		fprintf(out, ",\"process\":\"%s\",\"machine\":\"%s\",\"cluster\":null", merge,
			merge);
	print_json_root(out, p);
	fputs(",\"columns\":[", out);
	for (uint32_t i = 0; i < plan->column_count; i++) {
		const struct fay_plan_column *column = &plan->columns[i];
		fprintf(out,
			"%s{\"name\":\"%s\",\"type\":\"%s\",\"source\":\"%s\",\"merge\":\"%s\"}",
			i ? "," : "", column->name, fay_print_type_name(column),
			column->source == FAY_PLAN_KEY     ? "key"
			: column->source == FAY_PLAN_VALUE ? "value"
							   : "computed",
			fay_print_merge_name(column->merge));
	}
	fputs("]}\n", out);
}
