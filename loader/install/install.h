/* SPDX-License-Identifier: MIT */
/*
 * Installing a plan in a stopped process: all of it, or nothing and the process is as it was.
 */
#ifndef FAY_LOADER_INSTALL_H
#define FAY_LOADER_INSTALL_H

#include "loader/plan/plan.h"
#include "loader/stop/stop.h"

struct fay_install {
	struct fay_plan *plan;
	struct fay_text text; /* the pages with sites, while attaching */
	/* sites inside of which some stack had a signal frame, or a word that looks like one, in
	 * this attempt */
	uint64_t held[FAY_HELD_MAX];
	size_t held_count;
	/* mapped in the process */
	bool table_mapped, shm_mapped, records_mapped;
	/* the session's state, mapped here by fay_owner_map() */
	struct fay_shm_control *shm;
	bool owner_locked;
};

/* What can be done before the process is stopped. */
int fay_install_prepare(struct fay_install *install, struct fay_error *error);
/* With the process stopped. -1: something changed since the plan was made; plan again. */
int fay_install_stopped(struct fay_install *install, struct fay_stop *stop,
			struct fay_error *error);

#endif
