/* SPDX-License-Identifier: MIT */
/* /proc/PID/maps as a table, and holes in it. */
#ifndef FAY_LOADER_MAPS_H
#define FAY_LOADER_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "fay/error.h"

struct fay_map {
	uint64_t start, end;
	uint64_t device, inode;
	char permissions[5];
	char name[80]; /* truncated; "" anonymous */
};
struct fay_maps {
	struct fay_map *items;
	size_t count;
};

int fay_maps_read(pid_t pid, struct fay_maps *maps, struct fay_error *error);
void fay_maps_deinit(struct fay_maps *maps);
const struct fay_map *fay_maps_find(const struct fay_maps *maps, uint64_t address);
/* A free range of `size` bytes that reaches [low, high) by rel32 in both directions; 0: none. low
 * == high == 0: anywhere. */
uint64_t fay_maps_hole(const struct fay_maps *maps, uint64_t size, uint64_t low, uint64_t high);

#endif
