/* SPDX-License-Identifier: MIT */
/*
 * What a trace will take of the programs' processor time, before it begins, and what follows from
 * that where nobody has said --budget: docs/decisions/0022-budget-by-default.md has the model.
 *
 * The calls are counted for a while, without any probe. Then the probes themselves are tried, for a
 * moment, at the functions that are called most. Where the counting took much, it is measured how
 * much (trace/work/work.c).
 */
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "session.h"
#include "trace/work/work.h"

#define LIMIT 0.05             /* of the processor time */
#define COUNTED_FOR 200000000u /* ns */
#define COUNTED_PART 5u        /* and this part of --for at most */
#define CHOSEN_FOR 20000000u   /* ns: for which processes are busy */
#define LOOKED_MOST 4u         /* processes that are looked at, the busiest */
#define COUNTING_NS 0.5        /* that counting takes a call, beside what an empty pass takes */
#define IDLE_PART 100u         /* who used less than one part in so many of the time was idle */
#define OWN_LEAST 10u          /* one part in so many of the time is the program's own */
#define TRIED_MOST 150000000u  /* ns */
#define WARM 5000000u          /* ns of processor time: memory is touched for the first time */
#define WARM_MOST 50000000u    /* ns */
#define EMPTY_NS 1.5           /* what a pass takes whose probes do nothing, where it is hot */
/* and this part of what timed ones take more there than here: code that is seldom run */
#define COLD_PART 0.5
#define INSTRUCTION_NS 0.14 /* of a probe, where it is hot */
#define INSTRUCTIONS 36u    /* that a probe executes usually, at most, short of its worst case */
#define EMIT_NS 22.0        /* of fay_emit() */
#define LOOKS 15u
#define TIMED_LEAST 64u /* events in each */
#define TIMED_FEW 8u    /* that show something, where there were no more */
#define RARE_NS 1000.0  /* what a call is taken to cost that did not come in the trial */

struct looked {
	pid_t pid;
	struct fay_target *target;
	struct fay_session *session;
	size_t count;                 /* of its functions */
	struct fay_point_cost *costs; /* so far */
	uint64_t *calls;              /* before, then meanwhile */
	uint64_t all;                 /* calls of all functions meanwhile */
	uint64_t cpu;                 /* ns of processor time, likewise */
	struct fay_point_cost total;  /* before, of all */
	double empty;                 /* cycles that a timed call took, with nothing in it */
	double empty_ns;              /* what an empty pass takes in this program */
};

struct look {
	struct looked items[LOOKED_MOST];
	size_t count;
	struct looked *busiest; /* whose functions are called most */
	double call_ns;         /* what a call took in the trial */
	double more_ns;         /* what an empty pass takes more than by its time stamps */
};

static struct fay_attach_options options_of(struct trace *trace)
{
	return (struct fay_attach_options){ .size = sizeof(struct fay_attach_options),
					    .tids = trace->tids,
					    .tid_count = trace->tid_count,
					    .some = trace->plan && trace->plan->inlined,
					    .costs = true,
					    .permit = fay_trust_log_permit,
					    .permit_context = &trace->log,
					    .given_up = &trace->interrupted };
}

/* Sleeps, unless the user wants to end. */
static void wait_until(const struct trace *trace, uint64_t time)
{
	for (uint64_t now; (now = fay_monotonic()) < time && !trace->interrupted;)
		usleep((useconds_t)((time - now) / 1000 + 1));
}

static int look_at(struct trace *trace, struct looked *looked, pid_t pid, struct fay_error *error)
{
	struct fay_attach_options options = options_of(trace);
	options.counts_only = true;
	looked->pid = pid;
	if (fay_leftovers_clean_pid(pid, false, trace->messages, error) ||
	    fay_target_open_pid(pid, &looked->target, error) ||
	    fay_session_attach(looked->target, &trace->verdict, &options, &looked->session, error))
		return error->code;
	looked->count = fay_session_point_count(looked->session);
	looked->costs = calloc(fay_session_cost_count(looked->session) + 1, sizeof(*looked->costs));
	looked->calls = calloc(looked->count + 1, sizeof(*looked->calls));
	return looked->costs && looked->calls ? FAY_OK
					      : fay_error_set(error, FAY_E_LIMIT, "out of memory");
}

