/* SPDX-License-Identifier: MIT */
/*
 * From probes' patterns to patch points: one for each function entry, with the probes that want it in the image's order. Each is read and
 * judged before anything is stopped; a point that cannot be patched is set aside with its reason and the others go on.
 */
#include "session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "target.h"

#define BODY_MAX (1u << 20) /* bytes of a function that are searched for jumps to its start */
#define BODY_TAIL 32u

static int by_address(const void *a, const void *b)
{
	const struct fay_point *x = a, *y = b;

	if (x->function.address != y->function.address)
		return x->function.address < y->function.address ? -1 : 1;
	if (x->inside != y->inside)
		return x->inside ? 1 : -1;
	return x->function.marker < y->function.marker ? -1 : x->function.marker > y->function.marker;
}

/* From the function to the place inside it. What is outside the function, or not at an instruction's start, is found out when it is planned. */
static void place_inside(struct fay_point *point, uint64_t offset)
{
	point->inside = true;
	point->offset = offset;
	point->function.address += offset;
	point->function.size -= offset <= point->function.size ? offset : point->function.size;
}

static int probe_add(struct fay_point *point, uint32_t probe, bool watched)
{
	uint32_t *probes = realloc(point->probes, (point->probe_count + 1) * sizeof(*probes)), at;

	if (!probes)
		return -1;
	for (at = point->probe_count; at > 0 && probes[at - 1] > probe; at--)
		probes[at] = probes[at - 1];
	probes[at] = probe;
	point->probes = probes;
	point->probe_count++;
	point->watched |= watched;
	return 0;
}

int fay_point_append(struct fay_session *session, size_t *capacity, const struct fay_function *function,
			const uint32_t *probe, enum fay_hook hook)
{
	struct fay_point point = { .function = *function, .hook = hook }, *same;
	bool watched = probe && fay_trampoline_watches(&session->verdict->probes[*probe]);

	point.careful = function->unnamed || strstr(function->name, ".cold");
	if (function->marker) {
		point.inside = true;
		point.offset = function->address - function->start;
	} else if (probe && session->verdict->probes[*probe].kind == FAY_PROBE_OFFSET)
		place_inside(&point, session->verdict->probes[*probe].parameter);
	same = session->folded_count ? bsearch(&point, session->points, session->folded_count, sizeof(point), by_address) : NULL;
	if (same) {
		if (hook)
			same->hook = hook;
		return probe ? probe_add(same, *probe, watched) : 0;
	}
	if (session->point_count == *capacity) {
		size_t more = *capacity ? 2 * *capacity : 64;
		struct fay_point *grown = more > FAY_POINTS_MAX ? NULL : realloc(session->points, more * sizeof(*grown));

		if (!grown)
			return -1;
		session->points = grown;
		*capacity = more;
	}
	if (probe && probe_add(&point, *probe, watched))
		return -1;
	session->points[session->point_count++] = point;
	return 0;
}

int fay_points_full(const struct fay_session *session, struct fay_error *error)
{
	if (session->point_count == FAY_POINTS_MAX)
		return fay_error_set(error, FAY_E_LIMIT, "process %d: too many functions (limit %u)", (int)session->pid, FAY_POINTS_MAX);
	return fay_error_set(error, FAY_E_LIMIT, "out of memory");
}

/* The points are sorted by address and, qsort not being stable, are given the order of probes back here. Those that were folded before come once only. */
static int points_fold(struct fay_session *session)
{
	size_t kept = 0;
	int code = 0;

	if (session->point_count == session->folded_count)
		return 0;
	qsort(session->points, session->point_count, sizeof(*session->points), by_address);
	for (size_t i = 0; i < session->point_count; i++) {
		struct fay_point *point = &session->points[i], *same = kept ? &session->points[kept - 1] : NULL;

		if (!same || by_address(same, point)) {
			session->points[kept++] = *point;
			continue;
		}
		if (point->hook)
			same->hook = point->hook;
		for (uint32_t k = 0; k < point->probe_count && !code; k++)
			code = probe_add(same, point->probes[k], point->watched);
		free(point->probes);
	}
	session->point_count = session->folded_count = kept;
	return code;
}

/* What the trampolines of markers need; what a marker cannot give is the reason for which it is skipped later. */
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

static bool any_watched(const struct fay_session *session)
{
	for (size_t i = 0; i < session->point_count; i++)
		if (session->points[i].watched)
			return true;
	return false;
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
			code = fay_point_append(session, &capacity, &list.items[k], &i, FAY_HOOK_NONE);
		fay_function_list_deinit(&list);
		if (code)
			return fay_points_full(session, error);
		if (points_fold(session)) /* so that a function that several probes want counts once */
			return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	}
	if (unmatched && !session->point_count)
		return unmatched;
	if (any_watched(session)) {
		int code = fay_watch_hooks(session, &capacity, error);

		if (code)
			return code;
		session->calls_size = fay_calls_size(session);
	}
	if (session->options.modules && !session->options.beside_count && fay_rendezvous_resolve(session, &capacity, error))
		return error->code;
	if (points_fold(session) || markers_prepare(session))
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	fay_walkers_judge(session);
	return 0;
}

