/* SPDX-License-Identifier: MIT */
/* What is known of one function (function.c), or of the places of one line (line.c). */
#ifndef FAY_QUERY_DEBUG_FUNCTION_PRIVATE_H
#define FAY_QUERY_DEBUG_FUNCTION_PRIVATE_H

#include "debug.h"
#include "fay/loader.h"
#include "scopes_private.h"
#include "types_private.h"

#define FAY_DEBUG_EDITIONS_MAX 64u /* of the types, each with one more structure looked up */

struct fay_debug_function {
	struct fay_debug_file file;
	Dwarf_Die unit, die;
	uint64_t entry; /* as the debug information counts */
	struct fay_debug_types types;
	const struct btf *editions[FAY_DEBUG_EDITIONS_MAX];
	uint32_t edition_count;
	uint32_t result;
	struct fay_debug_argument arguments[FAY_DEBUG_ARGUMENTS_MAX];
	uint32_t argument_count;
	bool own_convention; /* the compiler may hand over arguments otherwise than the ABI says */
	struct fay_debug_places places; /* of a line */
	struct fay_debug_scopes scopes; /* of one of these */
};

/* The types as they are now become the next edition. */
int fay_debug_next_edition(struct fay_debug_function *function, struct fay_error *error);

#endif
