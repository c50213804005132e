/* SPDX-License-Identifier: MIT */
/*
 * Modules that a traced program has unloaded. Their patches went with them. The session's records
 * of these are marked before something else lies at their addresses, where that is noticed in time:
 * a place whose bytes are neither the jump nor what was there before it would keep the session's
 * memory in the process.
 */
#include "session.h"

#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "loader/names/target.h"

#define PAGE 4096u

static bool is_others(const struct fay_session *session, const struct fay_map *map,
		      const struct fay_site *site)
{
	const struct fay_module *module = fay_target_module_at(session->plan.target, site->site);

	return module &&
	       (map->inode != module->inode ||
		makedev((unsigned)(map->device >> 32), (unsigned)map->device) != module->device);
}

/* Whether another file lies at the place now, none, or the same one anew: without our jump. In
 * doubt it is there. */
static bool is_unloaded(const struct fay_session *session, const struct fay_maps *maps,
			const struct fay_site *site)
{
	const struct fay_map *map = fay_maps_find(maps, site->site);
	uint8_t now[FAY_JUMP_BYTES], jump[FAY_JUMP_BYTES];

	fay_patch_encode(&site->patch, jump);
	if (!map || pread(session->memory, now, site->patch.size, (off_t)site->site) !=
			    (ssize_t)site->patch.size)
		return !map;
	if (!memcmp(now, jump, site->patch.size))
		return false;
	return !memcmp(now, fay_site_program(&session->plan, site), site->patch.size) ||
	       is_others(session, map, site);
}

/* Of a place that was taken out: no jump tells. In the same file anew it may come back. */
static bool is_unloaded_while_out(const struct fay_session *session, const struct fay_maps *maps,
				  const struct fay_site *site)
{
	const struct fay_map *map = fay_maps_find(maps, site->site);

	return !map || is_others(session, map, site);
}

/* The numbers of the points whose modules are gone. One look serves all points on a page. */
static size_t find_unloaded(const struct fay_session *session, const struct fay_maps *maps,
			    size_t *points)
{
	uint64_t page = UINT64_MAX;
	bool gone = false;
	size_t count = 0;

	for (size_t i = 0; i < session->plan.point_count; i++) {
		const struct fay_point *point = &session->plan.points[i];
		const struct fay_site *site = &session->plan.sites[point->first_site];

		if (!point->usable || point->hook || point->unloaded)
			continue;
		if (point->taken_out) {
			if (is_unloaded_while_out(session, maps, site))
				points[count++] = i;
			continue;
		}
		if (site->site / PAGE != page)
			gone = is_unloaded(session, maps, site);
		page = site->site / PAGE;
		if (gone)
			points[count++] = i;
	}
	return count;
}

bool fay_session_has_points(const struct fay_session *session)
{
	if (session->plan.had_points && !session->plan.points)
		return true; /* none of them was unloaded */
	for (size_t i = 0; i < session->plan.point_count; i++)
		if (session->plan.points[i].usable &&
		    (session->plan.points[i].hook == FAY_HOOK_MODULES ||
		     (session->plan.points[i].probe_count && !session->plan.points[i].unloaded)))
			return true;
	return false;
}

/* What lies at the session's points now was not looked at, whoever knew the module that was there
 * before. */
static void forget_known(const struct fay_session *session, const struct fay_maps *maps,
			 const size_t *points, size_t count, struct fay_session *const *beside,
			 size_t beside_count)
{
	const struct fay_map *last = NULL;

	for (size_t i = 0; i < count; i++) {
		const struct fay_map *map = fay_maps_find(
			maps, session->plan.sites[session->plan.points[points[i]].first_site].site);

		for (size_t k = 0; map && map != last && k < beside_count; k++)
			fay_known_forget(
				beside[k], maps,
				session->plan.sites[session->plan.points[points[i]].first_site]
					.site);
		last = map;
	}
}

static int drop_unloaded(struct fay_session *session, const struct fay_maps *maps,
			 struct fay_session *const *beside, size_t beside_count,
			 struct fay_error *error)
{
	bool own = fay_session_own(session), left;
	size_t *points = calloc(session->plan.point_count + 1, sizeof(*points)), count;
	int code = 0;

	if (!points || !own) {
		free(points);
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	}
	count = find_unloaded(session, maps, points);
	if (count)
		code = fay_session_remove_points(session, points, count, &left, error);
	for (size_t i = 0; i < count && !code; i++)
		session->plan.points[points[i]].unloaded = true;
	forget_known(session, maps, points, count, beside, beside_count);
	free(points);
	return code;
}

int fay_sessions_drop_unloaded(struct fay_session *const *sessions, size_t count,
			       struct fay_error *error)
{
	struct fay_maps maps;
	int code = count ? fay_maps_read(sessions[0]->plan.pid, &maps, error) : 0;

	if (code || !count)
		return code;
	for (size_t i = 0; i < count && !code; i++) {
		fay_known_forget(sessions[i], &maps, 0);
		code = drop_unloaded(sessions[i], &maps, sessions, count, error);
	}
	fay_maps_deinit(&maps);
	return code;
}
