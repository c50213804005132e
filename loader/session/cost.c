/* SPDX-License-Identifier: MIT */
/*
 * What probes cost the program, and taking points out of a session that goes on, and back.
 *
 * Each thread keeps account of each place in its slot (struct fay_place_cost,
 * dispatcher/user/trampoline_cost.c). The time between the two stamps of an event has the second
 * stamp's own in it, which is measured here and taken off; what comes before the first and after
 * the second is not in it, and a fixed amount stands for that: what a trampoline with nothing in it
 * adds where it is hot. The stamps' cycles are not the processor's, so it is a time.
 */
#include "session.h"

#include <stdlib.h>
#include <time.h>
#include <x86intrin.h>

#include "loader/stop/stop.h"

/* the jump, the registers, the look-up of the thread, and the account itself; measured: 4.7 ns, and
 * 14 cycles on a slower machine */
#define OUTSIDE_NS 5.0
#define STAMP_EVENTS 32768u
#define STAMPS_MAX 512u

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/*
 * Cycles that an event with no probe appears to take: what trampolines do, done here. As there,
 * about one in 128 is timed, so that the processor mispredicts the branch to each second stamp;
 * that is most of it.
 */
static uint64_t stamp_cycles(void)
{
	uint64_t stamps[STAMPS_MAX], random = 88172645463325252u;
	size_t count = 0;

	for (unsigned i = 0; i < STAMP_EVENTS && count < STAMPS_MAX; i++) {
		volatile uint32_t began = 0;

		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17; /* xorshift64 (Marsaglia 2003) */
		if (random % 128 == 0)
			began = (uint32_t)__rdtsc() | 1;
		if (began)
			stamps[count++] = (uint32_t)__rdtsc() - began;
	}
	qsort(stamps, count, sizeof(*stamps), by_value);
	return count ? stamps[count / 2] : 0;
}

/* What came since the last call has cost, in cycles: as much each as the timed ones among it, or as
 * those before if there is none. */
static uint64_t cycles_since(const struct fay_session *session, const struct fay_point_cost *before,
			     const struct fay_point_cost *now)
{
	uint64_t cycles = now->cycles - before->cycles, timed = now->timed - before->timed, mean;

	if (now->passes <= before->passes)
		return 0; /* nothing, or the program wrote over it */
	if (timed == 0) {
		cycles = now->cycles;
		timed = now->timed;
	}
	mean = timed ? cycles / timed : 0;
	if (mean > FAY_COST_LONGEST)
		mean = FAY_COST_LONGEST;
	mean = mean > session->stamp_cycles ? mean - session->stamp_cycles : 0;
	mean += (uint64_t)(OUTSIDE_NS / fay_session_cycle_ns(session));
	return (now->passes - before->passes) * mean;
}

/* Adds up one account over the process's own threads. */
static struct fay_place_cost sum_of(const struct fay_session *session, uint64_t index)
{
	const struct fay_shm_control *geometry = &session->plan.geometry;
	uint32_t used = __atomic_load_n(&session->install.shm->slot_next, __ATOMIC_ACQUIRE), timed;
	struct fay_place_cost sum = { 0 };

	for (uint32_t i = 0; i < used && i < geometry->slot_max && index < geometry->cost_count;
	     i++) {
		const char *slot = (const char *)session->install.shm + geometry->slots_offset +
				   i * geometry->slot_stride;
		struct fay_place_cost cost =
			((const struct fay_place_cost *)(slot + geometry->cost_offset))[index];

		if (((const struct fay_slot_header *)slot)->pid != geometry->target_pid ||
		    ((const struct fay_slot_header *)slot)->process > FAY_PROCESS_TRACED)
			continue;
		sum.drawn += cost.drawn - (uint64_t)(int64_t)cost.left;
		sum.cycles += cost.cycles;
		timed = sum.timed + cost.timed;
		sum.timed = timed < sum.timed ? UINT32_MAX : timed;
	}
	return sum;
}

/* Without what leaves calls their ends would be found late. */
static bool is_fixed(const struct fay_point *point)
{
	return point->hook != FAY_HOOK_NONE || (point->helper && point->sweeps);
}

/* Of one point, with the sums so far, but for the time. */
static struct fay_point_cost cost_of(const struct fay_session *session,
				     const struct fay_point *point)
{
	bool records = fay_point_records(&session->plan, point) && point->exits && !point->careful;
	struct fay_place_cost events = sum_of(session, point->cost),
			      all = records ? sum_of(session,
						     fay_point_record_cost(&session->plan, point))
					    : events;

	return (struct fay_point_cost){ .events = point->probe_count ? events.drawn : 0,
					.passes = all.drawn,
					.cycles = all.cycles,
					.timed = all.timed,
					.taken_out = point->taken_out || point->unloaded,
					.fixed = is_fixed(point) };
}

static void add_time(struct fay_session *session, const struct fay_point_cost *before,
		     struct fay_point_cost *now)
{
	uint64_t cycles = cycles_since(session, before, now);

	now->nanoseconds =
		before->nanoseconds +
		(uint64_t)((unsigned __int128)cycles * session->plan.time_multiplier >> 32);
}

