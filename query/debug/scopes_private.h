/* SPDX-License-Identifier: MIT */
/*
 * Where code is, as the debug information sees it: the unit, namespaces, function, copies of
 * inlined functions and blocks around an address, and the variables that are known there.
 *
 * The information is of a file that may say anything: what is looked at is counted, and so is how
 * deep things lie in one another.
 */
#ifndef FAY_QUERY_DEBUG_SCOPES_PRIVATE_H
#define FAY_QUERY_DEBUG_SCOPES_PRIVATE_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "file_private.h"
#include "query/runtime/compute.h"

#define FAY_DEBUG_SCOPES_MAX 64u
#define FAY_DEBUG_ENTRIES_MAX (UINT64_C(1) << 26) /* that are looked at for one question */

struct fay_debug_scopes {
	Dwarf_Die items[FAY_DEBUG_SCOPES_MAX]; /* the unit first */
	uint32_t count;
};

/* Namespaces, modules and classes, in which functions may lie. */
bool fay_debug_is_room(int tag);
/* What has code: functions, copies of functions, blocks. */
bool fay_debug_is_code(int tag);
/* The scopes around the address, in a unit. false: no function of it has code there. */
bool fay_debug_scopes_at(Dwarf_Die *unit, uint64_t pc, uint64_t *left,
			 struct fay_debug_scopes *scopes);
/* With those around the address that lie in the innermost one, which is code. */
void fay_debug_scopes_extend(struct fay_debug_scopes *scopes, uint64_t pc, uint64_t *left);
/*
 * Whether it is a function, or a copy of one. gcc takes parts out of functions; one that it has put
 * back is written as a copy of the function, which its own declaration calls, and is a block here.
 */
bool fay_debug_is_function(Dwarf_Die *die);
/*
 * Leaves the scopes that a line is in. Of code that several of them begin with, an address does not
 * tell: the innermost function counts that is declared the nearest before the line.
 */
void fay_debug_scopes_of_line(struct fay_debug_scopes *scopes, const char *path, int line);
/* Leaves those of the innermost function, or copy of one, that has this name. */
void fay_debug_scopes_of_function(struct fay_debug_scopes *scopes, const char *symbol);
/* The function, or copy of one, that is innermost; NULL: none is. */
Dwarf_Die *fay_debug_scopes_function(struct fay_debug_scopes *scopes);
/* Where a function that is none of others' copies is entered: in several pieces, the first that is
 * said, unless its symbol is a part's (.cold). false: that is not known. */
bool fay_debug_entry_of(const struct fay_debug_file *file, Dwarf_Die *function, uint64_t *pc);
/* What it is called: the symbol's name if it would have one of its own; NULL. */
const char *fay_debug_symbol_of(Dwarf_Die *function);

/* The variable of that name that is seen from the innermost scope: a local one or a parameter, else
 * one outside of functions. false: there is none. */
bool fay_debug_variable_at(const struct fay_debug_file *file, struct fay_debug_scopes *scopes,
			   const char *name, uint64_t *left, Dwarf_Die *variable);
/* Names of the local ones and parameters; how many there are, up to `max`. */
size_t fay_debug_variable_names(struct fay_debug_scopes *scopes, const char **names, size_t max);

/*
 * Where the variable is at `pc`, as an operand of a marker's note: of its value, or of the address
 * at which it lies. false: it is not there, or in no way that an operand can say.
 */
bool fay_debug_locate(const struct fay_debug_file *file, struct fay_debug_scopes *scopes,
		      Dwarf_Die *variable, uint64_t pc, bool address, char *text, size_t size);

/* A general register's number in instructions by DWARF's (System V ABI, figure 3.36). */
#define FAY_DEBUG_NO_REGISTER 0xffu
uint8_t fay_debug_register(uint64_t number);
/*
 * The expression that holds at the address. gcc has several views of one address, which no
 * instruction lies between: what is bound in one of them alone, as parameters of a copy that begins
 * in the middle of others' code, has a range without bytes there.
 */
bool fay_debug_find_location(Dwarf_Attribute *attribute, uint64_t pc, Dwarf_Op **ops,
			     size_t *count);
/* The number that the operation pushes, if it is one that does. */
bool fay_debug_number_of(const Dwarf_Op *op, int64_t *number);
/* Where a call's frame begins (DWARF's CFA), by one of the two unwind tables, 0 or 1. frame is to
 * be freed with free() in any case. */
struct fay_debug_frame {
	Dwarf_Frame *frame;
	Dwarf_Op *ops;
	size_t count;
};
bool fay_debug_frame_address(const struct fay_debug_file *file, uint64_t pc, unsigned table,
			     struct fay_debug_frame *found);
/* The innermost function that is none of others' copies; NULL: there is none. */
Dwarf_Die *fay_debug_subprogram(struct fay_debug_scopes *scopes);
/* What DW_OP_fbreg counts from there. */
bool fay_debug_frame_base(struct fay_debug_scopes *scopes, uint64_t pc, Dwarf_Attribute *attribute,
			  Dwarf_Op **ops, size_t *count);
/* Bytes of a number, a pointer or an enumeration's constant; 0: of something else. */
unsigned fay_debug_bytes_of(Dwarf_Die *variable);

struct fay_debug_program {
	uint8_t bytes[FAY_COMPUTE_BYTES];
	uint32_t length;
	bool entries; /* it asks for what the call began with */
};
/* The same as a program. false: none can say it. */
bool fay_debug_compute(const struct fay_debug_file *file, struct fay_debug_scopes *scopes,
		       Dwarf_Die *variable, uint64_t pc, bool address,
		       struct fay_debug_program *program);

#endif
