/* SPDX-License-Identifier: MIT */
/*
 * Types of a program's debug information (DWARF) as the kernel describes its own (BTF, fay/bpf.h),
 * so that everything that follows types by name works on both.
 *
 * What BTF cannot say is left out: members of C++ classes that are no data, base classes whose
 * place is computed (virtual ones), Rust's enumerations with data. A base class is an unnamed
 * member: its members are found by their own names. References are pointers.
 */
#ifndef FAY_QUERY_DEBUG_TYPES_PRIVATE_H
#define FAY_QUERY_DEBUG_TYPES_PRIVATE_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fay/bpf.h"

struct fay_debug_entry {
	Dwarf_Die die;
	/* of an array: which one; the element of dimension n is dimension n + 1 */
	uint32_t dimension;
};

struct fay_debug_types {
	struct btf *btf;                 /* being written */
	struct fay_debug_entry *entries; /* by id - 1: what each type stands for */
	size_t count, room, described;   /* described: of `entries`, in `btf` already */
	uint32_t *places;                /* id by entry: open addressing, 0 free; a power of two */
	size_t place_count;
	bool failed; /* no memory, or more than FAY_DEBUG_TYPES_MAX */
};

#define FAY_DEBUG_TYPES_MAX (1u << 20)

void fay_debug_types_deinit(struct fay_debug_types *types);
/* The type that a DIE's DW_AT_type names, by its number; 0: none. It is described with all that it
 * refers to when fay_debug_types_btf() is called next. */
uint32_t fay_debug_types_of(struct fay_debug_types *types, Dwarf_Die *die);
/* Says that a type of which only the name was known, BTF_KIND_FWD, is the one that `die` defines.
 * */
void fay_debug_types_complete(struct fay_debug_types *types, uint32_t id, Dwarf_Die *die);
/* All types so far. */
int fay_debug_types_btf(struct fay_debug_types *types, const struct btf **btf,
			struct fay_error *error);

#endif
