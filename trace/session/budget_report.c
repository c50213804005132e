/* SPDX-License-Identifier: MIT */
/* What is said of the budget: a line when the first point goes, and one in the end. --verbose and
 * --json have a line whenever a point goes or comes back, and one for each in the end. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "session.h"

#define DEPARTED_MOST 4096u
#define SHOWN 20u
#define NAMED 3u /* functions, in the one line of the end */

static uint64_t event_ns(const struct fay_point_cost *cost)
{
	return cost->events ? cost->nanoseconds / cost->events : 0;
}

void fay_budget_say(const struct trace *trace, const struct fay_budget_account *account,
		    size_t point, bool out)
{
	const struct fay_function *function = fay_session_point(account->session, point);
	size_t number = ++trace->spending->said, most = trace->json ? SHOWN : 1;
	if (number > most && !trace->verbose)
		return;
	fprintf(trace->messages, "fay: budget of %g%%: %s: %s!%s%s", trace->budget * 100,
		out ? "left out from now on" : "traced again", function->module, function->name,
		point < account->points ? "" : ", in which traced calls go on");
	if (out)
		fprintf(trace->messages, " (took %.1f%% of the processor time",
			account->left[point].share * 100);
	if (out && point < account->points)
		fprintf(trace->messages, ", %" PRIu64 " ns an event",
			event_ns(&account->costs[point]));
	fprintf(trace->messages, "%s", out ? ")" : "");
	fprintf(trace->messages, "%s\n",
		number == most && !trace->verbose ? "; --verbose names those that follow" : "");
}

static void print_departed(const struct trace *trace, const struct fay_departed *one)
{
	const struct fay_left_out *left = &one->left;
	if (trace->json) {
		fprintf(trace->json, "{\"type\":\"left_out\",\"process\":%d", (int)one->pid);
		fay_json_text(trace->json, ",\"module\":", one->module);
		fay_json_text(trace->json, ",\"function\":", one->function);
		fprintf(trace->json,
			",\"after_ns\":%" PRIu64 ",\"events\":%" PRIu64 ",\"event_ns\":%" PRIu64
			",\"share\":%.6f,\"times\":%" PRIu32 ",\"absent_ns\":%" PRIu64 "%s}\n",
			left->after, one->events, one->event_ns, left->share, left->times,
			left->absent, one->beside ? ",\"beside\":true" : "");
	}
	if (!trace->json && !trace->verbose)
		return;
	fprintf(trace->messages, "fay: left out: %s!%s from %.3f s on, for %.3f s; ", one->module,
		one->function, (double)left->after / 1e9, (double)left->absent / 1e9);
	if (one->beside)
		fprintf(trace->messages, "calls that went on there meanwhile ended at the jump\n");
	else
		fprintf(trace->messages,
			"the probes ran for %" PRIu64 " events, and for none meanwhile\n",
			one->events);
}

void fay_budget_keep_departed(struct fay_trace_budget *budget,
			      const struct fay_budget_account *account)
{
	for (size_t i = 0; i < account->count && budget->departed_count < DEPARTED_MOST; i++) {
		const struct fay_function *function = fay_session_point(account->session, i);
		struct fay_departed *one;
		if (!account->left[i].after)
			continue;
		one = realloc(budget->departed, (budget->departed_count + 1) * sizeof(*one));
		if (!one)
			return;
		budget->departed = one;
		one += budget->departed_count++;
		*one = (struct fay_departed){ .pid = account->pid,
					      .left = account->left[i],
					      .beside = i >= account->points,
					      .events = account->costs[i].events,
					      .event_ns = event_ns(&account->costs[i]) };
		if (one->left.since)
			one->left.absent += fay_monotonic() - one->left.since;
		snprintf(one->module, sizeof(one->module), "%s", function->module);
		snprintf(one->function, sizeof(one->function), "%s", function->name);
	}
}

