/* SPDX-License-Identifier: MIT */
/*
 * --budget: each LOOK_EVERY what the probes have cost a process since the last look is compared
 * with the processor time that it has used. If that is more than the budget allows, the costliest
 * points are taken out, as many as it takes. What was left out is said at once and, with the exact
 * number of its events whose probes ran, at the end.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "trace_parts.h"

#define LOOK_EVERY 250000000u /* ns */
/* ns of processor time, below which a share says little: then the next look is at a longer time */
#define CPU_LEAST 10000000u
#define SHOWN 20u

struct left_out {
	uint64_t after; /* ns since the trace began; 0: not left out */
	double share;   /* of the processor time, in the last look */
};

/* Of one session. */
struct account {
	struct fay_session *session;
	pid_t pid;
	size_t count;
	struct fay_point_cost *costs; /* by point */
	uint64_t *spent;              /* ns, between the last two looks */
	struct left_out *left;
	size_t out;          /* points that are left out */
	uint64_t cpu_before; /* ns, of the process */
	bool stuck;          /* points could not be taken out, which was said */
};

struct fay_trace_budget {
	struct account *items;
	size_t count;
	uint64_t began, next; /* monotonic ns */
	double spent, cpu;    /* ns, of all looks */
	size_t left_out;
};

struct candidate {
	struct account *account;
	size_t point;
	uint64_t spent;
};

static int account_init(struct account *account, struct fay_session *session, pid_t pid)
{
	size_t count = fay_session_point_count(session);
	*account = (struct account){ .session = session,
				     .pid = pid,
				     .count = count,
				     .cpu_before = fay_process_cpu_ns(pid) };
	account->costs = calloc(count + 1, sizeof(*account->costs));
	account->spent = calloc(count + 1, sizeof(*account->spent));
	account->left = calloc(count + 1, sizeof(*account->left));
	return account->costs && account->spent && account->left ? FAY_OK : FAY_E_LIMIT;
}

static bool has_account(const struct fay_trace_budget *budget, const struct fay_session *session)
{
	for (size_t i = 0; i < budget->count; i++)
		if (budget->items[i].session == session)
			return true;
	return false;
}

/* Modules that came meanwhile have sessions of their own. */
static int open_accounts(struct trace *trace)
{
	struct fay_trace_budget *budget = trace->spending;
	for (size_t i = 0; i < trace->session_count; i++) {
		if (has_account(budget, trace->sessions[i]))
			continue;
		struct account *grown =
			realloc(budget->items, (budget->count + 1) * sizeof(*grown));
		if (!grown)
			return FAY_E_LIMIT;
		budget->items = grown;
		if (account_init(&grown[budget->count++], trace->sessions[i],
				 fay_target_pid(trace->targets[i])))
			return FAY_E_LIMIT;
	}
	return FAY_OK;
}

/* Brings the account up to date, and adds what was spent since the last time. Returns how much of
 * that points spent that are still in place. */
static double account_look(struct account *account, double *all)
{
	double in_place = 0;
	for (size_t i = 0; i < account->count; i++)
		account->spent[i] = account->costs[i].nanoseconds;
	fay_session_costs(account->session, account->costs);
	for (size_t i = 0; i < account->count; i++) {
		account->spent[i] = account->costs[i].nanoseconds - account->spent[i];
		*all += (double)account->spent[i];
		in_place += account->costs[i].taken_out ? 0 : (double)account->spent[i];
	}
	return in_place;
}

/* "module!name" */
static void print_name(const struct account *account, size_t point)
{
	const struct fay_function *function = fay_session_point(account->session, point);
	fprintf(stderr, "%s!%s", function->module, function->name);
}

static uint64_t event_ns(const struct fay_point_cost *cost)
{
	return cost->events ? cost->nanoseconds / cost->events : 0;
}

static void say_left_out(const struct trace *trace, const struct candidate *candidate)
{
	const struct account *account = candidate->account;
	size_t number = trace->spending->left_out;
	if (number > SHOWN && !trace->verbose)
		return;
	fprintf(stderr, "fay: budget of %g%%: left out from now on: ", trace->budget * 100);
	print_name(account, candidate->point);
	fprintf(stderr, " (took %.1f%% of the processor time, %" PRIu64 " ns an event)%s\n",
		account->left[candidate->point].share * 100,
		event_ns(&account->costs[candidate->point]),
		number == SHOWN && !trace->verbose ? "; --verbose names those that follow" : "");
}

