/* SPDX-License-Identifier: MIT */
/*
 * Removing zones. It works from what lies in the target alone, so that it is one function for a
 * session's own end, for the children that a traced process forked, and for what a killed fay left
 * behind. Chains of sessions on one entry: zone.c.
 */
#include "zone_private.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loader/process/process.h"
#include "loader/stop/stop.h"

#define REMOVE_ROUNDS 7u /* waits of 1, 2, 4 ... 64 ms for threads to leave */
/* further ones of 64 ms for threads that stand in our code: on a busy machine they do not get to
 * run */
#define STANDING_ROUNDS 60u
/* Likewise for what looks like a signal frame of such a one: it may be an old one. */
#define INTERRUPTED_ROUNDS 15u

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

struct inside_context {
	const struct fay_zones *zones;
	uint64_t session;
	struct fay_stop *stop;
	uint64_t before[2]; /* for fay_stop_interrupted_at */
};

static const struct fay_zone *zone_around(const struct inside_context *inside, uint64_t address)
{
	return fay_zones_around(inside->zones, inside->session, address);
}

static bool is_interrupted(void *context, uint64_t address, uint64_t word)
{
	struct inside_context *inside = context;
	uint64_t rip = fay_stop_interrupted_at(inside->before, word);

	(void)address;
	return rip && zone_around(inside, rip);
}

/* The short jump that leads to a hole, of the same session. 0: the address is none of its holes. */
static uint64_t hop_to(const struct inside_context *inside, uint64_t hole)
{
	for (size_t i = 0; i < inside->zones->count; i++) {
		const struct fay_zone *zone = &inside->zones->items[i];
		uint32_t at = fay_zone_first_at(zone, hole);
		const struct fay_zone_patch *patch = zone->header.session == inside->session
							     ? fay_zone_next_at(zone, hole, &at)
							     : NULL;

		while (patch && patch->kind != FAY_PATCH_HOLE)
			patch = fay_zone_next_at(zone, hole, &at);
		for (uint32_t k = fay_zone_first_at(zone, hole - UINT8_MAX);
		     patch && patch->removed && k < zone->header.patch_count; k++) {
			const struct fay_zone_patch *hop = &zone->patches[zone->by_site[k]];

			if (hop->site > hole + UINT8_MAX)
				break;
			if (hop->size == FAY_HOP_BYTES &&
			    hop->site + FAY_HOP_BYTES + (uint64_t)(int64_t)hop->hop == hole)
				return hop->site;
		}
	}
	return 0;
}

/* Somebody was interrupted between a short jump and the one in its hole: the signal's handler
 * returns to the former's place. */
static bool leave_hole(void *context, uint64_t address, uint64_t word)
{
	struct inside_context *inside = context;
	uint64_t rip = fay_stop_interrupted_at(inside->before, word),
		 hop = rip ? hop_to(inside, rip) : 0;

	if (hop)
		fay_stop_write(inside->stop, address - 2 * sizeof(word), &hop, sizeof(hop));
	return false;
}

static bool has_holes(const struct fay_zones *zones, uint64_t session)
{
	for (size_t i = 0; i < zones->count; i++)
		for (uint32_t k = 0; zones->items[i].header.session == session &&
				     k < zones->items[i].header.patch_count;
		     k++)
			if (zones->items[i].patches[k].kind == FAY_PATCH_HOLE)
				return true;
	return false;
}

/* What is in a removed hole is the program's again, which does not go on there. A short jump does
 * nothing but lead there: so it is run again, or what it has replaced. */
static void leave_holes(struct fay_stop *stop, const struct fay_zones *zones, uint64_t session)
{
	struct inside_context context = { .zones = zones, .session = session, .stop = stop };

	if (!has_holes(zones, session))
		return;
	for (size_t i = 0; i < stop->count; i++) {
		struct fay_stopped_thread *thread = &stop->threads[i];
		uint64_t hop = thread->gone ? 0 : hop_to(&context, thread->registers.rip);

		if (!hop)
			continue;
		thread->registers.rip = hop;
		thread->dirty = true;
	}
	fay_stop_visit_words(stop, leave_hole, &context);
}

/*
 * Our code calls nothing outside itself, and nothing returns to it, so a thread that is in it
 * stands there (its rip), or was interrupted there by a signal. All other words that point to our
 * code are what calls of probes have left in unused stack.
 */
