/* SPDX-License-Identifier: MIT */
/*
 * Values with types: arguments and results of functions, and what is reached from them by name. The
 * types are the kernel's own (BTF), or a program's debug information in the same form
 * (debug_function.h).
 *
 * A number is a value; a pointer is one, too, its address. One to a structure is followed by name,
 * `sw.next.pid` or `sw->next->pid`, as far as one likes: each pointer on the way is read when the
 * event happens, and what lies behind a null pointer, or cannot be read, is 0 or "". A pointer to
 * characters is a string, an array or a pointer has elements, `a[3]`.
 */
#ifndef FAY_QUERY_CHECK_TYPES_H
#define FAY_QUERY_CHECK_TYPES_H

#include "check.h"

const struct fay_btf *fay_types_btf(const struct fay_types *types);

/* A value of some type: an argument, or what lies `offset` bytes behind an address. */
struct fay_place {
	struct fay_types *types;
	const struct fay_expr *address; /* NULL: the argument number `offset` itself, or `word` */
	const struct fay_expr *word;    /* what a register holds; NULL */
	/* bits: of a bit field that begins at `bit` of the byte there; 0 */
	uint32_t offset, bit, bits;
	const char *name;
};

/* The value of that type there; NULL with the error recorded. */
struct fay_value_node *fay_check_typed_value(struct fay_checked *checked, const struct fay_node *at,
					     const struct fay_place *place, uint32_t type);
/* A function's result, in a register: of a type that is not understood, all of it. NULL with the
 * error recorded. */
struct fay_value_node *fay_check_typed_result(struct fay_checked *checked,
					      const struct fay_node *at, struct fay_types *types,
					      const struct fay_expr *word, uint32_t type);
/* Whether the value is a structure, or points to one, or has elements. */
bool fay_check_has_members(const struct fay_value_node *value);
/* node->name of such a value. */
struct fay_value_node *fay_check_typed_member(struct fay_checked *checked,
					      const struct fay_node *node,
					      const struct fay_value_node *object);
/* object[INDEX] */
struct fay_value_node *fay_check_index(struct fay_checked *checked, const struct fay_scope *scope,
				       const struct fay_node *node);
/* The value of the enumeration's constant of that name; false with the error recorded. */
bool fay_check_enumerator(struct fay_checked *checked, const struct fay_node *at,
			  const struct fay_enumeration *enumeration, const char *name,
			  int64_t *value);

#endif