/* Takes those points out that belong to this session. */
static int take_out(struct trace *trace, struct account *account, const struct candidate *chosen,
		    size_t count, double cpu)
{
	size_t *points = calloc(count + 1, sizeof(*points)), own = 0;
	struct fay_error error;
	if (!points)
		return FAY_E_LIMIT;
	for (size_t i = 0; i < count; i++)
		if (chosen[i].account == account)
			points[own++] = chosen[i].point;
	bool failed = own && fay_session_take_out(account->session, points, own, &error);
	free(points);
	if (failed && !account->stuck && fay_session_target_alive(account->session))
		fprintf(stderr, "fay: over the budget, but nothing could be left out: %s\n",
			error.message);
	account->stuck |= failed;
	for (size_t i = 0; i < count && !failed; i++) {
		if (chosen[i].account != account)
			continue;
		account->left[chosen[i].point] =
			(struct left_out){ .after = fay_monotonic() - trace->spending->began,
					   .share = (double)chosen[i].spent / cpu };
		trace->spending->left_out++;
		account->out++;
		say_left_out(trace, &chosen[i]);
	}
	return FAY_OK;
}

static int costliest_first(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	return x->spent < y->spent ? 1 : x->spent > y->spent ? -1 : 0;
}

/* The points of the process, its accounts from `first` on, that can be taken out and cost
 * something; costliest first. */
static size_t find_candidates(struct fay_trace_budget *budget, size_t first,
			      struct candidate *candidates)
{
	pid_t pid = budget->items[first].pid;
	size_t count = 0;
	for (size_t i = first; i < budget->count; i++) {
		struct account *account = &budget->items[i];
		for (size_t k = 0; k < account->count && account->pid == pid; k++)
			if (!account->costs[k].taken_out && !account->costs[k].fixed &&
			    account->spent[k])
				candidates[count++] =
					(struct candidate){ account, k, account->spent[k] };
	}
	qsort(candidates, count, sizeof(*candidates), costliest_first);
	return count;
}

/* `over`: ns that the process has spent beyond the budget, of `cpu`. */
static int save_up(struct trace *trace, size_t first, double over, double cpu)
{
	struct fay_trace_budget *budget = trace->spending;
	size_t room = 0, count, chosen = 0;
	int result = FAY_OK;
	for (size_t i = first; i < budget->count; i++)
		room += budget->items[i].count;
	struct candidate *candidates = calloc(room + 1, sizeof(*candidates));
	if (!candidates)
		return FAY_E_LIMIT;
	count = find_candidates(budget, first, candidates);
	for (; chosen < count && over > 0; chosen++)
		over -= (double)candidates[chosen].spent;
	for (size_t i = first; i < budget->count && !result; i++)
		if (budget->items[i].pid == budget->items[first].pid)
			result = take_out(trace, &budget->items[i], candidates, chosen, cpu);
	free(candidates);
	return result;
}

/* What one process has spent since the last look; the account at `first` is its first. */
static int look_at(struct trace *trace, size_t first)
{
	struct fay_trace_budget *budget = trace->spending;
	struct account *items = budget->items;
	uint64_t cpu_now = fay_process_cpu_ns(items[first].pid),
		 cpu = cpu_now - items[first].cpu_before;
	double spent = 0;
	int result = FAY_OK;
	if (cpu_now < items[first].cpu_before || cpu < CPU_LEAST)
		return FAY_OK;
	items[first].cpu_before = cpu_now;
	for (size_t i = first; i < budget->count; i++)
		if (items[i].pid == items[first].pid)
			spent += account_look(&items[i], &budget->spent);
	budget->cpu += (double)cpu;
	if (spent > trace->budget * (double)cpu)
		result = save_up(trace, first, spent - trace->budget * (double)cpu, (double)cpu);
	return result;
}

static bool is_first_of_process(const struct fay_trace_budget *budget, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (budget->items[i].pid == budget->items[index].pid)
			return false;
	return true;
}