static bool somebody_stands_inside(const struct fay_stop *stop, const struct fay_zones *zones,
				   uint64_t session)
{
	struct inside_context context = { .zones = zones, .session = session };

	for (size_t i = 0; i < stop->count; i++)
		if (!stop->threads[i].gone && zone_around(&context, stop->threads[i].registers.rip))
			return true;
	return false;
}

static bool somebody_inside(struct fay_stop *stop, const struct fay_zones *zones, uint64_t session)
{
	struct inside_context context = { .zones = zones, .session = session };

	return somebody_stands_inside(stop, zones, session) ||
	       fay_stop_visit_words(stop, is_interrupted, &context);
}

static int unmap(struct fay_stop *stop, uint64_t address, uint64_t size, struct fay_error *error)
{
	uint64_t arguments[6] = { address, size };
	int64_t result;

	return size ? fay_stop_syscall(stop, SYS_munmap, arguments, &result, error) : 0;
}

/* Into the headers of the session's zones. */
static void record_size(struct fay_stop *stop, const struct fay_zones *zones, uint64_t session,
			size_t field, uint64_t size)
{
	for (size_t i = 0; i < zones->count; i++)
		if (zones->items[i].header.session == session)
			fay_stop_write(stop, zones->items[i].header.data + field, &size,
				       sizeof(size));
}

/*
 * What the headers name by an address and, in `field`, a size. The record first: after a failure
 * behind it, or if fay is killed, what the program has mapped there since must not be taken for
 * ours.
 */
static int unmap_named(struct fay_stop *stop, const struct fay_zones *zones, uint64_t session,
		       uint64_t address, uint64_t size, size_t field, struct fay_error *error)
{
	int code;

	record_size(stop, zones, session, field, 0);
	code = unmap(stop, address, size, error);
	if (code)
		record_size(stop, zones, session, field, size);
	return code;
}

/* The zones last: by them another attempt finds what is left. */
static int session_unmap(struct fay_stop *stop, const struct fay_zones *zones, uint64_t session,
			 struct fay_error *error)
{
	const struct fay_zone_header *any = NULL;
	int code = 0;

	for (size_t i = 0; i < zones->count; i++)
		if (zones->items[i].header.session == session)
			any = &zones->items[i].header;
	if (any)
		code = unmap_named(stop, zones, session, any->table, any->table_size,
				   offsetof(struct fay_zone_header, table_size), error);
	if (any && !code)
		code = unmap_named(stop, zones, session, any->records, any->records_size,
				   offsetof(struct fay_zone_header, records_size), error);
	if (any && !code)
		code = unmap_named(stop, zones, session, any->shm, any->shm_size,
				   offsetof(struct fay_zone_header, shm_size), error);
	for (size_t i = 0; i < zones->count && !code; i++) {
		const struct fay_zone_header *header = &zones->items[i].header;

		if (header->session == session)
			code = unmap(stop, header->code, header->code_size + header->data_size,
				     error);
	}
	return code;
}

bool fay_semaphore_add(struct fay_stop *stop, uint64_t address, int step)
{
	uint16_t count;

	if (fay_stop_read(stop, address, &count, sizeof(count)) ||
	    (step > 0 ? count == UINT16_MAX : count == 0))
		return false;
	count = (uint16_t)(count + step);
	return fay_stop_write(stop, address, &count, sizeof(count)) == 0;
}

/*
 * Takes back what the session's removed markers have added to their semaphores. The record first: a
 * fay killed in between leaves a marker that costs its arguments, not one that others trace and
 * that is off.
 */
static void uncount_markers(struct fay_stop *stop, struct fay_zone *zone,
			    const struct fay_text *text)
{
	for (uint32_t k = 0; k < zone->header.patch_count; k++) {
		struct fay_zone_patch *patch = &zone->patches[k];

		if (!patch->counted || !patch->removed)
			continue;
		patch->counted = 0;
		fay_stop_write(stop, zone->header.data + sizeof(zone->header) + k * sizeof(*patch),
			       patch, sizeof(*patch));
		if (fay_text_at(text, patch->site, 1)) /* else its module was unloaded */
			fay_semaphore_add(stop, patch->semaphore, -1);
	}
}

/* Which of a session's patches are meant. */
struct selection {
	uint64_t session;
	/* then only those with one of these copies of the displaced instructions; sorted; NULL:
	 * all */
	const uint64_t *copies;
	size_t count;
};