int fay_session_skip(struct fay_session *session, struct fay_point *point, const char *reason)
{
	struct fay_skipped_point *grown =
		realloc(session->skipped, (session->skipped_count + 1) * sizeof(*grown));

	point->usable = false;
	if (point->hook == FAY_HOOK_MODULES)
		snprintf(session->unhooked, sizeof(session->unhooked), "%.60s %.130s", point->function.name, reason);
	if (!grown)
		return -1;
	session->skipped = grown;
	grown += session->skipped_count++;
	snprintf(grown->function, sizeof(grown->function), "%.100s!%.150s", point->function.module,
		 point->function.name);
	snprintf(grown->reason, sizeof(grown->reason), "%s", reason);
	return 0;
}

/* Reads what there is of [address, address + size): a function may end at its mapping's end. */
static size_t read_some(int memory, uint64_t address, uint8_t *to, size_t size)
{
	ssize_t got = pread(memory, to, size, (off_t)address);

	if (got < 0 && size > BODY_TAIL)
		got = pread(memory, to, size - BODY_TAIL, (off_t)address);
	return got < 0 ? 0 : (size_t)got;
}

/* The furthest that displaced instructions can reach from a site. */
#define DISPLACED_REACH 19u

/* Another trace's patch in the same function so close that one would displace the other's jump. Jumps back stay in their places, all of them. */
static bool other_patch_near(const struct fay_zones *present, const struct fay_point *point, enum fay_patch_kind kind)
{
	uint64_t start = point->function.address - point->offset, end = point->function.address + point->function.size;
	uint64_t low = point->site > start + DISPLACED_REACH ? point->site - DISPLACED_REACH + 1 : start;

	for (size_t i = 0; i < present->count; i++) {
		const struct fay_zone *zone = &present->items[i];

		for (uint32_t k = fay_zone_first_at(zone, low); k < zone->header.patch_count; k++) {
			const struct fay_zone_patch *patch = &zone->patches[zone->by_site[k]];

			if (patch->site >= end || patch->site >= point->site + DISPLACED_REACH)
				break;
			if (patch->site != point->site && !patch->removed && !(kind == FAY_PATCH_BACK && patch->kind == FAY_PATCH_BACK))
				return true;
		}
	}
	return false;
}

size_t fay_read_program(const struct fay_zones *present, int memory, uint64_t address, uint8_t *body, size_t size)
{
	size_t got = read_some(memory, address, body, size);

	for (size_t i = 0; i < present->count; i++) {
		const struct fay_zone *zone = &present->items[i];

		for (uint32_t k = fay_zone_first_at(zone, address); k < zone->header.patch_count; k++) {
			uint64_t at = zone->patches[zone->by_site[k]].site - address;

			if (at >= got || got - at < FAY_JUMP_BYTES)
				break;
			fay_zones_uncover(present, address + at, body + at);
		}
	}
	return got;
}

/* With the trampolines of two sessions on one site, both or none begin with instructions of the program, and then the same ones. */
static bool link_plan(struct fay_point *point, const struct fay_zones *present, char reason[FAY_REASON_MAX])
{
	const struct fay_zone_patch *patch;

	point->linked = memcmp(point->before, point->program, point->before_size) != 0;
	point->lower_return_count = 0;
	if (!point->linked)
		return true;
	patch = fay_zones_patch_at(present, point->site, point->before);
	if (!patch) { /* patched between two looks: installing will see that, and all is planned anew */
		memcpy(point->before, point->program, point->before_size);
		point->linked = false;
		return true;
	}
	if (patch->back != point->back) {
		snprintf(reason, FAY_REASON_MAX, "has been patched by another trace, for another place");
		return false;
	}
	point->lower = patch->back ? patch->inner : patch->trampoline;
	point->lower_return_count = fay_zones_lower_returns(present, point->site, point->before, point->lower_returns, FAY_WATCHING_SESSIONS);
	return true;
}

/* At the place itself, or, for a marker, before it. */
static bool place_jump(struct fay_point *point, const uint8_t *body, size_t size, size_t tail, char reason[FAY_REASON_MAX])
{
	uint64_t start = point->function.address - point->offset;
	size_t site;

	if (fay_patchable_at(body, size, tail, start, point->offset, reason))
		return true;
	if (!point->marker || !fay_patchable_before(body, size, start, point->offset, &site))
		return false;
	point->back = (unsigned)(point->offset - site);
	return true;
}

