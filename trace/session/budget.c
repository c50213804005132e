/* SPDX-License-Identifier: MIT */
/* --budget: each LOOK_EVERY what the probes have cost a process since the last look is compared
 * with the processor time that it has used. If that is more than the budget allows, twice among a
 * few looks, the costliest points are taken out, as many as it takes. (One look says too little: it
 * touches memory first, or one of the few events that are timed, each of which stands for a
 * hundred, was interrupted.) While a point is out nobody knows how often its function is called: so
 * after a rest it is put back, the cheapest first, once enough was saved of the budget for what it
 * took before; and if it is too much still it goes again, for longer. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "session.h"

#define LOOK_EVERY 10000000u  /* ns */
#define LOOK_AGAIN 5000000u   /* ns, after a look in which it was too much */
#define OVER_KEPT 5u          /* looks after that one in which it counts */
#define CALM_AFTER 100000000u /* ns in which it was never too much, and nothing came back */
/* ns of processor time, below which a share says little: then the next look is at a longer time */
#define CPU_LEAST 5000000u
#define REST_LEAST 1000000000u /* ns */
#define REST_MOST 64000000000u
#define BACK_LOOKS 2   /* until a point that comes back goes again */
#define SAVED_MOST 1e9 /* ns of the program's time: of the budget for that much is saved, or owed */
#define REFUSED_MOST 3u /* times that it cannot be put back: it stays out */
#define TIMES_MOST 2u   /* that all points went: nothing is left to trace */
#define DEPARTED_MOST 4096u
#define SHOWN 20u

/* Of one session. */
struct account {
	struct fay_session *session;
	pid_t pid;
	size_t count, points;         /* those from `points` on are functions without probes */
	struct fay_point_cost *costs; /* by point */
	uint64_t *spent;              /* ns, between the last two looks */
	struct fay_left_out *left;
	uint64_t cpu_before, looked; /* ns, of the process; monotonic: both at the last look */
	double cpu, saved;           /* ns between the last two looks; of the budget */
	bool stuck;                  /* points could not be taken out, which was said */
	uint32_t over;               /* looks in which it counts that too much was spent */
};

struct fay_trace_budget {
	struct account *items;
	size_t count;
	uint64_t began, restless; /* monotonic ns; the last: too much, or one came back */
	double spent, cpu;        /* ns, of all looks */
	size_t left_out, said;    /* functions, each once; messages about them */
	/* of sessions that are gone */
	struct fay_departed *departed;
	size_t departed_count;
};

struct candidate {
	struct account *account;
	size_t point;
	uint64_t spent;
};

static int account_init(struct account *account, struct fay_session *session, pid_t pid)
{
	size_t count = fay_session_cost_count(session);
	*account = (struct account){ .session = session,
				     .pid = pid,
				     .count = count,
				     .points = fay_session_point_count(session) };
	account->cpu_before = fay_process_cpu_ns(pid);
	account->looked = fay_monotonic();
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

static uint64_t event_ns(const struct fay_point_cost *cost)
{
	return cost->events ? cost->nanoseconds / cost->events : 0;
}

static void say(const struct trace *trace, const struct account *account, size_t point, bool out)
{
	const struct fay_function *function = fay_session_point(account->session, point);
	size_t number = ++trace->spending->said;
	if (number > SHOWN && !trace->verbose)
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
		number == SHOWN && !trace->verbose ? "; --verbose names those that follow" : "");
}

static uint64_t rest_of(const struct fay_left_out *left, uint64_t now)
{
	bool soon = left->back && now - left->back < left->rest;
	uint64_t rest = soon ? 2 * left->rest : REST_LEAST;
	return rest < REST_MOST ? rest : REST_MOST;
}

static void note_out(struct trace *trace, struct fay_left_out *left, double share)
{
	uint64_t now = fay_monotonic();
	trace->spending->left_out += !left->after;
	left->after = left->after ? left->after : now - trace->spending->began;
	left->share = share < 1 ? share : 1;
	left->rest = rest_of(left, now);
	left->since = now;
	left->times++;
}

/* Who is followed is held by the follower, which lets go of it for the moment. */
static int change(struct trace *trace, const struct account *account, const size_t *points,
		  size_t count, bool out, struct fay_error *error)
{
	bool followed = count && trace->follower.follower;
	if (followed)
		fay_follow_release(&trace->follower, account->pid);
	int code = !count ? FAY_OK
		   : out  ? fay_session_take_out(account->session, points, count, error)
			  : fay_session_put_back(account->session, points, count, error);
	if (followed)
		fay_follow_retake(&trace->follower, account->pid);
	return code;
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
	bool failed = change(trace, account, points, own, true, &error);
	free(points);
	if (failed && !account->stuck && fay_session_target_alive(account->session))
		fprintf(trace->messages,
			"fay: over the budget, but nothing could be left out: %s\n", error.message);
	account->stuck |= failed;
	for (size_t i = 0; i < count && !failed; i++) {
		if (chosen[i].account != account)
			continue;
		note_out(trace, &account->left[chosen[i].point], (double)chosen[i].spent / cpu);
		say(trace, account, chosen[i].point, true);
	}
	return FAY_OK;
}