/* Events that were under way have ended, and their processor time is to be counted, too. */
static void look_finally(struct fay_trace_budget *budget)
{
	for (size_t i = 0; i < budget->count; i++) {
		struct fay_budget_account *account = &budget->items[i];
		bool counts = fay_budget_is_first(budget, i) &&
			      fay_session_target_alive(account->session);
		uint64_t cpu_now = counts ? fay_process_cpu_ns(account->pid) : 0;
		fay_budget_look(account, &budget->spent);
		budget->cpu +=
			cpu_now > account->cpu_before ? (double)(cpu_now - account->cpu_before) : 0;
		fay_budget_keep_departed(budget, account);
	}
}

static int longest_first(const void *a, const void *b)
{
	const struct fay_departed *x = a, *y = b;
	if (x->left.absent != y->left.absent)
		return x->left.absent < y->left.absent ? 1 : -1;
	return strcmp(x->function, y->function);
}

/* "; 52 functions were left out, for 2.0 s at most of 3.9 s: a, b, c and others". */
static void print_left_out(const struct trace *trace, const struct fay_trace_budget *budget)
{
	const struct fay_departed *first = budget->departed;
	size_t count = budget->departed_count, named = count < NAMED ? count : NAMED;
	fprintf(trace->messages,
		"; left out: %zu function%s, for %.1f s%s of %.1f s: ", budget->left_out,
		budget->left_out == 1 ? "" : "s", (double)first->left.absent / 1e9,
		count > 1 ? " at most" : "", (double)(fay_monotonic() - budget->began) / 1e9);
	for (size_t i = 0; i < named; i++)
		fprintf(trace->messages, "%s%s!%s", i ? ", " : "", first[i].module,
			first[i].function);
	fprintf(trace->messages, "%s (calls meanwhile are not counted; --verbose tells each)\n",
		named < budget->left_out ? " and others" : "");
}

void fay_trace_budget_print(const struct trace *trace)
{
	struct fay_trace_budget *budget = trace->spending;
	bool all = trace->verbose || trace->json;
	if (!budget)
		return;
	look_finally(budget);
	if (budget->departed_count)
		qsort(budget->departed, budget->departed_count, sizeof(*budget->departed),
		      longest_first);
	for (size_t i = 0; i < budget->departed_count; i++)
		print_departed(trace, &budget->departed[i]);
	double measured = budget->cpu > 0 ? budget->spent / budget->cpu : 0;
	if (trace->json)
		fprintf(trace->json,
			"{\"type\":\"budget\",\"share\":%g,\"measured\":%.6f,\"left_out\":%zu}\n",
			trace->budget, measured, budget->left_out);
	if (trace->budget_by_default && !budget->departed_count && !all)
		return; /* nobody asked for this bound, and nothing came near it */
	fprintf(trace->messages,
		"fay: the probes took about %.2f%% of the processor time, the budget was %g%%",
		measured * 100, trace->budget * 100);
	if (budget->departed_count && !all)
		print_left_out(trace, budget);
	else
		fprintf(trace->messages, "; functions left out: %zu\n", budget->left_out);
	if (budget->departed_count && trace->plan && trace->plan->source_count > 1)
		fprintf(trace->messages,
			"fay: that makes a join wrong, not only smaller: what has no pair here may "
			"have had one; --budget none leaves nothing out\n");
}

void fay_trace_budget_visit_out(const struct trace *trace, fay_trace_out_visit *visit,
				void *context)
{
	const struct fay_trace_budget *budget = trace->spending;
	uint64_t now = fay_monotonic();
	for (uint32_t i = 0; i < trace->traps.program_count; i++) {
		const struct fay_trap_program *program = &trace->traps.programs[i];
		uint32_t first = 0;
		while (!fay_trap_of_same(&trace->traps.programs[first].trap, &program->trap))
			first++;
		if (program->given_up && first == i)
			visit(context, &program->trap.function, true, now - program->since);
	}
	for (size_t i = 0; budget && i < budget->count; i++) {
		const struct fay_budget_account *account = &budget->items[i];
		for (size_t k = 0; k < account->points; k++) {
			const struct fay_left_out *left = &account->left[k];
			if (left->after)
				visit(context, fay_session_point(account->session, k), left->since,
				      left->absent + (left->since ? now - left->since : 0));
		}
	}
}