static void looked_deinit(struct looked *looked)
{
	fay_session_destroy(looked->session);
	fay_target_close(looked->target);
	free(looked->costs);
	free(looked->calls);
	*looked = (struct looked){ 0 };
}

/* Brings the sum up to date. Returns what a pass took of those that have been timed since; 0: there
 * are none. */
static double pass_cycles(struct fay_session *session, struct fay_point_cost *total)
{
	struct fay_point_cost before = *total;
	fay_session_cost_total(session, total);
	uint64_t timed = total->timed - before.timed;
	return timed ? (double)(total->cycles - before.cycles) / (double)timed : 0;
}

/* Since the clock said `before`; of a process that has ended it says 0. */
static uint64_t cpu_since(pid_t pid, uint64_t before)
{
	uint64_t now = fay_process_cpu_ns(pid);
	return now > before ? now - before : 0;
}

/* Called twice: afterwards everything is what came in between, nothing of a process that has
 * ended. */
static void take_stock(struct looked *looked)
{
	looked->cpu = cpu_since(looked->pid, looked->cpu);
	fay_session_costs(looked->session, looked->costs);
	looked->empty = pass_cycles(looked->session, &looked->total);
	looked->all = 0;
	for (size_t i = 0; i < looked->count; i++) {
		looked->calls[i] = looked->costs[i].events - looked->calls[i];
		looked->all += looked->cpu ? looked->calls[i] : 0;
	}
}

struct busy {
	pid_t pid;
	uint64_t cpu;
};

static int busiest_first(const void *a, const void *b)
{
	const struct busy *x = a, *y = b;
	return x->cpu < y->cpu ? 1 : x->cpu > y->cpu ? -1 : 0;
}

/* Returns how many. */
static size_t choose_processes(const struct trace *trace, pid_t pids[LOOKED_MOST])
{
	struct busy all[FAY_TARGETS_MAX];
	size_t count = trace->pid_count;
	for (size_t i = 0; i < count; i++)
		all[i] = (struct busy){ trace->pids[i], fay_process_cpu_ns(trace->pids[i]) };
	if (count > LOOKED_MOST) {
		wait_until(trace, fay_monotonic() + CHOSEN_FOR);
		for (size_t i = 0; i < count; i++)
			all[i].cpu = cpu_since(all[i].pid, all[i].cpu);
		qsort(all, count, sizeof(*all), busiest_first);
		count = LOOKED_MOST;
	}
	for (size_t i = 0; i < count; i++)
		pids[i] = all[i].pid;
	return count;
}

/* Who cannot be looked at is left out, as it will be of the trace; an error if that are all. */
static int count_calls(struct trace *trace, struct look *look, struct fay_error *error)
{
	pid_t pids[LOOKED_MOST];
	size_t count = choose_processes(trace, pids);
	uint64_t time = COUNTED_FOR;
	if (trace->duration && trace->duration / COUNTED_PART < time)
		time = trace->duration / COUNTED_PART;
	for (size_t i = 0; i < count; i++) {
		if (look_at(trace, &look->items[look->count], pids[i], error))
			looked_deinit(&look->items[look->count]);
		else
			look->count++;
	}
	if (!look->count)
		return error->code;
	for (size_t i = 0; i < look->count; i++)
		take_stock(&look->items[i]);
	uint64_t began = fay_monotonic();
	wait_until(trace, began + time);
	look->busiest = look->items;
	for (size_t i = 0; i < look->count; i++) {
		take_stock(&look->items[i]);
		if (look->items[i].all > look->busiest->all)
			look->busiest = &look->items[i];
	}
	trace->estimate.ns = fay_monotonic() - began;
	return FAY_OK;
}

