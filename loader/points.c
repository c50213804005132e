/* SPDX-License-Identifier: MIT */
/* From probes' patterns to points: one for each function or place inside one, with the probes that
 * want it in the image's order. */
#include "session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "target.h"

static int by_address(const void *a, const void *b)
{
	const struct fay_point *x = a, *y = b;

	if (x->function.address != y->function.address)
		return x->function.address < y->function.address ? -1 : 1;
	if (x->inside != y->inside)
		return x->inside ? 1 : -1;
	return x->function.marker < y->function.marker ? -1
						       : x->function.marker > y->function.marker;
}

/* From the function to the place inside it. What is outside the function, or not at an
 * instruction's start, is found out when it is planned. */
static void place_inside(struct fay_point *point, uint64_t offset)
{
	point->inside = true;
	point->offset = offset;
	point->function.address += offset;
	point->function.size -= offset <= point->function.size ? offset : point->function.size;
}

static int probe_add(struct fay_point *point, uint32_t probe, bool leaves)
{
	uint32_t *probes = realloc(point->probes, (point->probe_count + 1) * sizeof(*probes)), at;

	if (!probes)
		return -1;
	for (at = point->probe_count; at > 0 && probes[at - 1] > probe; at--)
		probes[at] = probes[at - 1];
	probes[at] = probe;
	point->probes = probes;
	point->probe_count++;
	point->leaves |= leaves;
	return 0;
}

int fay_point_append(struct fay_session *session, size_t *capacity,
		     const struct fay_function *function, const uint32_t *probe, enum fay_hook hook)
{
	struct fay_point point = { .function = *function, .hook = hook }, *same;
	bool leaves = probe && fay_trampoline_watches(&session->verdict->probes[*probe]);

	point.careful = function->unnamed || strstr(function->name, ".cold");
	if (function->marker) {
		point.inside = true;
		point.offset = function->address - function->start;
	} else if (probe && session->verdict->probes[*probe].kind == FAY_PROBE_OFFSET)
		place_inside(&point, session->verdict->probes[*probe].parameter);
	same = session->folded_count ? bsearch(&point, session->points, session->folded_count,
					       sizeof(point), by_address)
				     : NULL;
	if (same) {
		if (hook)
			same->hook = hook;
		return probe ? probe_add(same, *probe, leaves) : 0;
	}
	if (session->point_count == *capacity) {
		size_t more = *capacity ? 2 * *capacity : 64;
		struct fay_point *grown = more > FAY_POINTS_MAX
						  ? NULL
						  : realloc(session->points, more * sizeof(*grown));

		if (!grown)
			return -1;
		session->points = grown;
		*capacity = more;
	}
	if (probe && probe_add(&point, *probe, leaves))
		return -1;
	session->points[session->point_count++] = point;
	return 0;
}

int fay_points_full(const struct fay_session *session, struct fay_error *error)
{
	if (session->point_count == FAY_POINTS_MAX)
		return fay_error_set(error, FAY_E_LIMIT,
				     "process %d: too many functions (limit %u)", (int)session->pid,
				     FAY_POINTS_MAX);
	return fay_error_set(error, FAY_E_LIMIT, "out of memory");
}

/* The points are sorted by address and, qsort not being stable, are given the order of probes back
 * here. Those that were folded before come once only. */
int fay_points_fold(struct fay_session *session)
{
	size_t kept = 0;
	int code = 0;

	if (session->point_count == session->folded_count)
		return 0;
	qsort(session->points, session->point_count, sizeof(*session->points), by_address);
	for (size_t i = 0; i < session->point_count; i++) {
		struct fay_point *point = &session->points[i],
				 *same = kept ? &session->points[kept - 1] : NULL;

		if (!same || by_address(same, point)) {
			session->points[kept++] = *point;
			continue;
		}
		if (point->hook)
			same->hook = point->hook;
		for (uint32_t k = 0; k < point->probe_count && !code; k++)
			code = probe_add(same, point->probes[k], point->leaves);
		same->helper &= point->helper;
		fay_point_deinit(point);
	}
	session->point_count = session->folded_count = kept;
	return code;
}

