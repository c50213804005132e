/* SPDX-License-Identifier: MIT */
/*
 * Modules that a traced program has unloaded. Their patches went with them. The session's records of these are marked before something else lies at their addresses, where that
 * is noticed in time: a place whose bytes are neither the jump nor what was there before it would keep the session's memory in the process.
 */
#include "session.h"

#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "target.h"

#define PAGE 4096u

/* Whether another file lies at the place now, none, or the same one anew: without our jump. In doubt it is there. */
static bool is_unloaded(const struct fay_session *session, const struct fay_maps *maps, const struct fay_point *point)
{
	const struct fay_map *map = fay_maps_find(maps, point->site);
	const struct fay_module *module = fay_target_module_at(session->target, point->site);
	uint8_t now[FAY_JUMP_BYTES];

	if (!map || (module && (map->inode != module->inode || makedev((unsigned)(map->device >> 32), (unsigned)map->device) != module->device)))
		return true;
	return pread(session->memory, now, sizeof(now), (off_t)point->site) == (ssize_t)sizeof(now) && !memcmp(now, point->program, sizeof(now));
}

/* The numbers of the points whose modules are gone. One look serves all points on a page. */
static size_t find_unloaded(const struct fay_session *session, const struct fay_maps *maps, size_t *points)
{
	uint64_t page = UINT64_MAX;
	bool gone = false;
	size_t count = 0;

	for (size_t i = 0; i < session->point_count; i++) {
		const struct fay_point *point = &session->points[i];

		if (!point->usable || !point->probe_count || point->hook || point->taken_out || point->unloaded)
			continue;
		if (point->site / PAGE != page)
			gone = is_unloaded(session, maps, point);
		page = point->site / PAGE;
		if (gone)
			points[count++] = i;
	}
	return count;
}

bool fay_session_has_points(const struct fay_session *session)
{
	for (size_t i = 0; i < session->point_count; i++)
		if (session->points[i].usable && (session->points[i].hook == FAY_HOOK_MODULES || (session->points[i].probe_count && !session->points[i].unloaded)))
			return true;
	return false;
}

int fay_session_drop_unloaded(struct fay_session *session, struct fay_error *error)
{
	size_t *points = calloc(session->point_count + 1, sizeof(*points)), count;
	struct fay_maps maps;
	bool left;
	int code;

	if (!points)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	code = fay_maps_read(session->pid, &maps, error);
	if (code) {
		free(points);
		return code;
	}
	count = find_unloaded(session, &maps, points);
	fay_maps_deinit(&maps);
	if (count)
		code = fay_session_remove_points(session, points, count, &left, error);
	for (size_t i = 0; i < count && !code; i++)
		session->points[points[i]].unloaded = true;
	free(points);
	return code;
}