int fay_trace_budget_tick(struct trace *trace, struct fay_error *error)
{
	uint64_t now = fay_monotonic();
	int result = FAY_OK;
	if (!trace->budget || (trace->spending && now < trace->spending->next))
		return FAY_OK;
	if (!trace->spending && (trace->spending = calloc(1, sizeof(*trace->spending))))
		trace->spending->began = now;
	if (!trace->spending || open_accounts(trace))
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	trace->spending->next = now + LOOK_EVERY;
	for (size_t i = 0; i < trace->spending->count && !result; i++)
		if (is_first_of_process(trace->spending, i))
			result = look_at(trace, i);
	return result ? fay_error_set(error, FAY_E_LIMIT, "out of memory") : FAY_OK;
}

bool fay_trace_budget_exhausted(const struct trace *trace)
{
	const struct fay_trace_budget *budget = trace->spending;
	if (!budget || !budget->left_out)
		return false;
	for (size_t i = 0; i < budget->count; i++)
		if (budget->items[i].out < budget->items[i].count)
			return false;
	return true;
}

static void account_deinit(struct account *account)
{
	free(account->costs);
	free(account->spent);
	free(account->left);
}

void fay_trace_budget_forget(struct trace *trace, const struct fay_session *session)
{
	struct fay_trace_budget *budget = trace->spending;
	for (size_t i = 0; budget && i < budget->count; i++) {
		if (budget->items[i].session != session)
			continue;
		account_deinit(&budget->items[i]);
		budget->items[i--] = budget->items[--budget->count];
	}
}

static void print_left_out(const struct trace *trace, const struct account *account, size_t point)
{
	const struct left_out *left = &account->left[point];
	const struct fay_point_cost *cost = &account->costs[point];
	const struct fay_function *function = fay_session_point(account->session, point);
	FILE *out = trace->writer.out;
	if (trace->writer.format == FAY_FORMAT_JSON) {
		fprintf(out,
			"{\"type\":\"left_out\",\"process\":%d,\"module\":", (int)account->pid);
		fay_json_string(out, function->module, strlen(function->module));
		fay_json_text(out, ",\"function\":", function->name);
		fprintf(out,
			",\"after_ns\":%" PRIu64 ",\"events\":%" PRIu64 ",\"event_ns\":%" PRIu64
			",\"share\":%.6f}\n",
			left->after, cost->events, event_ns(cost), left->share);
	}
	fprintf(stderr, "fay: left out: ");
	print_name(account, point);
	fprintf(stderr,
		" from %.3f s on; the probes ran for %" PRIu64
		" events until then, and for none after\n",
		(double)left->after / 1e9, cost->events);
}

/* Events that were under way have ended, and their processor time is to be counted, too. */
static void look_finally(struct fay_trace_budget *budget)
{
	for (size_t i = 0; i < budget->count; i++) {
		struct account *account = &budget->items[i];
		bool counts = is_first_of_process(budget, i) &&
			      fay_session_target_alive(account->session);
		uint64_t cpu_now = counts ? fay_process_cpu_ns(account->pid) : 0;
		account_look(account, &budget->spent);
		budget->cpu +=
			cpu_now > account->cpu_before ? (double)(cpu_now - account->cpu_before) : 0;
	}
}

void fay_trace_budget_print(const struct trace *trace)
{
	struct fay_trace_budget *budget = trace->spending;
	bool all = trace->verbose || trace->writer.format == FAY_FORMAT_JSON;
	size_t shown = 0;
	if (!budget)
		return;
	look_finally(budget);
	for (size_t i = 0; i < budget->count; i++) {
		const struct account *account = &budget->items[i];
		for (size_t k = 0; k < account->count; k++)
			if (account->left[k].after && (++shown <= SHOWN || all))
				print_left_out(trace, account, k);
	}
	double measured = budget->cpu > 0 ? budget->spent / budget->cpu : 0;
	if (trace->writer.format == FAY_FORMAT_JSON)
		fprintf(trace->writer.out,
			"{\"type\":\"budget\",\"share\":%g,\"measured\":%.6f,\"left_out\":%zu}\n",
			trace->budget, measured, budget->left_out);
	fprintf(stderr,
		"fay: the probes took about %.2f%% of the processor time, the budget was %g%%; %zu "
		"function%s left out\n",
		measured * 100, trace->budget * 100, budget->left_out,
		budget->left_out == 1 ? " was" : "s were");
}

void fay_trace_budget_deinit(struct trace *trace)
{
	struct fay_trace_budget *budget = trace->spending;
	for (size_t i = 0; budget && i < budget->count; i++)
		account_deinit(&budget->items[i]);
	if (budget)
		free(budget->items);
	free(budget);
	trace->spending = NULL;
}
