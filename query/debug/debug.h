/* SPDX-License-Identifier: MIT */
/*
 * What the debug information (DWARF) of a program or library says of one function: its arguments'
 * names and types, and in which register each is when the function begins.
 *
 * The information lies in the file itself or in one beside it: by build ID below /usr/lib/debug
 * (FAY_DEBUG_DIR names another folder), or by .gnu_debuglink. A file that is of another build is
 * not believed (elfutils' libdwfl looks and checks).
 *
 * Where an argument is: what the compiler says of the function's first instruction; where it says
 * nothing, or that the argument is kept in the frame (as without optimisation), what the System V
 * ABI says of the types, unless the compiler may have changed the function's own convention.
 */
#ifndef FAY_QUERY_DEBUG_DEBUG_H
#define FAY_QUERY_DEBUG_DEBUG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fay/bpf.h"
#include "fay/error.h"

#define FAY_DEBUG_ARGUMENTS_MAX 32u

struct fay_debug_argument {
	const char *name;
	uint32_t type;   /* in fay_debug_function_types() */
	uint32_t index;  /* of event.arg[], if `why` is NULL */
	bool by_address; /* there is the address of a structure of that type */
	const char *why; /* it cannot be had: "is a floating-point number ..."; NULL */
};

struct fay_debug_function;

/*
 * The function at `address` (a virtual address in the object) of an ELF file; `name` is its symbol.
 * fd stays the caller's. FAY_E_REFUSED: there is no debug information, or it does not know the
 * function.
 */
int fay_debug_function_open(int fd, const char *path, uint64_t address, const char *name,
			    struct fay_debug_function **function, struct fay_error *error);
void fay_debug_function_close(struct fay_debug_function *function);
const struct fay_debug_argument *
fay_debug_function_arguments(const struct fay_debug_function *function, uint32_t *count);
/* What it returns; 0: nothing. false: that is not known. */
bool fay_debug_function_result(const struct fay_debug_function *function, uint32_t *type);
const struct btf *fay_debug_function_types(const struct fay_debug_function *function);
/*
 * What is known at the places of a line: the variables that can be seen from there. `text`: "line
 * file.c:123" or "inlined symbol" (fay_places_read_by()).
 */
int fay_debug_line_open(int fd, const char *path, const char *text,
			struct fay_debug_function **function, struct fay_error *error);
/* The type of the variable of that name at the first place that has one. false: none has. The types
 * are another object afterwards, as behind fay_debug_function_complete(). */
bool fay_debug_line_variable(struct fay_debug_function *function, const char *name, uint32_t *type);
/* How many words the program of its value, or of its address, has (query/runtime/compute.h), if
 * there is a place at which no operand says it; 0: there is none. */
struct fay_debug_words {
	uint8_t count;
	bool calls; /* it asks for what the call began with */
};
struct fay_debug_words fay_debug_line_words(struct fay_debug_function *function, const char *name,
					    bool address);
/* Names of those that are seen from the first place. */
size_t fay_debug_line_names(struct fay_debug_function *function, const char **names, size_t max);
/* A fay_places_reader (fay/loader.h). */
struct fay_debug_places;
int fay_debug_places_read(int fd, const char *path, const char *text,
			  bool (*matches)(const char *glob, const char *symbol),
			  struct fay_debug_places *places, struct fay_error *error);
/*
 * A structure of which only the name is known where the function is: looks for its definition in
 * the whole file. true: found, and fay_debug_function_types() is another object now, in which the
 * same numbers mean the same types; what was there before goes with the function.
 */
bool fay_debug_function_complete(struct fay_debug_function *function, uint32_t type);

#endif