/* How many events a call is: it may be asked for at its begin, and at its end. */
static unsigned events_a_call(const struct trace *trace)
{
	bool begin = false, end = false;
	for (uint32_t i = 0; i < trace->verdict.probe_count; i++) {
		uint32_t kind = trace->verdict.probes[i].kind;
		end |= kind == FAY_PROBE_RETURN || kind == FAY_PROBE_EXCEPTION;
		begin |= kind == FAY_PROBE_ENTRY;
	}
	return begin && end ? 2 : 1;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;
	return *x < *y ? -1 : *x > *y;
}

/* What an empty pass takes in this program. */
static double empty_ns(const struct looked *looked)
{
	double cold = looked->empty - (double)fay_session_stamp_cycles(looked->session);
	cold *= fay_session_cycle_ns(looked->session);
	return EMPTY_NS + (cold > 0 ? COLD_PART * cold : 0);
}

/*
 * ns that a pass takes at least, of an image's probes. The processor runs short ones beside the
 * program and the time stamps, so that these do not show it.
 */
static double least_ns(const struct trace *trace, double empty)
{
	double ns = 0;
	unsigned count = 0;
	for (uint32_t i = 0; i < trace->verdict.probe_count; i++) {
		const struct fay_probe_facts *facts = &trace->verdict.probes[i];
		uint64_t instructions = facts->worst_instructions;
		if (facts->kind == FAY_PROBE_BEGIN || facts->kind == FAY_PROBE_END ||
		    facts->kind == FAY_PROBE_TIMER)
			continue;
		ns += INSTRUCTION_NS *
		      (double)(instructions < INSTRUCTIONS ? instructions : INSTRUCTIONS);
		ns += facts->helpers & 1u << FAY_HELPER_EMIT ? EMIT_NS : 0;
		count++;
	}
	return empty + (count ? ns / count : 0);
}

/* ns that an event takes: its passes, by what they took more than empty ones. */
static double event_ns(const struct trace *trace, const struct looked *looked,
		       const struct fay_point_cost *before, const struct fay_point_cost *after,
		       double more_cycles)
{
	double empty = empty_ns(looked), least = least_ns(trace, empty),
	       pass = empty + more_cycles * fay_session_cycle_ns(looked->session);
	return (pass > least ? pass : least) * (double)(after->passes - before->passes) /
	       (double)(after->events - before->events);
}

/* What an event takes, ns: the median of some looks, each of them at events enough; of too few for
 * one, what those show. A look in which the program lost its processor, or touched memory for the
 * first time, says little. Where the program hardly ran it is what an event takes at least. */
static double watch(const struct trace *trace, struct fay_session *session,
		    struct fay_aggregator *aggregator, const struct looked *looked)
{
	double looks[LOOKS], cycles = 0;
	size_t count = 0;
	uint64_t end = fay_monotonic() + TRIED_MOST, cold_until = fay_monotonic() + WARM_MOST,
		 warm = fay_process_cpu_ns(looked->pid) + WARM;
	const struct fay_point_cost none = { 0 };
	struct fay_point_cost now = { 0 }, after = { 0 };
	struct fay_error error;
	while (count < LOOKS && fay_monotonic() < end && !trace->interrupted) {
		after = now;
		fay_aggregator_wait(aggregator, 1, NULL, 0);
		fay_aggregator_poll(aggregator, &error);
		cycles = pass_cycles(session, &after);
		bool cold = fay_process_cpu_ns(looked->pid) < warm && fay_monotonic() < cold_until;
		if (!cold && after.timed - now.timed < TIMED_LEAST)
			continue;
		if (!cold && after.events > now.events)
			looks[count++] =
				event_ns(trace, looked, &now, &after, cycles - looked->empty);
		now = after;
	}
	bool ran = fay_process_cpu_ns(looked->pid) >= warm;
	if (!count && after.timed - now.timed >= TIMED_FEW)
		return event_ns(trace, looked, &now, &after, cycles - looked->empty);
	if (!count && !ran && after.events)
		return event_ns(trace, looked, &none, &after, 0);
	qsort(looks, count, sizeof(looks[0]), by_value);
	return count ? looks[count / 2] : RARE_NS;
}

