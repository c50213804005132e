/* SPDX-License-Identifier: MIT */
/*
 * --budget: each LOOK_EVERY what the probes have cost a process since the last look is compared
 * with the processor time that it has used. If that is more than the budget allows, twice among a
 * few looks, the costliest points are taken out, as many as it takes. (One look says too little: it
 * touches memory first, or one of the few events that are timed, each of which stands for a
 * hundred, was interrupted.)
 *
 * What is out comes back. While a point is out nobody knows how often its function is called: so
 * after a rest it is put back, the cheapest first, as many at once as enough was saved of the
 * budget for what they took before; and if it is too much still they go again, for longer. Each
 * such stop takes fay, and the program, some milliseconds: so there is a pause behind it that is
 * many times as long.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "session.h"

#define LOOK_EVERY 10000000u    /* ns */
#define LOOK_AGAIN 5000000u     /* ns, after a look in which it was too much */
#define SETTLED_AFTER 60000000u /* ns: more looks than it takes to take points out */
#define SETTLED_MOST 500000000u
#define SETTLE_STEP_US 1000u
#define OVER_KEPT 5u /* looks after that one in which it counts */
/* ns of processor time, below which a share says little: then the next look is at a longer time */
#define CPU_LEAST 5000000u
/* so much longer than the changes took fay nothing is put back */
#define RETURN_SHARE 100u
#define RETURN_SHARE_CALM 500u
#define RETURN_PAUSE_MOST 4000000000u /* ns, of one change */
#define CALM_AFTER 100000000u         /* ns in which it was never too much, and nothing came back */
#define SAVED_MOST 1e9 /* ns of the program's time: of the budget for that much is saved, or owed */
#define RETURNS_MOST 64u       /* points that are put back in one stop */
#define REST_LEAST 1000000000u /* ns */
#define REST_MOST 64000000000u
#define BACK_LOOKS 2    /* until a point that comes back goes again */
#define REFUSED_MOST 3u /* times that it cannot be put back: it stays out */
#define TIMES_MOST 2u   /* that all points went: nothing is left to trace */

struct candidate {
	struct fay_budget_account *account;
	size_t point;
	uint64_t spent;
};

