/* SPDX-License-Identifier: MIT */
/* What a plan keeps, for a line below the query that is being typed. */
#include "explain_private.h"

#include <stdlib.h>
#include <string.h>

static void print_source(FILE *out, const struct fay_plan_private *p)
{
	char *text = NULL;
	size_t size;
	if (fay_stage_is_bpf(p) && p->checked.kernel->count > 1) {
		fprintf(out, "%u %s, ", p->checked.kernel->count,
			p->checked.kind == SOURCE_TRACEPOINT ? "tracepoints" : "system calls");
		return;
	}
	FILE *memory = open_memstream(&text, &size);
	if (memory) {
		fay_print_tracepoint(memory, p);
		fclose(memory);
	}
	if (text)
		fprintf(out, "%.*s, ", (int)strcspn(text, "\n"), text);
	free(text);
}

void fay_plan_print_brief(FILE *out, const struct fay_plan *plan)
{
	const struct fay_plan_private *p = fay_plan_stage(plan, 0);
	const char *of = fay_stage_is_bpf(p) ? "processor" : "thread";
	if (plan->domain != DOMAIN_USER && !plan->joins)
		print_source(out, p);
	if (plan->joins)
		fprintf(out, "%u sources are joined in fay", plan->source_count);
	else if (p->kind == FAY_STATE_TABLE)
		fprintf(out, "%u bytes a key", p->row_size);
	else if (p->kind == FAY_STATE_CELL)
		fprintf(out, "%u bytes a %s", p->row_size, of);
	else
		fprintf(out, "%u bytes are sent for each event", p->row_size);
}
