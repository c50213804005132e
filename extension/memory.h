/* SPDX-License-Identifier: MIT */
/* What memory of this process can be accessed. */
#ifndef FAY_EXTENSION_MEMORY_H
#define FAY_EXTENSION_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* Whether all bytes from `start` to `end` are mapped, to be read, and written if `write` is set,
 * as /proc/self/maps says (proc_pid_maps(5)). False too where that cannot be read. */
bool extension_mapped(uint64_t start, uint64_t end, bool write);

#endif