static int costliest_first(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	return x->spent < y->spent ? 1 : x->spent > y->spent ? -1 : 0;
}

/* The points of the process, its accounts from `first` on, that can be taken out and cost
 * something, or all of them; costliest first. */
static size_t find_candidates(struct fay_trace_budget *budget, size_t first, bool keeps_calls,
			      struct candidate *candidates)
{
	pid_t pid = budget->items[first].pid;
	size_t count = 0;
	for (size_t i = first; i < budget->count; i++) {
		struct account *account = &budget->items[i];
		for (size_t k = 0; k < account->count && account->pid == pid; k++)
			if (!account->costs[k].taken_out && !account->costs[k].fixed &&
			    (account->spent[k] || keeps_calls))
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
	bool keeps_calls = trace->plan && trace->plan->keeps_calls;
	count = find_candidates(budget, first, keeps_calls, candidates);
	for (; chosen < count && over > 0; chosen++)
		over -= (double)candidates[chosen].spent;
	if (chosen && keeps_calls) /* a line whose calls begin unseen would see earlier ones */
		chosen = count;
	for (size_t i = first; i < budget->count && !result; i++)
		if (budget->items[i].pid == budget->items[first].pid)
			result = take_out(trace, &budget->items[i], candidates, chosen, cpu);
	free(candidates);
	return result;
}

static bool comes_back(const struct trace *trace, const struct account *account, size_t point)
{
	return !(trace->plan && trace->plan->keeps_calls) &&
	       account->left[point].refused < REFUSED_MOST &&
	       fay_session_comes_back(account->session, point);
}

/* Whether what it took before was saved, or the program is at rest. */
static bool affords(const struct trace *trace, const struct account *first,
		    const struct fay_left_out *left, uint64_t now)
{
	double most = SAVED_MOST * trace->budget, cost = BACK_LOOKS * left->share * first->cpu;
	return now - first->looked > CALM_AFTER || first->saved >= (cost < most ? cost : most);
}

/* One point at a time, whose rest is over: what it takes now is not known. `first`: the process's
 * account. */
static void put_back(struct trace *trace, const struct account *first, struct account *account)
{
	uint64_t now = fay_monotonic();
	struct fay_error error;
	size_t i = account->count;
	for (size_t k = 0; k < account->count; k++)
		if (account->left[k].since &&
		    now - account->left[k].since >= account->left[k].rest &&
		    (i == account->count || account->left[k].share < account->left[i].share) &&
		    comes_back(trace, account, k))
			i = k;
	if (i == account->count || !affords(trace, first, &account->left[i], now) ||
	    !fay_session_target_alive(account->session))
		return;
	struct fay_left_out *left = &account->left[i];
	if (change(trace, account, &i, 1, false, &error)) {
		left->refused++;
		left->rest *= 2;
		return;
	}
	left->back = trace->spending->restless = fay_monotonic();
	left->absent += left->back - left->since;
	left->since = 0;
	say(trace, account, i, false);
}

/* Brings the accounts of one process up to date, the one at `first` and those behind it, if enough
 * time was used to tell: *over ns were spent beyond the budget. No more can have been spent than
 * was used. */
static bool account_process(struct trace *trace, size_t first, double *over)
{
	struct fay_trace_budget *budget = trace->spending;
	struct account *items = budget->items, *account = &items[first];
	uint64_t cpu_now = fay_process_cpu_ns(account->pid), now = fay_monotonic();
	double spent = 0, all = 0, floor = trace->budget_by_default ? FAY_BUDGET_FLOOR : 0, allowed;
	double most = SAVED_MOST * trace->budget;
	if (cpu_now < account->cpu_before || cpu_now - account->cpu_before < CPU_LEAST)
		return false;
	account->cpu = (double)(cpu_now - account->cpu_before);
	account->cpu_before = cpu_now;
	for (size_t i = first; i < budget->count; i++)
		if (items[i].pid == account->pid)
			spent += account_look(&items[i], &all);
	all = all < account->cpu ? all : account->cpu;
	trace->spent_cpu = budget->cpu += account->cpu;
	trace->spent = budget->spent += all;
	allowed = trace->budget * account->cpu;
	floor *= (double)(now - account->looked);
	allowed = allowed > floor ? allowed : floor;
	account->looked = now;
	account->saved += allowed - all;
	account->saved = account->saved > most ? most : account->saved;
	account->saved = account->saved < -most ? -most : account->saved;
	*over = spent - allowed;
	return true;
}

/* Returns whether it was too much for the first time. */
static bool look_at(struct trace *trace, size_t first, int *result)
{
	struct account *account = &trace->spending->items[first];
	double over = 0;
	bool told = account_process(trace, first, &over), again = over > 0 && account->over;
	trace->spending->restless = over > 0 ? fay_monotonic() : trace->spending->restless;
	if (over > 0)
		account->over = again ? 0 : OVER_KEPT;
	else
		account->over -= told && account->over;
	if (again)
		*result = save_up(trace, first, over, account->cpu);
	for (size_t i = first; i < trace->spending->count && over <= 0; i++)
		if (trace->spending->items[i].pid == account->pid)
			put_back(trace, account, &trace->spending->items[i]);
	return over > 0 && !again;
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
	uint64_t now = fay_monotonic(), used = fay_clock(CLOCK_THREAD_CPUTIME_ID);
	int result = FAY_OK;
	bool over = false;
	if (!trace->budget || (trace->spending && now < trace->next_spending))
		return FAY_OK;
	if (!trace->spending && (trace->spending = calloc(1, sizeof(*trace->spending))))
		trace->spending->began = trace->spending->restless = now;
	if (!trace->spending || open_accounts(trace))
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	for (size_t i = 0; i < trace->spending->count && !result; i++)
		if (is_first_of_process(trace->spending, i))
			over |= look_at(trace, i, &result);
	used = (fay_clock(CLOCK_THREAD_CPUTIME_ID) - used) * (trace->calm ? FAY_CALM_LOOK : 1);
	trace->next_spending = now + fay_trace_pause(used, over ? LOOK_AGAIN : LOOK_EVERY,
						     now > trace->spending->restless + CALM_AFTER);
	return result ? fay_error_set(error, FAY_E_LIMIT, "out of memory") : FAY_OK;
}

/* None is in place, and each has had its chances to come back. */
static bool is_spent(const struct trace *trace, const struct account *account)
{
	size_t i = 0;
	while (i < account->points && account->left[i].since &&
	       (account->left[i].times >= TIMES_MOST || !comes_back(trace, account, i)))
		i++;
	return i == account->points;
}

bool fay_trace_budget_exhausted(const struct trace *trace)
{
	const struct fay_trace_budget *budget = trace->spending;
	bool spent = budget && budget->left_out && trace->budget_given;
	for (size_t i = 0; spent && i < budget->count; i++)
		spent = is_spent(trace, &budget->items[i]);
	return spent && !trace->follow && !trace->wait;
}

static void account_deinit(struct account *account)
{
	free(account->costs);
	free(account->spent);
	free(account->left);
}

/* The names go with the session. Short of memory, or of room, they are not in the final report. */
static void keep_departed(struct fay_trace_budget *budget, const struct account *account)
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

void fay_trace_budget_forget(struct trace *trace, const struct fay_session *session)
{
	struct fay_trace_budget *budget = trace->spending;
	for (size_t i = 0; budget && i < budget->count; i++) {
		if (budget->items[i].session != session)
			continue;
		account_look(&budget->items[i], &budget->spent);
		keep_departed(budget, &budget->items[i]);
		account_deinit(&budget->items[i]);
		budget->items[i--] = budget->items[--budget->count];
	}
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
		keep_departed(budget, account);
	}
}

