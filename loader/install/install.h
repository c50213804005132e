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
	/* the sites by address, site_count of them: likewise */
	uint32_t *sites;
	size_t site_count;
	bool on_top; /* some go on in another session's part */
	/* sites inside of which some stack had a signal frame, or a word that looks like one, in
	 * this attempt */
	uint64_t held[FAY_HELD_MAX];
	size_t held_count;
	/* points of which alone threads are moved, coming_count of them, ascending; NULL: of all.
	 * (What is in place has its jumps, and may stand in them; what is out stays so, or its
	 * module is gone and another one there.) */
	const size_t *coming;
	size_t coming_count;
	/* mapped in the process */
	bool table_mapped, shm_mapped, records_mapped;
	bool locks; /* the program has all that is mapped made present, or may have */
	/* the session's state, mapped here by fay_owner_map() */
	struct fay_shm_control *shm;
	bool owner_locked;
	int users; /* tells who has the first zone's code: fay_users_any(); -1: nobody does */
};

/* What can be done before the process is stopped. */
int fay_install_prepare(struct fay_install *install, struct fay_error *error);
/* What was prepared is not needed any more. */
void fay_install_forget(struct fay_install *install);
/* With the process stopped. -1: something changed since the plan was made; plan again. */
int fay_install_stopped(struct fay_install *install, struct fay_stop *stop,
			struct fay_error *error);
/* again.c: patches places of the session again that were taken out, all of these points or none;
 * FAY_E_REFUSED: they stay out. */
int fay_install_again(struct fay_install *install, struct fay_stop *stop, const size_t *points,
		      size_t count, struct fay_error *error);
/* Whether it may, if it is taken out. */
bool fay_install_comes_back(const struct fay_plan *plan, const struct fay_point *point);

#endif
