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

#endif