static bool inside_plan(struct fay_point *point, const struct fay_zones *present, int memory, uint8_t *body,
			char reason[FAY_REASON_MAX])
{
	uint64_t start = point->function.address - point->offset;
	size_t size = point->offset + point->function.size, got, at;

	if (point->marker && *point->marker->reason) {
		snprintf(reason, FAY_REASON_MAX, "%s", point->marker->reason);
		return false;
	}
	if (point->function.size == 0 || point->offset > BODY_MAX || size > BODY_MAX) {
		snprintf(reason, FAY_REASON_MAX, "has no byte +%#lx, or is longer than %u bytes", (unsigned long)point->offset, BODY_MAX);
		return false;
	}
	point->back = 0;
	got = fay_read_program(present, memory, start, body, size + BODY_TAIL);
	if (got < size) {
		snprintf(reason, FAY_REASON_MAX, "is not readable in the process");
		return false;
	}
	if (!place_jump(point, body, size, got - size, reason))
		return false;
	at = point->offset - point->back;
	point->site = start + at;
	point->before_size = got - at < FAY_DISPLACED_MAX ? (unsigned)(got - at) : FAY_DISPLACED_MAX;
	if (pread(memory, point->before, point->before_size, (off_t)point->site) != (ssize_t)point->before_size) {
		snprintf(reason, FAY_REASON_MAX, "is not readable in the process");
		return false;
	}
	memcpy(point->program, body + at, point->before_size);
	return link_plan(point, present, reason);
}

/* Notes the jumps back to a point's function that have to be led elsewhere. */
static bool note_backs(struct fay_session *session, const struct fay_zones *present, int memory, struct fay_point *point, const struct fay_backs *backs,
		       char reason[FAY_REASON_MAX])
{
	for (unsigned i = 0; i < backs->count; i++) {
		struct fay_point_back back = { .point = (size_t)(point - session->points),
					       .patch = { .site = point->function.address + backs->at[i], .kind = FAY_PATCH_BACK } };
		struct fay_point there = { .function = point->function, .site = back.patch.site };

		if (session->back_count == session->back_room) {
			size_t room = session->back_room ? 2 * session->back_room : 64;
			struct fay_point_back *grown = realloc(session->backs, room * sizeof(*grown));

			if (!grown)
				return snprintf(reason, FAY_REASON_MAX, "needs more memory than there is") < 0;
			session->backs = grown;
			session->back_room = room;
		}
		if (pread(memory, back.patch.original, FAY_JUMP_BYTES, (off_t)back.patch.site) != FAY_JUMP_BYTES)
			return snprintf(reason, FAY_REASON_MAX, "is not readable in the process") < 0;
		if (other_patch_near(present, &there, FAY_PATCH_BACK))
			return snprintf(reason, FAY_REASON_MAX, "has a loop back to its first instruction, too close to another trace's patch") < 0;
		session->backs[session->back_count++] = back;
	}
	return true;
}

/* Does a place inside a function lie where a jump back to its start is led elsewhere? */
static bool at_back(const struct fay_session *session, const struct fay_point *point)
{
	uint64_t start = point->function.address - point->offset;

	for (size_t i = session->back_count; i-- > 0 && session->points[session->backs[i].point].function.address >= start;) {
		uint64_t back = session->backs[i].patch.site;

		if (back + DISPLACED_REACH > point->site && point->site + DISPLACED_REACH > back)
			return true;
	}
	return false;
}

/* Of a point that is planned: where its jump would be. */
static bool given_up(const struct fay_session *session, const struct fay_point *point, char reason[FAY_REASON_MAX])
{
	for (size_t i = 0; i < session->given_up_count; i++)
		if (session->given_up[i] == point->site)
			return snprintf(reason, FAY_REASON_MAX, "is where some thread's stack always goes on, within its first instructions") > 0;
	return false;
}

