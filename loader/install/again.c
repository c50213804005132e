/* SPDX-License-Identifier: MIT */
/*
 * Places that were taken out of a session come back, with the target stopped from start to end.
 *
 * They do only where all is as it was when they were installed, but that they are out: the
 * session's records of them lie in the target as they were written, the program's bytes are those
 * that were judged, and no other session has, or had, a jump there. Anything else is a refusal, and
 * they stay out. Two kinds of places never come back: markers, whose semaphores others count, too,
 * and those by which calls are left, which must see all of them. Records of calls of what is out
 * are dropped (install_records.c).
 *
 * The records say that the places are in before the jumps are written. If fay or the program dies
 * in between they have the program's bytes, which whoever removes the session finds right.
 */
#include "install_private.h"

#include <stdlib.h>
#include <string.h>

struct again {
	struct fay_install *install;
	struct fay_stop *stop;
	const size_t *points; /* their numbers, ascending */
	size_t count;
	struct fay_text text;
};

bool fay_install_comes_back(const struct fay_plan *plan, const struct fay_point *point)
{
	return !point->unloaded && point->hook == FAY_HOOK_NONE && !point->marker &&
	       !(fay_point_records(plan, point) && point->sweeps);
}

static bool is_chosen(const struct again *again, const struct fay_zone_patch *patch)
{
	const struct fay_plan *plan = again->install->plan;

	for (size_t i = 0; i < again->count; i++) {
		const struct fay_point *point = &plan->points[again->points[i]];

		for (size_t k = 0; k < point->site_count; k++)
			if (plan->sites[point->first_site + k].patch.displaced == patch->displaced)
				return true;
	}
	return false;
}

/* Where the session's record of a patch lies, and whether it is as it was written and out. */
static bool is_out(const struct fay_stop *stop, const struct fay_zone_patch *installed, uint64_t at)
{
	struct fay_zone_patch there;
	uint64_t own =
		installed->kind == FAY_PATCH_PART ? installed->trampoline : installed->displaced;

	if (installed->semaphore || installed->link != own ||
	    fay_stop_read(stop, at, &there, sizeof(there)) || !there.removed)
		return false;
	there.removed = 0;
	return !memcmp(&there, installed, sizeof(there));
}

/* Of all records of the places: that they are out, or what they say of that from now on. */
static bool visit_records(const struct again *again, const uint8_t *removed)
{
	const struct fay_plan *plan = again->install->plan;
	bool done = true;

	for (size_t z = 0; z < plan->zone_count; z++) {
		const struct fay_zone_plan *zone = &plan->zones[z];
		const struct fay_zone_patch *patches =
			(const void *)(zone->data + sizeof(zone->header));

		for (uint32_t i = 0; i < zone->header.patch_count; i++) {
			uint64_t at =
				zone->header.data + sizeof(zone->header) + i * sizeof(*patches);

			if (!is_chosen(again, &patches[i]))
				continue;
			done &= removed ? !fay_stop_write(
						  again->stop,
						  at + offsetof(struct fay_zone_patch, removed),
						  removed, sizeof(*removed))
					: is_out(again->stop, &patches[i], at);
		}
	}
	return done;
}

/* The next of the places' sites that are in use; *point and *site begin at 0. NULL: no more. */
static const struct fay_site *next_site(const struct again *again, size_t *point, size_t *site)
{
	const struct fay_plan *plan = again->install->plan;

	for (; *point < again->count; ++*point, *site = 0) {
		const struct fay_point *of = &plan->points[again->points[*point]];

		while (*site < of->site_count) {
			const struct fay_site *one = &plan->sites[of->first_site + (*site)++];

			if (one->usable)
				return one;
		}
	}
	return NULL;
}

static int read_text(struct again *again, struct fay_error *error)
{
	const struct fay_site *site;
	int code = 0;

	for (size_t p = 0, s = 0; !code && (site = next_site(again, &p, &s));)
		code = fay_text_want(&again->text, site->site, site->size, error);
	if (!code)
		code = fay_text_ready(&again->text, error);
	if (!code)
		fay_text_read(&again->text, again->stop->memory, fay_stop_any(again->stop));
	return code;
}

static bool is_program(const struct again *again)
{
	const struct fay_plan *plan = again->install->plan;
	const struct fay_site *site;

	for (size_t p = 0, s = 0; (site = next_site(again, &p, &s));) {
		const uint8_t *now = fay_text_at(&again->text, site->site, site->size);

		if (!now || memcmp(now, fay_site_program(plan, site), site->size) ||
		    memcmp(fay_site_before(plan, site), fay_site_program(plan, site), site->size))
			return false;
	}
	return true;
}

static bool write_jumps(struct again *again)
{
	const struct fay_site *site;

	for (size_t p = 0, s = 0; (site = next_site(again, &p, &s));) {
		uint8_t jump[FAY_JUMP_BYTES];

		if (site->kind == FAY_SITE_BLOCK)
			continue;
		fay_patch_encode(&site->patch, jump);
		if (!fay_text_change(&again->text, site->site, jump, site->patch.size))
			return false;
	}
	return fay_text_write(&again->text, again->stop->memory) == 0;
}

/* Which pages were written is not known. */
static void undo(struct again *again)
{
	static const uint8_t removed = 1;
	const struct fay_site *site;

	for (size_t p = 0, s = 0; (site = next_site(again, &p, &s));)
		if (site->kind != FAY_SITE_BLOCK)
			fay_install_put_back(again->stop, &site->patch,
					     fay_site_before(again->install->plan, site));
	visit_records(again, &removed);
}

int fay_install_again(struct fay_install *install, struct fay_stop *stop, const size_t *points,
		      size_t count, struct fay_error *error)
{
	static const uint8_t in = 0;
	struct again again = { install, stop, points, count, { 0 } };
	bool may = true, done = false;
	int code;

	for (size_t i = 0; i < count; i++)
		may &= install->plan->points[points[i]].taken_out &&
		       fay_install_comes_back(install->plan, &install->plan->points[points[i]]);
	install->coming = points;
	install->coming_count = count;
	code = may ? read_text(&again, error) : 0;
	may = may && !code && visit_records(&again, NULL) && is_program(&again) &&
	      fay_install_none_writable(install, stop) &&
	      fay_install_none_interrupted(install, stop) &&
	      fay_install_move_threads(install, stop, false);
	if (may) {
		done = fay_install_drop_records(install, stop) && visit_records(&again, &in) &&
		       write_jumps(&again);
		if (done)
			fay_install_move_threads(install, stop, true);
		else
			undo(&again);
	}
	fay_text_deinit(&again.text);
	install->coming = NULL;
	install->coming_count = 0;
	if (code || done)
		return code;
	return fay_error_set(error, FAY_E_REFUSED,
			     "process %d: functions that were left out cannot be traced again: %s",
			     (int)stop->pid,
			     may ? "its code cannot be written"
				 : "something has changed there, or is in use");
}
