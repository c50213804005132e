/* SPDX-License-Identifier: MIT */
#ifndef FAY_LOADER_ZONE_PRIVATE_H
#define FAY_LOADER_ZONE_PRIVATE_H

#include "loader/stop/stop.h"
#include "zone.h"

/* chain.c: takes the jump away, wherever it is, here: see fay_changes_write(). True if nothing
 * leads to this patch any more. */
bool fay_patch_take_out(struct fay_text *text, struct fay_zones *zones, uint64_t session,
			const struct fay_zone_patch *patch);
/* What was changed here goes to the process. */
bool fay_changes_write(struct fay_stop *stop, struct fay_zones *zones, struct fay_text *text);

#endif
