/* SPDX-License-Identifier: MIT */
/*
 * Modules of a process that were looked at, by where their code is mapped and what file it is: a
 * program that loads a hundred modules waits at each of them, and only the new one's symbols are
 * read. The first of the sessions that live side by side keeps what those after it have looked at
 * without finding anything.
 */
#include "session.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/names/target.h"

static bool is_known(const struct fay_session *session, const struct fay_known *range)
{
	for (size_t i = 0; i < session->known_count; i++)
		if (session->known[i].start == range->start &&
		    session->known[i].device == range->device &&
		    session->known[i].inode == range->inode)
			return true;
	return false;
}

static bool is_known_beside(const struct fay_session *session, const struct fay_known *range)
{
	for (size_t k = 0; k < session->plan.options.beside_count; k++)
		if (is_known(session->plan.options.beside[k], range))
			return true;
	return false;
}

static struct fay_known known_of(const struct fay_module *module, size_t range)
{
	return (struct fay_known){ module->ranges[range].start, module->device, module->inode };
}

void fay_known_mark(const struct fay_session *session)
{
	struct fay_target *target = session->plan.target;

	for (size_t i = 0; i < target->module_count; i++) {
		struct fay_module *module = &target->modules[i];

		module->known = session->plan.options.beside_count > 0;
		for (size_t k = 0; k < module->range_count && module->known; k++) {
			struct fay_known range = known_of(module, k);

			module->known = is_known_beside(session, &range);
		}
	}
}

void fay_known_remember(struct fay_session *session, const struct fay_target *target)
{
	for (size_t i = 0; i < target->module_count; i++)
		for (size_t k = 0; k < target->modules[i].range_count && !target->modules[i].known;
		     k++) {
			struct fay_known range = known_of(&target->modules[i], k), *grown;

			if (is_known(session, &range))
				continue;
			grown = realloc(session->known,
					(session->known_count + 1) * sizeof(*grown));
			if (!grown)
				return; /* it is looked at again */
			session->known = grown;
			session->known[session->known_count++] = range;
		}
}

void fay_known_forget(struct fay_session *session, const struct fay_maps *maps, uint64_t site)
{
	const struct fay_map *of_site = site ? fay_maps_find(maps, site) : NULL;
	size_t kept = 0;

	for (size_t i = 0; i < session->known_count; i++) {
		const struct fay_map *map = fay_maps_find(maps, session->known[i].start);

		if (map && map != of_site && map->start == session->known[i].start &&
		    map->inode == session->known[i].inode)
			session->known[kept++] = session->known[i];
	}
	session->known_count = kept;
}

static bool is_same_function(const struct fay_function *one, const struct fay_function *other)
{
	return one->address == other->address && !strcmp(one->name, other->name) &&
	       !strcmp(one->path, other->path);
}

/*
 * Whether another session of ours has its jump at this function now, maybe under another trace's,
 * has taken it out for good, or has found that it cannot be patched, and said so. (A module that
 * was unloaded and loaded again lies there without a jump.)
 */
static bool is_left_to(const struct fay_session *other, const struct fay_point *point,
		       const struct fay_zones *present)
{
	for (size_t i = 0; i < other->plan.point_count; i++) {
		const struct fay_point *theirs = &other->plan.points[i];
		const struct fay_site *site;
		uint8_t now[FAY_JUMP_BYTES], jump[FAY_JUMP_BYTES];

		if (!theirs->probe_count)
			continue;
		if (!theirs->usable && !theirs->unloaded &&
		    is_same_function(&theirs->function, &point->function))
			return true;
		if (!theirs->usable || theirs->unloaded ||
		    theirs->function.address != point->function.address)
			continue;
		if (theirs->taken_out)
			return true;
		site = &other->plan.sites[theirs->first_site];
		fay_patch_encode(&site->patch, jump);
		return pread(other->memory, now, site->patch.size, (off_t)site->site) ==
			       (ssize_t)site->patch.size &&
		       fay_zones_cover(present, site->site, now, jump, site->patch.size);
	}
	return false;
}

/* Leaves to other sessions what they have; hooks stay, each session needs its own. */
int fay_session_leave_to_others(struct fay_session *session, struct fay_error *error)
{
	struct fay_zones present = { 0 };
	size_t kept = 0, wanted = 0;
	struct fay_maps maps;
	int code = 0;

	for (size_t k = 0; k < session->plan.options.beside_count && !code; k++)
		if (!fay_session_own(session->plan.options.beside[k]))
			code = fay_error_set(error, FAY_E_LIMIT, "out of memory");
	if (!code)
		code = fay_maps_read(session->plan.pid, &maps, error);
	if (code)
		return code;
	code = fay_zones_read(&maps, session->plan.options.beside[0]->memory, &present, error);
	fay_maps_deinit(&maps);
	if (code)
		return code;
	for (size_t i = 0; i < session->plan.point_count; i++) {
		struct fay_point *point = &session->plan.points[i];

		for (size_t k = 0; k < session->plan.options.beside_count && point->probe_count;
		     k++)
			if (is_left_to(session->plan.options.beside[k], point, &present))
				point->probe_count = 0;
		if (!point->probe_count && !point->hook && !point->helper) {
			fay_point_deinit(point);
			continue;
		}
		wanted += point->probe_count != 0;
		session->plan.points[kept++] = *point;
	}
	session->plan.point_count = session->plan.folded_count = kept;
	fay_zones_deinit(&present);
	return wanted ? 0
		      : fay_error_set(error, FAY_E_USAGE, "process %d: nothing is left to trace",
				      (int)session->plan.pid);
}