static bool is_selected(const struct selection *selection, const struct fay_zone_patch *patch)
{
	return !selection->copies || bsearch(&patch->displaced, selection->copies, selection->count,
					     sizeof(*selection->copies), by_value);
}

/* Takes out these patches. True if some stay reachable. */
static bool take_out(struct fay_stop *stop, struct fay_zones *zones, struct fay_text *text,
		     const struct selection *selection)
{
	uint64_t session = selection->session;
	bool reachable = false;

	for (size_t i = 0; i < zones->count; i++) {
		struct fay_zone *zone = &zones->items[i];

		for (uint32_t k = 0;
		     zone->header.session == session && k < zone->header.patch_count; k++) {
			struct fay_zone_patch *patch = &zone->patches[k];

			if (!is_selected(selection, patch))
				continue;
			if (!patch->removed)
				patch->removed = fay_patch_take_out(text, zones, session, patch);
			reachable |= !patch->removed;
		}
	}
	if (fay_changes_write(stop, zones, text)) {
		leave_holes(stop, zones, session);
		for (size_t i = 0; i < zones->count; i++)
			if (zones->items[i].header.session == session)
				uncount_markers(stop, &zones->items[i], text);
		return reachable;
	}
	/* which pages were written is not known: all are looked at again */
	for (size_t i = 0; i < zones->count; i++)
		for (uint32_t k = 0; zones->items[i].header.session == session &&
				     k < zones->items[i].header.patch_count;
		     k++)
			zones->items[i].patches[k].removed &=
				!is_selected(selection, &zones->items[i].patches[k]);
	return true;
}

/* The pages that the session patched, as they are now. */
static int read_text(const struct fay_stop *stop, const struct fay_zones *zones, uint64_t session,
		     struct fay_text *text, struct fay_error *error)
{
	int code = 0;

	for (size_t i = 0; i < zones->count; i++) {
		const struct fay_zone *zone = &zones->items[i];

		for (uint32_t k = 0;
		     zone->header.session == session && k < zone->header.patch_count && !code; k++)
			code = fay_text_want(text, zone->patches[k].site, zone->patches[k].size,
					     error);
	}
	if (!code)
		code = fay_text_ready(text, error);
	if (!code)
		fay_text_read(text, stop->memory, fay_stop_any(stop));
	return code;
}

/* What is taken out is marked so where it stays: after the bytes, so that a mark is never seen of a
 * place that still leads here. */
static void mark_removed(struct fay_stop *stop, struct fay_zones *zones, struct fay_text *text,
			 uint64_t session)
{
	for (size_t i = 0; i < zones->count; i++)
		zones->items[i].dirty |= zones->items[i].header.session == session;
	fay_changes_write(stop, zones, text);
}

static bool has_session(const struct fay_zones *zones, uint64_t session)
{
	for (size_t i = 0; i < zones->count; i++)
		if (zones->items[i].header.session == session)
			return true;
	return false;
}

/* Nothing waits for calls under way: none of them returns to our code. */
static int session_take_out(struct fay_stop *stop, struct fay_zones *zones, struct fay_text *text,
			    uint64_t session, bool *found, bool *left, unsigned *more,
			    struct fay_error *error)
{
	struct selection places = { .session = session };
	bool reachable, inside, confined;

	*found |= has_session(zones, session);
	if (!*found)
		return 0;
	reachable = take_out(stop, zones, text, &places);
	inside = !reachable && somebody_inside(stop, zones, session);
	/* A program that went under seccomp while traced could be killed for munmap. */
	confined = fay_stop_confined(stop);
	*left = reachable || inside || confined;
	if (!*left)
		return session_unmap(stop, zones, session, error);
	if (somebody_stands_inside(stop, zones, session))
		*more = STANDING_ROUNDS;
	else if (inside && !confined)
		*more = INTERRUPTED_ROUNDS;
	mark_removed(stop, zones, text, session);
	return 0;
}

/* The zones of the process, and the pages that the session patched. Both are the caller's, whatever
 * is returned. */
static int read_patched(const struct fay_stop *stop, uint64_t session, struct fay_zones *zones,
			struct fay_text *text, struct fay_error *error)
{
	struct fay_maps maps;
	int code = fay_maps_read(stop->pid, &maps, error);

