/* SPDX-License-Identifier: MIT */
/* What an ELF file tells of addresses in its code that are entered by other ways than branches: see
 * struct fay_flow_program. */
#ifndef FAY_LOADER_FLOW_TAKEN_H
#define FAY_LOADER_FLOW_TAKEN_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "flow.h"

struct fay_taken;

/* Reads relocations, data and tables of handlers. NULL: out of memory, or the file is malformed in
 * a way that leaves doubt. */
struct fay_taken *fay_taken_create(Elf *elf);
void fay_taken_destroy(struct fay_taken *taken); /* NULL is allowed */
/* Whether faults become exceptions that are thrown where they happened. */
bool fay_taken_faults(const struct fay_taken *taken);
/* Those of a kind in [start, end), sorted, as virtual addresses in the file. Owned by `taken`;
 * never NULL. */
const uint64_t *fay_taken_in(const struct fay_taken *taken, enum fay_taken_kind kind,
			     uint64_t start, uint64_t end, size_t *count);

#endif