static void know_stamps(struct fay_session *session)
{
	if (!session->stamp_cycles)
		session->stamp_cycles = stamp_cycles() + 1;
}

void fay_session_costs(struct fay_session *session, struct fay_point_cost *costs)
{
	size_t count = fay_session_own(session) ? fay_session_cost_count(session) : 0;

	know_stamps(session);
	for (size_t i = 0; i < count; i++) {
		struct fay_point_cost now = cost_of(session, &session->plan.points[i]);

		add_time(session, &costs[i], &now);
		costs[i] = now;
	}
}

void fay_session_cost_total(struct fay_session *session, struct fay_point_cost *cost)
{
	size_t count = fay_session_own(session) ? fay_session_cost_count(session) : 0;
	struct fay_point_cost all = { .fixed = true };

	know_stamps(session);
	for (size_t i = 0; i < count; i++) {
		struct fay_point_cost one = cost_of(session, &session->plan.points[i]);

		all.events += one.events;
		all.passes += one.passes;
		all.cycles += one.cycles;
		all.timed += one.timed;
	}
	add_time(session, cost, &all);
	*cost = all;
}

uint64_t fay_session_stamp_cycles(const struct fay_session *session)
{
	return session->stamp_cycles;
}

double fay_session_cycle_ns(const struct fay_session *session)
{
	return (double)session->plan.time_multiplier / 4294967296.0;
}

uint64_t fay_process_cpu_ns(pid_t pid)
{
	struct timespec used;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &used))
		return 0;
	return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

struct taking_out {
	struct fay_session *session;
	const uint64_t *copies;
	size_t count;
	bool *left;
	struct fay_error *error;
};

/* In the keeper: fay killed meanwhile does not interrupt it. */
static int take_out_stopped(void *context)
{
	struct taking_out *t = context;

	return fay_zone_take_out(t->session->plan.pid, t->session->plan.id, t->copies, t->count,
				 t->session->plan.options.stop_timeout_ms,
				 t->session->plan.options.tracer_wait_ms, t->left,
				 &t->session->longest_pause, t->error);
}

int fay_session_remove_points(struct fay_session *session, const size_t *points, size_t count,
			      bool *left, struct fay_error *error)
{
	uint64_t *copies = calloc(session->plan.site_count + 1, sizeof(*copies));
	struct taking_out context = { session, copies, 0, left, error };
	int code;

	*left = true;
	if (!copies)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < session->plan.points[points[i]].site_count; k++)
			copies[context.count++] =
				session->plan.sites[session->plan.points[points[i]].first_site + k]
					.patch.displaced;
	qsort(copies, context.count, sizeof(*copies), by_value);
	code = fay_keeper_run(take_out_stopped, &context, error);
	free(copies);
	return code;
}

int fay_session_take_out(struct fay_session *session, const size_t *points, size_t count,
			 struct fay_error *error)
{
	bool left;
	int code;

	if (!fay_session_own(session))
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	for (size_t i = 0; i < count; i++)
		if (is_fixed(&session->plan.points[points[i]]))
			return fay_error_set(error, FAY_E_REFUSED,
					     "%s is needed by the runtime itself",
					     session->plan.points[points[i]].function.name);
	code = fay_session_remove_points(session, points, count, &left, error);
	if (!code && left)
		code = fay_error_set(error, FAY_E_REFUSED,
				     "process %d: the bytes at a patch point are no longer those "
				     "that were written there",
				     (int)session->plan.pid);
	for (size_t i = 0; i < count && !code; i++)
		session->plan.points[points[i]].taken_out = true;
	return code;
}

struct putting_back {
	struct fay_session *session;
	const size_t *points;
	size_t count;
	struct fay_error *error;
};

/* In the keeper, likewise. */
static int put_back_stopped(void *context)
{
	struct putting_back *p = context;
	const struct fay_attach_options *options = &p->session->plan.options;
	struct fay_stop stop;
	uint64_t pause;
	int code;

	if (fay_keeper_orphaned())
		return fay_error_set(p->error, FAY_E_INTERNAL, "fay is gone");
	code = fay_stop_all(p->session->plan.pid, options->stop_timeout_ms, options->tracer_wait_ms,
			    &stop, p->error);
	if (code)
		return code;
	code = fay_install_again(&p->session->install, &stop, p->points, p->count, p->error);
	pause = fay_stop_release(&stop);
	if (pause > p->session->longest_pause)
		p->session->longest_pause = pause;
	return code;
}

int fay_session_put_back(struct fay_session *session, const size_t *points, size_t count,
			 struct fay_error *error)
{
	struct putting_back context = { session, points, count, error };
	int code = fay_session_own(session) ? fay_keeper_run(put_back_stopped, &context, error)
					    : fay_error_set(error, FAY_E_LIMIT, "out of memory");

	for (size_t i = 0; i < count && !code; i++)
		session->plan.points[points[i]].taken_out = false;
	return code;
}

bool fay_session_comes_back(const struct fay_session *session, size_t point)
{
	return fay_session_own(session) &&
	       fay_install_comes_back(&session->plan, &session->plan.points[point]);
}