static bool point_plan(struct fay_session *session, struct fay_point *point, const struct fay_zones *present, int memory, uint8_t *body,
		       char reason[FAY_REASON_MAX])
{
	struct fay_backs backs;
	size_t size = point->function.size, got, site = 0;
	static const uint8_t endbr64[4] = { 0xf3, 0x0f, 0x1e, 0xfa };

	if (fay_rendezvous_unsettled(session, point, reason))
		return false;
	if (point->untraced)
		return snprintf(reason, FAY_REASON_MAX, "%s", point->untraced) < 0;
	if (point->inside && at_back(session, point))
		return snprintf(reason, FAY_REASON_MAX, "is traced at its entry, and +%#lx is too close to a jump back there", (unsigned long)point->offset) < 0;
	if (point->inside)
		return inside_plan(point, present, memory, body, reason);
	if (fay_unpatchable(point->function.name, reason))
		return false;
	if (point->argless)
		return snprintf(reason, FAY_REASON_MAX, "%s", point->argless) < 0;
	if (point->watched && point->unwatched)
		return snprintf(reason, FAY_REASON_MAX, "%s", point->unwatched) < 0;
	if (point->careful && point->watched) {
		snprintf(reason, FAY_REASON_MAX, "%s; its return cannot be watched",
			 point->function.unnamed ? "has no symbol: whether it is called or jumped to is not known" : "is not entered by a call (part of a function)");
		return false;
	}
	if (size > BODY_MAX) {
		snprintf(reason, FAY_REASON_MAX, "is %zu bytes long; functions over %u are not searched for jumps to their start", size, BODY_MAX);
		return false;
	}
	got = fay_read_program(present, memory, point->function.address, body, size + BODY_TAIL);
	if (got < size || got == 0) {
		snprintf(reason, FAY_REASON_MAX, "is not readable in the process");
		return false;
	}
	if (got >= 4 && !memcmp(body, endbr64, 4))
		site = 4;
	if (session->jumps_followed && point->probe_count && !site)
		return snprintf(reason, FAY_REASON_MAX, "begins without endbr64 in a program with PyPy, whose compiler follows a jump at a function's first byte and would call a trampoline that is gone") < 0;
	point->site = point->function.address + site;
	point->before_size = got - site < FAY_DISPLACED_MAX ? (unsigned)(got - site) : FAY_DISPLACED_MAX;
	memcpy(point->program, body + site, point->before_size);
	memcpy(point->before, body + site, point->before_size);
	if (present->count && pread(memory, point->before, point->before_size, (off_t)point->site) != (ssize_t)point->before_size)
		return snprintf(reason, FAY_REASON_MAX, "is not readable in the process") < 0;
	if (!link_plan(point, present, reason))
		return false;
	if (!fay_patchable(body, size, got - size, point->function.address, &site, &backs, reason))
		return false;
	if (point->watched && fay_unwatchable(point->function.name, reason))
		return false;
	return note_backs(session, present, memory, point, &backs, reason);
}

/* Points are sorted. Is this one far enough behind the one before it in the same function, so that neither displaces the other's jump? */
static bool apart(const struct fay_session *session, size_t index, char reason[FAY_REASON_MAX])
{
	const struct fay_point *point = &session->points[index], *before = NULL;

	for (size_t i = index; i-- > 0 && !before;)
		if (session->points[i].usable)
			before = &session->points[i];
	if (!before || before->function.address - before->offset != point->function.address - point->offset ||
	    before->site + DISPLACED_REACH <= point->site)
		return true;
	snprintf(reason, FAY_REASON_MAX, "is traced at +%#lx, which is too close for +%#lx", (unsigned long)before->offset, (unsigned long)point->offset);
	return false;
}

int fay_points_plan(struct fay_session *session, const struct fay_zones *present, int memory,
		    struct fay_error *error)
{
	uint8_t *body = malloc(BODY_MAX + BODY_TAIL);

	if (!body)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	for (size_t i = 0; i < session->point_count; i++) {
		struct fay_point *point = &session->points[i];
		char reason[FAY_REASON_MAX];

		point->usable = true;
		if (point->hook == FAY_HOOK_MODULES)
			*session->unhooked = 0;
		if (point_plan(session, point, present, memory, body, reason) && !given_up(session, point, reason) && apart(session, i, reason)) {
			if (!other_patch_near(present, point, FAY_PATCH_PLACE))
				continue;
			snprintf(reason, FAY_REASON_MAX, "has been patched by another trace too close to +%#lx", (unsigned long)point->offset);
		}
		if (point->hook == FAY_HOOK_FIND_OBJECT || point->hook == FAY_HOOK_FIND_FDE) {
			free(body);
			return fay_error_set(error, FAY_E_REFUSED, "process %d: calls cannot be watched until they return: exceptions could not pass, for %s!%s %s", (int)session->pid, point->function.module, point->function.name, reason);
		}
		if (fay_session_skip(session, point, reason)) {
			free(body);
			return fay_error_set(error, FAY_E_LIMIT, "out of memory");
		}
	}
	free(body);
	return fay_inbound_search(session, present, memory, error);
}

void fay_points_deinit(struct fay_session *session)
{
	for (size_t i = 0; i < session->point_count; i++) {
		free(session->points[i].probes);
		free(session->points[i].marker);
	}
	free(session->points);
	free(session->backs);
	session->backs = NULL;
	session->points = NULL;
	session->point_count = 0;
}