static void drop_row(void *context, uint32_t state, const uint8_t *row)
{
	(void)context;
	(void)state;
	(void)row;
}

/* The probes themselves, in the one process, for a moment: what they find is forgotten. */
static int try_probes(struct trace *trace, struct look *look, struct fay_error *error)
{
	struct fay_attach_options options = options_of(trace);
	struct fay_aggregator *aggregator = NULL;
	struct fay_stack_tables *tables;
	struct fay_session *session = NULL;
	size_t size;
	options.some |= trace->pid_count > 1;
	options.when_full = trace->plan ? trace->plan->when_full : FAY_FULL_BLOCK;
	if (fay_trace_stacks_make(trace, look->busiest->target, &options, &tables, error))
		return error->code;
	int result = fay_aggregator_create(trace->schema, &aggregator, error);
	if (!result)
		result = fay_session_attach(look->busiest->target, &trace->verdict, &options,
					    &session, error);
	if (!result) {
		struct fay_shm_control *shm = fay_session_shm(session, &size);
		fay_aggregator_on_row(aggregator, drop_row, NULL);
		result = fay_aggregator_add(aggregator, shm, size, shm->target_pid, error);
	}
	if (!result)
		look->call_ns =
			events_a_call(trace) * watch(trace, session, aggregator, look->busiest);
	fay_aggregator_destroy(aggregator); /* it says good-bye in the session's memory */
	fay_session_destroy(session);
	free(tables);
	return result;
}

/* Processor time without what counting took, which is known roughly: where that was most of it,
 * some is left in any case. */
static double own_time(const struct looked *looked, double more_ns)
{
	double counting = (double)looked->all * (looked->empty_ns + more_ns + COUNTING_NS),
	       cpu = (double)looked->cpu, least = cpu / OWN_LEAST;
	return cpu > counting + least ? cpu - counting : least;
}

static void conclude(struct trace *trace, struct look *look)
{
	struct fay_trace_estimate *estimate = &trace->estimate;
	double used = 0, cpu = 0;
	for (size_t i = 0; i < look->count; i++) {
		const struct looked *looked = &look->items[i];
		estimate->calls += looked->all;
		estimate->functions += looked->count;
		cpu += (double)looked->cpu;
		used += own_time(looked, look->more_ns);
	}
	estimate->processes = look->count;
	estimate->idle = cpu < (double)estimate->ns / IDLE_PART;
	estimate->call_ns = look->call_ns + events_a_call(trace) * look->more_ns;
	double cost = estimate->call_ns * (double)estimate->calls;
	estimate->share = cost > 0 ? cost / (cost + used) : 0;
}

/* In the busiest process, whose session ends: what the time stamps do not see of what is cold. */
static void measure_counting(struct trace *trace, struct look *look)
{
	struct looked *looked = look->busiest;
	struct fay_attach_options options = options_of(trace);
	struct fay_work_counted counted = { .pid = looked->pid,
					    .session = looked->session,
					    .verdict = &trace->verdict,
					    .interrupted = &trace->interrupted,
					    .calls = looked->calls,
					    .count = looked->count,
					    .all = looked->all,
					    .cpu = looked->cpu,
					    .ns = trace->estimate.ns };
	options.counts_only = true;
	looked->session = NULL;
	double more = fay_work_counting(&counted, &options) - COUNTING_NS - looked->empty_ns;
	look->more_ns = more > 0 ? more : 0;
}