void fay_trace_budget_print(const struct trace *trace)
{
	struct fay_trace_budget *budget = trace->spending;
	bool all = trace->verbose || trace->json;
	if (!budget)
		return;
	look_finally(budget);
	for (size_t i = 0; i < budget->departed_count && (i < SHOWN || all); i++)
		fay_trace_departed_print(trace, &budget->departed[i]);
	double measured = budget->cpu > 0 ? budget->spent / budget->cpu : 0;
	if (trace->json)
		fprintf(trace->json,
			"{\"type\":\"budget\",\"share\":%g,\"measured\":%.6f,\"left_out\":%zu}\n",
			trace->budget, measured, budget->left_out);
	if (trace->budget_by_default && !budget->departed_count && !all)
		return; /* nobody asked for this bound, and nothing came near it */
	fprintf(trace->messages,
		"fay: the probes took about %.2f%% of the processor time, the budget was %g%%; "
		"functions left out: %zu\n",
		measured * 100, trace->budget * 100, budget->left_out);
}

void fay_trace_budget_deinit(struct trace *trace)
{
	struct fay_trace_budget *budget = trace->spending;
	trace->spending = NULL;
	if (!budget)
		return;
	for (size_t i = 0; i < budget->count; i++)
		account_deinit(&budget->items[i]);
	free(budget->items);
	free(budget->departed);
	free(budget);
}