struct fay_point *fay_points_at(const struct fay_session *session, uint64_t address)
{
	struct fay_point key = { .function.address = address };

	return session->folded_count ? bsearch(&key, session->points, session->folded_count,
					       sizeof(key), by_address)
				     : NULL;
}

/* What the trampolines of markers need; what a marker cannot give is the reason for which it is
 * skipped later. */
static int markers_prepare(struct fay_session *session)
{
	for (size_t i = 0; i < session->point_count; i++) {
		struct fay_point *point = &session->points[i];
		uint32_t fields = 0;

		if (!point->function.marker)
			continue;
		for (uint32_t k = 0; k < point->probe_count; k++)
			fields |= session->verdict->probes[point->probes[k]].event_fields;
		point->marker = fay_marker_place_create(session->target, &point->function, fields);
		if (!point->marker)
			return -1;
	}
	return 0;
}

int fay_points_resolve(struct fay_session *session, struct fay_error *error)
{
	const struct fay_verdict *verdict = session->verdict;
	size_t capacity = 0;
	int unmatched = 0;

	fay_known_mark(session);
	for (uint32_t i = 0; i < verdict->probe_count && !session->options.modules_alone; i++) {
		uint32_t kind = verdict->probes[i].kind;
		struct fay_function_list list = { 0 };
		int code;

		if (kind == FAY_PROBE_BEGIN || kind == FAY_PROBE_END || kind == FAY_PROBE_TIMER)
			continue;
		code = fay_places_find(session, i, &list, error);
		if (code == FAY_E_USAGE && session->options.some) {
			unmatched = code;
			continue;
		}
		if (code)
			return code;
		for (size_t k = 0; k < list.count && !code; k++)
			code = fay_point_append(session, &capacity, &list.items[k], &i,
						FAY_HOOK_NONE);
		fay_function_list_deinit(&list);
		if (code)
			return fay_points_full(session, error);
		/* so that a function that several probes want counts once */
		if (fay_points_fold(session))
			return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	}
	if (unmatched && !session->point_count)
		return unmatched;
	if (session->options.modules && !session->options.beside_count &&
	    fay_rendezvous_resolve(session, &capacity, error))
		return error->code;
	if (fay_points_fold(session) || markers_prepare(session))
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	if (fay_exits_resolve(session, &capacity, error))
		return error->code;
	fay_runtimes_judge(session);
	return 0;
}

int fay_session_note(struct fay_session *session, const struct fay_point *point, const char *reason)
{
	struct fay_skipped_point *grown =
		realloc(session->skipped, (session->skipped_count + 1) * sizeof(*grown));

	if (!grown)
		return -1;
	session->skipped = grown;
	grown += session->skipped_count++;
	snprintf(grown->function, sizeof(grown->function), "%.100s!%.150s", point->function.module,
		 point->function.name);
	snprintf(grown->reason, sizeof(grown->reason), "%s", reason);
	return 0;
}

int fay_session_skip(struct fay_session *session, struct fay_point *point, const char *reason)
{
	point->usable = false;
	if (point->hook == FAY_HOOK_MODULES)
		snprintf(session->unhooked, sizeof(session->unhooked), "%.60s %.130s",
			 point->function.name, reason);
	return point->helper ? 0 : fay_session_note(session, point, reason);
}

void fay_point_deinit(struct fay_point *point)
{
	free(point->probes);
	free(point->marker);
	free(point->no_exits);
	if (point->flow)
		fay_flow_deinit(point->flow);
	free(point->flow);
}

void fay_points_deinit(struct fay_session *session)
{
	for (size_t i = 0; i < session->point_count; i++)
		fay_point_deinit(&session->points[i]);
	free(session->points);
	free(session->sites);
	free(session->order);
	session->points = NULL;
	session->point_count = 0;
}