static int account_init(struct fay_budget_account *account, struct fay_session *session, pid_t pid)
{
	size_t count = fay_session_cost_count(session);
	*account = (struct fay_budget_account){ .session = session,
						.pid = pid,
						.count = count,
						.points = fay_session_point_count(session),
						.most = RETURNS_MOST };
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
		struct fay_budget_account *grown =
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

double fay_budget_look(struct fay_budget_account *account, double *all)
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

/* ns of processor time that this thread, and the keepers for it, have used. */
static uint64_t used_by_changes(void)
{
	struct rusage children;
	getrusage(RUSAGE_CHILDREN, &children);
	return fay_clock(CLOCK_THREAD_CPUTIME_ID) +
	       (uint64_t)(children.ru_utime.tv_sec + children.ru_stime.tv_sec) * 1000000000u +
	       (uint64_t)(children.ru_utime.tv_usec + children.ru_stime.tv_usec) * 1000u;
}

/* Who is followed is held by the follower, which lets go of it for the moment. */
static int change(struct trace *trace, const struct fay_budget_account *account,
		  const size_t *points, size_t count, bool out, struct fay_error *error)
{
	bool followed = count && trace->follower.follower;
	uint64_t used = used_by_changes(), now;
	if (followed)
		fay_follow_release(&trace->follower, account->pid);
	int code = !count ? FAY_OK
		   : out  ? fay_session_take_out(account->session, points, count, error)
			  : fay_session_put_back(account->session, points, count, error);
	if (followed)
		fay_follow_retake(&trace->follower, account->pid);
	used = (used_by_changes() - used) * (trace->calm ? RETURN_SHARE_CALM : RETURN_SHARE);
	now = fay_monotonic();
	if (trace->spending->next_return < now)
		trace->spending->next_return = now;
	trace->spending->next_return += used < RETURN_PAUSE_MOST ? used : RETURN_PAUSE_MOST;
	return code;
}

/* Takes those points out that belong to this session. */
static int take_out(struct trace *trace, struct fay_budget_account *account,
		    const struct candidate *chosen, size_t count, double cpu)
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
		fay_budget_say(trace, account, chosen[i].point, true);
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
		struct fay_budget_account *account = &budget->items[i];
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

static bool comes_back(const struct trace *trace, const struct fay_budget_account *account,
		       size_t point)
{
	return !(trace->plan && trace->plan->keeps_calls) &&
	       account->left[point].refused < REFUSED_MOST &&
	       fay_session_comes_back(account->session, point);
}

static int cheapest_first(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	double left = x->account->left[x->point].share, right = y->account->left[y->point].share;
	return left < right ? -1 : left > right ? 1 : x->point < y->point ? -1 : 1;
}

static int by_number(const void *a, const void *b)
{
	size_t x = *(const size_t *)a, y = *(const size_t *)b;
	return x < y ? -1 : x > y;
}

/* The points whose rest is over, the cheapest first, for as many as what they took before was
 * saved, or as may come at once if the program is at rest. `first`: the process's account. */
static size_t find_returns(const struct trace *trace, const struct fay_budget_account *first,
			   struct fay_budget_account *account, struct candidate *ready,
			   size_t *points)
{
	double most = SAVED_MOST * trace->budget, cost = 0;
	uint64_t now = fay_monotonic();
	size_t count = 0, chosen = 0;
	bool calm = now - first->looked > CALM_AFTER;
	for (size_t k = 0; k < account->count; k++)
		if (account->left[k].since &&
		    now - account->left[k].since >= account->left[k].rest &&
		    comes_back(trace, account, k))
			ready[count++] = (struct candidate){ account, k, 0 };
	qsort(ready, count, sizeof(*ready), cheapest_first);
	for (; chosen < count && chosen < account->most; chosen++) {
		double one = BACK_LOOKS * account->left[ready[chosen].point].share * first->cpu;
		cost += one < most ? one : most;
		if (!calm && first->saved < cost)
			break;
		points[chosen] = ready[chosen].point;
	}
	qsort(points, chosen, sizeof(*points), by_number);
	return chosen;
}

/* All in one stop. If they cannot, it is fewer the next time, until it is known of one that it
 * cannot. */
static void put_back_these(struct trace *trace, struct fay_budget_account *account,
			   const size_t *points, size_t count)
{
	struct fay_error error;
	bool failed = change(trace, account, points, count, false, &error);
	account->most = failed                      ? (count + 1) / 2
			: 2 * count > account->most ? 2 * count
						    : account->most;
	account->most = account->most > RETURNS_MOST ? RETURNS_MOST : account->most;
	for (size_t i = 0; i < count; i++) {
		struct fay_left_out *left = &account->left[points[i]];
		if (failed && count == 1) {
			left->refused++;
			left->rest *= 2;
		}
		if (failed)
			continue;
		left->back = trace->spending->restless = fay_monotonic();
		left->absent += left->back - left->since;
		left->since = 0;
		fay_budget_say(trace, account, points[i], false);
	}
}

/* What they take now is not known. */
static int put_back(struct trace *trace, const struct fay_budget_account *first,
		    struct fay_budget_account *account)
{
	size_t *points, count;
	struct candidate *ready;
	if (!trace->spending->left_out || fay_monotonic() < trace->spending->next_return ||
	    !fay_session_target_alive(account->session))
		return FAY_OK;
	points = calloc(account->count + 1, sizeof(*points));
	ready = calloc(account->count + 1, sizeof(*ready));
	count = points && ready ? find_returns(trace, first, account, ready, points) : 0;
	if (count)
		put_back_these(trace, account, points, count);
	free(ready);
	free(points);
	return points && ready ? FAY_OK : FAY_E_LIMIT;
}

/* Brings the accounts of one process up to date, the one at `first` and those behind it, if enough
 * time was used to tell: *over ns were spent beyond the budget. No more can have been spent than
 * was used. */
static bool account_process(struct trace *trace, size_t first, double *over)
{
	struct fay_trace_budget *budget = trace->spending;
	struct fay_budget_account *items = budget->items, *account = &items[first];
	uint64_t cpu_now = fay_process_cpu_ns(account->pid), now = fay_monotonic();
	double spent = 0, all = 0, floor = trace->budget_by_default ? FAY_BUDGET_FLOOR : 0, allowed;
	double most = SAVED_MOST * trace->budget;
	if (cpu_now < account->cpu_before || cpu_now - account->cpu_before < CPU_LEAST)
		return false;
	account->cpu = (double)(cpu_now - account->cpu_before);
	account->cpu_before = cpu_now;
	for (size_t i = first; i < budget->count; i++)
		if (items[i].pid == account->pid)
			spent += fay_budget_look(&items[i], &all);
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
	struct fay_budget_account *account = &trace->spending->items[first];
	double over = 0;
	bool told = account_process(trace, first, &over), again = over > 0 && account->over;
	trace->spending->restless = over > 0 ? fay_monotonic() : trace->spending->restless;
	if (over > 0)
		account->over = again ? 0 : OVER_KEPT;
	else
		account->over -= told && account->over;
	if (again)
		*result = save_up(trace, first, over, account->cpu);
	for (size_t i = first; i < trace->spending->count && over <= 0 && !*result; i++)
		if (trace->spending->items[i].pid == account->pid)
			*result = put_back(trace, account, &trace->spending->items[i]);
	return over > 0 && !again;
}

bool fay_budget_is_first(const struct fay_trace_budget *budget, size_t index)
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
		if (fay_budget_is_first(trace->spending, i))
			over |= look_at(trace, i, &result);
	used = (fay_clock(CLOCK_THREAD_CPUTIME_ID) - used) * (trace->calm ? FAY_CALM_LOOK : 1);
	trace->next_spending = now + fay_trace_pause(used, over ? LOOK_AGAIN : LOOK_EVERY,
						     now > trace->spending->restless + CALM_AFTER);
	return result ? fay_error_set(error, FAY_E_LIMIT, "out of memory") : FAY_OK;
}

int fay_trace_budget_settle(struct trace *trace, struct fay_error *error)
{
	uint64_t began = fay_monotonic(), now = began, calm = began;
	int result = FAY_OK;
	while (trace->budget && !result && !trace->interrupted && now < calm + SETTLED_AFTER &&
	       now < began + SETTLED_MOST) {
		result = fay_trace_budget_tick(trace, error);
		usleep(SETTLE_STEP_US);
		calm = trace->spending ? trace->spending->restless : began;
		now = fay_monotonic();
	}
	return result;
}

static void account_deinit(struct fay_budget_account *account)
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
		fay_budget_look(&budget->items[i], &budget->spent);
		fay_budget_keep_departed(budget, &budget->items[i]);
		account_deinit(&budget->items[i]);
		budget->items[i--] = budget->items[--budget->count];
	}
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

/* None is in place, and each has had its chances to come back. */
static bool is_spent(const struct trace *trace, const struct fay_budget_account *account)
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
