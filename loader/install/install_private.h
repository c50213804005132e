/* SPDX-License-Identifier: MIT */
#ifndef FAY_LOADER_INSTALL_PRIVATE_H
#define FAY_LOADER_INSTALL_PRIVATE_H

#include "install.h"

/* install_memory.c: maps what the plan needs in the stopped process, and checks that the image
 * there is the verified one; unmaps what was mapped. */
int fay_install_memory(struct fay_install *install, struct fay_stop *stop, struct fay_error *error);
/* false: something stays mapped */
bool fay_install_undo(struct fay_install *install, struct fay_stop *stop);

/* install_stacks.c: writes into the zones' bytes, before they are mapped, where stacks are. */
void fay_install_stacks(struct fay_install *install, const struct fay_stop *stop);

/* install_records.c: of functions that are out; false: there are too many tables, or they cannot be
 * read and written. */
bool fay_install_drop_records(const struct fay_install *install, struct fay_stop *stop);

/* install.c. The program has not begun to write to its code. */
bool fay_install_none_writable(struct fay_install *install, struct fay_stop *stop);
/* No signal frame is inside bytes that are overwritten; else `held` says where. */
bool fay_install_none_interrupted(struct fay_install *install, struct fay_stop *stop);
/*
 * Moves threads that are inside a displaced instruction sequence to its copy, or only says if that
 * can be done. Nothing can fail after the move, and no system call is run in the target: those put
 * the registers back, and fay_install_undo() would unmap the copy under them.
 */
bool fay_install_move_threads(const struct fay_install *install, struct fay_stop *stop,
			      bool really);
/* Our bytes go, somebody else's (a uprobe's int3, set meanwhile) stay. */
void fay_install_put_back(const struct fay_stop *stop, const struct fay_zone_patch *patch,
			  const uint8_t before[FAY_JUMP_BYTES]);

#endif