	if (code)
		return code;
	code = fay_zones_read(&maps, stop->memory, zones, error);
	fay_maps_deinit(&maps);
	return code ? code : read_text(stop, zones, session, text, error);
}

/* *more: so many further rounds may help one that is left. */
static int remove_one(struct fay_stop *stop, struct fay_zones *zones,
		      struct fay_zone_removal *removal, unsigned *more, struct fay_error *error)
{
	struct fay_text text = { 0 };
	unsigned rounds = 0;
	int code = read_text(stop, zones, removal->session, &text, error);

	removal->left = false;
	if (!code)
		code = session_take_out(stop, zones, &text, removal->session, &removal->found,
					&removal->left, &rounds, error);
	fay_text_deinit(&text);
	if (!code && removal->found && !removal->left)
		/* for the sessions that follow it is not there any more */
		fay_zones_forget(zones, removal->session);
	*more = rounds > *more ? rounds : *more;
	return code;
}

/* All in the one stop. One that fails does not keep the others from being removed; the first error
 * is returned. */
static int remove_once(struct fay_stop *stop, struct fay_zone_removal *removals, size_t count,
		       bool first, unsigned *more, struct fay_error *error)
{
	struct fay_zones zones = { 0 };
	struct fay_maps maps;
	int code = fay_maps_read(stop->pid, &maps, error);

	*more = 0;
	if (code)
		return code;
	code = fay_zones_read(&maps, stop->memory, &zones, error);
	fay_maps_deinit(&maps);
	for (size_t i = 0; i < count && zones.count; i++) {
		struct fay_error one;
		int result = 0;

		if (first || removals[i].left)
			result = remove_one(stop, &zones, &removals[i], more, &one);
		if (result && !code) {
			code = result;
			if (error)
				*error = one;
		}
	}
	fay_zones_deinit(&zones);
	return code;
}

static bool any_left(const struct fay_zone_removal *removals, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (removals[i].left)
			return true;
	return false;
}

int fay_zones_remove(pid_t pid, struct fay_zone_removal *removals, size_t count,
		     uint32_t stop_timeout_ms, uint32_t tracer_wait_ms, uint64_t *longest_pause,
		     struct fay_error *error)
{
	for (size_t i = 0; i < count; i++)
		removals[i].found = removals[i].left = false;
	for (unsigned round = 0, more = 0; round <= REMOVE_ROUNDS + more; round++) {
		struct fay_stop stop;
		uint64_t pause;
		unsigned most;
		int code;

		if (fay_process_start(pid) == 0)
			return 0;
		code = fay_stop_all(pid, stop_timeout_ms, tracer_wait_ms, &stop, error);
		if (code)
			return fay_process_start(pid) == 0 ? 0 : code;
		code = remove_once(&stop, removals, count, round == 0, &most, error);
		pause = fay_stop_release(&stop);
		if (longest_pause && pause > *longest_pause)
			*longest_pause = pause;
		if (code)
			return fay_process_start(pid) == 0 ? 0 : code;
		if (!any_left(removals, count))
			return 0;
		if (round >= REMOVE_ROUNDS && more < most)
			more++;
		if (round < REMOVE_ROUNDS + more)
			usleep(1000u << (round < REMOVE_ROUNDS ? round : REMOVE_ROUNDS - 1));
	}
	return 0;
}

int fay_zone_take_out(pid_t pid, uint64_t session, const uint64_t *copies, size_t count,
		      uint32_t stop_timeout_ms, uint32_t tracer_wait_ms, bool *left,
		      uint64_t *longest_pause, struct fay_error *error)
{
	struct selection selection = { .session = session, .copies = copies, .count = count };
	struct fay_text text = { 0 };
	struct fay_zones zones = { 0 };
	struct fay_stop stop;
	uint64_t pause;
	int code = fay_stop_all(pid, stop_timeout_ms, tracer_wait_ms, &stop, error);

	*left = true;
	if (code)
		return code;
	code = read_patched(&stop, session, &zones, &text, error);
	if (!code) {
		*left = take_out(&stop, &zones, &text, &selection);
		mark_removed(&stop, &zones, &text, session);
	}
	fay_text_deinit(&text);
	fay_zones_deinit(&zones);
	pause = fay_stop_release(&stop);
	if (pause > *longest_pause)
		*longest_pause = pause;
	return code;
}