int fay_trace_estimate(struct trace *trace, struct fay_error *error)
{
	struct look look = { 0 };
	uint64_t since = fay_monotonic();
	int result = count_calls(trace, &look, error);
	if (!result && look.busiest->all)
		result = try_probes(trace, &look, error);
	for (size_t i = 0; !result && trace->dry_run && i < look.count; i++)
		result = fay_trace_would_add(&trace->estimate, look.items[i].pid,
					     look.items[i].session, look.items[i].calls, error);
	if (!result) {
		fay_trace_name_most(&trace->estimate, look.busiest->session, look.busiest->calls);
		for (size_t i = 0; i < look.count; i++)
			look.items[i].empty_ns = empty_ns(&look.items[i]);
		measure_counting(trace, &look);
		conclude(trace, &look);
	}
	for (size_t i = 0; i < look.count; i++)
		looked_deinit(&look.items[i]);
	trace->estimate.made = !result && !trace->estimate.idle;
	fay_trace_stage(trace, "estimate", since);
	return result;
}

static void put_in_force(struct trace *trace, const char *why)
{
	trace->budget = LIMIT;
	trace->budget_by_default = true;
	fprintf(trace->messages,
		"fay: --budget %g%% is in force, since %s; --budget none lifts it\n", LIMIT * 100,
		why);
}

/* Yes: without a budget. */
static int ask(const struct trace *trace, const char *what, struct fay_error *error)
{
	char answer[64] = "";
	fprintf(trace->messages, "fay: %s\nfay: trace all the same? [y/N] ", what);
	fflush(trace->messages); /* it does not end with a line */
	struct pollfd typed = { .fd = STDIN_FILENO, .events = POLLIN };
	/* a signal ends this, and not a read, which goes on behind it */
	if (poll(&typed, 1, -1) == 1 && fgets(answer, sizeof(answer), stdin) &&
	    (answer[0] == 'y' || answer[0] == 'Y'))
		return FAY_OK;
	return fay_error_set(error, FAY_E_REFUSED,
			     "not traced; --budget 5%% leaves out functions that cost too much, "
			     "--budget none does not ask");
}

/* A program that hardly runs may have a large part of little taken. */
static bool is_much(const struct fay_trace_estimate *estimate)
{
	return estimate->share > LIMIT && estimate->call_ns * (double)estimate->calls >
						  FAY_BUDGET_FLOOR * (double)estimate->ns;
}

/* Above the limit, or not known. */
static int ask_or_bound(struct trace *trace, const char *what, struct fay_error *error)
{
	if (trace->may_ask)
		return ask(trace, what, error);
	put_in_force(trace, what);
	return FAY_OK;
}

int fay_trace_decide_budget(struct trace *trace, struct fay_error *error)
{
	char what[sizeof(trace->estimate.most) + 256];
	if (trace->budget_given)
		return FAY_OK;
	if (trace->usual_budget)
		return fay_trace_set_budget(trace, trace->usual_budget)
			       ? fay_error_set(error, FAY_E_USAGE,
					       "FAY_BUDGET is no share of the processor time")
			       : FAY_OK;
	if (trace->follow && trace->command)
		return FAY_OK;
	if (trace->command || trace->wait) {
		put_in_force(trace, "what will run is not known yet");
		return FAY_OK;
	}
	if (fay_trace_estimate(trace, error)) {
		/* What cannot be attached to says so itself. But one that has executed a program
		 * meanwhile, or one of several that has ended, does not hinder the trace. */
		if (error->code != FAY_E_LIMIT) {
			trace->budget = LIMIT;
			return FAY_OK;
		}
		snprintf(what, sizeof(what), "%.200s", error->message);
		return ask_or_bound(trace, what, error);
	}
	if (trace->estimate.idle) {
		put_in_force(trace, "the program is idle, so what probes will take is not known");
		return FAY_OK;
	}
	fay_trace_estimate_describe(&trace->estimate, what, sizeof(what));
	if (trace->verbose && trace->estimate.calls)
		fprintf(trace->messages, "fay: %s\n", what);
	return is_much(&trace->estimate) ? ask_or_bound(trace, what, error) : FAY_OK;
}
