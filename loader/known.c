/* SPDX-License-Identifier: MIT */
/*
 * Modules of a process that were looked at, by where their code is mapped and what file it is: a
 * program that loads a hundred modules waits at each of them, and only the new one's symbols are
 * read. The first of the sessions that live side by side keeps what those after it have looked at
 * without finding anything.
 */
#include "session.h"

#include <stdlib.h>

#include "target.h"

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
	for (size_t k = 0; k < session->options.beside_count; k++)
		if (is_known(session->options.beside[k], range))
			return true;
	return false;
}

static struct fay_known known_of(const struct fay_module *module, size_t range)
{
	return (struct fay_known){ module->ranges[range].start, module->device, module->inode };
}

void fay_known_mark(const struct fay_session *session)
{
	struct fay_target *target = session->target;

	for (size_t i = 0; i < target->module_count; i++) {
		struct fay_module *module = &target->modules[i];

		module->known = session->options.beside_count > 0;
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
