/* SPDX-License-Identifier: MIT */
/*
 * What a call takes of the program's processor time while it is counted, by the work that the
 * program does meanwhile: how often it calls some functions that are called rather often, for each
 * nanosecond of processor time, while all functions are counted, and while these alone are. Caches
 * and predictors that the counting fills, in code that is run once in a while, are in it.
 */
#include "work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fay/clock.h"

#define WORTH_NS 20.0    /* a call: if it took so much, and that were */
#define WORTH_PART 0.1   /* this part of the time, it is measured what it took */
#define CERTAIN_PART 0.2 /* and believed if it is this part: less may be chance */
#define FUNCTIONS 32u
#define WORK_PART 100u  /* one call in so many is one of such a function's at most */
#define CALLS_LEAST 32u /* of each */
#define SUM_LEAST 2000u /* of all */
#define SETTLED 20000u  /* us: what was patched is run again */

/* Functions whose calls tell how much the program does. */
struct work {
	struct fay_probe_facts probes[FUNCTIONS];
	char patterns[FUNCTIONS][FAY_IMAGE_MAX_STRING];
	uint32_t count;
	uint64_t calls; /* of them, among those counted */
};

/* The name leads to this function and no other. */
static bool is_alone(const struct fay_session *session, size_t count, size_t at)
{
	const struct fay_function *function = fay_session_point(session, at);
	if (strpbrk(function->name, "*?["))
		return false;
	for (size_t i = 0; i < count; i++) {
		const struct fay_function *other = fay_session_point(session, i);
		if (i != at && !strcmp(other->name, function->name) &&
		    !strcmp(other->module, function->module))
			return false;
	}
	return true;
}

static void add(struct work *work, const struct fay_function *function, uint64_t calls)
{
	char *pattern = work->patterns[work->count];
	int length = snprintf(pattern, sizeof(work->patterns[0]), "%s!%s", function->module,
			      function->name);
	if (length < 0 || (size_t)length >= sizeof(work->patterns[0]))
		return;
	work->probes[work->count++] = (struct fay_probe_facts){ .pattern = pattern,
								.kind = FAY_PROBE_ENTRY,
								.analysed = true };
	work->calls += calls;
}

/* False: too little was called. */
static bool choose(struct work *work, const struct fay_work_counted *of)
{
	work->count = 0;
	work->calls = 0;
	for (uint64_t most = of->all / WORK_PART; most >= CALLS_LEAST; most /= 2)
		for (size_t i = 0; i < of->count && work->count < FUNCTIONS; i++)
			if (of->calls[i] <= most && of->calls[i] > most / 2 &&
			    is_alone(of->session, of->count, i))
				add(work, fay_session_point(of->session, i), of->calls[i]);
	return work->calls >= SUM_LEAST;
}

static uint64_t calls_so_far(struct fay_session *session, struct fay_point_cost *costs)
{
	uint64_t calls = 0;
	fay_session_costs(session, costs);
	for (size_t i = 0; i < fay_session_point_count(session); i++)
		calls += costs[i].events;
	return calls;
}

/* ns of processor time for one call; 0: not known. */
static double watch(const struct fay_work_counted *of, struct fay_session *session)
{
	struct fay_point_cost *costs = calloc(fay_session_cost_count(session) + 1, sizeof(*costs));
	if (!costs)
		return 0;
	usleep(SETTLED);
	uint64_t calls = calls_so_far(session, costs), cpu = fay_process_cpu_ns(of->pid);
	for (uint64_t end = fay_monotonic() + of->ns, now;
	     (now = fay_monotonic()) < end && !*of->interrupted;)
		usleep((useconds_t)((end - now) / 1000 + 1));
	uint64_t used = fay_process_cpu_ns(of->pid);
	calls = calls_so_far(session, costs) - calls;
	free(costs);
	return calls >= SUM_LEAST / 2 && used > cpu ? (double)(used - cpu) / (double)calls : 0;
}

/* They alone are counted. */
static double measure(const struct fay_work_counted *of, struct work *work,
		      const struct fay_attach_options *options)
{
	struct fay_verdict verdict = *of->verdict;
	struct fay_session *session = NULL;
	struct fay_target *target = NULL;
	struct fay_error error;
	double took = 0;
	verdict.probes = work->probes;
	verdict.probe_count = work->count;
	if (!fay_target_open_pid(of->pid, &target, &error) &&
	    !fay_session_attach(target, &verdict, options, &session, &error) &&
	    fay_session_point_count(session) == work->count)
		took = watch(of, session);
	fay_session_destroy(session);
	fay_target_close(target);
	return took;
}

double fay_work_counting(struct fay_work_counted *counted, const struct fay_attach_options *options)
{
	struct work *work = malloc(sizeof(*work));
	double cpu = (double)counted->cpu, took = 0;
	bool chosen =
		work && WORTH_NS * (double)counted->all > WORTH_PART * cpu && choose(work, counted);
	fay_session_destroy(counted->session);
	counted->session = NULL;
	double work_ns = chosen ? measure(counted, work, options) : 0;
	if (work_ns > 0)
		took = cpu - work_ns * (double)work->calls;
	took = took > CERTAIN_PART * cpu ? took / (double)(counted->all - work->calls) : 0;
	free(work);
	return took;
}
