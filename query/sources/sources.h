/* SPDX-License-Identifier: MIT */
/*
 * What a query can ask of: the events that there are, the names and types of what belongs to them.
 * Sources are the kernel (its BTF), a program's functions (its debug information, query/debug/) and
 * saved traces. What a name means is looked up here; the text's nodes are only named in messages.
 *
 * Values with types: arguments and results of functions, and what is reached from them by name. The
 * types are the kernel's own (BTF), or a program's debug information in the same form
 *.
 *
 * A number is a value; a pointer is one, too, its address. One to a structure is followed by name,
 * `sw.next.pid` or `sw->next->pid`, as far as one likes: each pointer on the way is read when the
 * event happens, and what lies behind a null pointer, or cannot be read, is 0 or "". A pointer to
 * characters is a string, an array or a pointer has elements, `a[3]`.
 */
#ifndef FAY_QUERY_SOURCES_SOURCES_H
#define FAY_QUERY_SOURCES_SOURCES_H

#include "query/values/values.h"

/* --- values with types --- */

/* A value of some type: an argument, or what lies `offset` bytes behind an address. */
struct fay_place {
	struct fay_types *types;
	const struct fay_expr *address; /* NULL: the argument number `offset` itself, or `word` */
	const struct fay_expr *word;    /* what a register holds; NULL */
	/* bits: of a bit field that begins at `bit` of the byte there; 0 */
	uint32_t offset, bit, bits;
	/* the argument is the first of so many that are a program (query/runtime/compute.h); 0 */
	uint8_t words;
	bool calls; /* the program asks for what the call began with */
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
/* symbol.c: number.Symbol, the name of what lies at the address that a number is. */
bool fay_check_is_symbol(const struct fay_node *node, const struct fay_value_node *object);
struct fay_value_node *fay_check_symbol(struct fay_checked *checked, const struct fay_node *node,
					const struct fay_expr *address);
/* number.Text: the string at the address that a number is. */
bool fay_check_is_text(const struct fay_node *node, const struct fay_value_node *object);
struct fay_value_node *fay_check_text(struct fay_checked *checked, const struct fay_node *node,
				      const struct fay_value_node *object);
/* Whether something of it is known only after a grouping. */
bool fay_check_is_grouped(const struct fay_expr *expr);
/* node->name of such a value. */
struct fay_value_node *fay_check_typed_member(struct fay_checked *checked,
					      const struct fay_node *node,
					      const struct fay_value_node *object);
/* object[index]; `node` is the whole text of it. */
struct fay_value_node *fay_check_element(struct fay_checked *checked, const struct fay_node *node,
					 const struct fay_value_node *object,
					 const struct fay_expr *index);
/* The value of the enumeration's constant of that name; false with the error recorded. */
bool fay_check_enumerator(struct fay_checked *checked, const struct fay_node *at,
			  const struct fay_enumeration *enumeration, const char *name,
			  int64_t *value);

/* --- system calls --- */

/* The names of the one system call's arguments, into `kernel`; false with the error recorded. */
bool fay_check_name_arguments(struct fay_checked *checked);
/* An argument of the system calls that match by its name. NULL without an error: none has it. */
struct fay_value_node *fay_check_syscall_argument(struct fay_checked *checked,
						  const struct fay_node *node);
/* event.Error: the number of the error that the call returned, shown by name; 0: none. */
struct fay_value_node *fay_check_syscall_error(struct fay_checked *checked,
					       const struct fay_node *node);
/* What the values of an argument are called; NULL: they have no names. */
const struct fay_enumeration *fay_syscall_values(const char *call, const char *argument);
/* What marks a value as a pointer: its values have no names. */
extern const struct fay_enumeration *const fay_pointers;
extern const struct fay_enumeration fay_ioctl_commands;
extern const struct fay_enumeration *const fay_syscall_errors, *const fay_syscall_modes;

/* --- the kernel --- */

/* cluster.Syscall("glob"), cluster.Tracepoint("system:glob"): fills in `kernel` and returns the
 * pattern, or NULL with the error recorded. */
const char *fay_check_kernel_pattern(struct fay_checked *checked, const struct fay_node *call);
/* Whether `name`, with which a `function` is compared, is a system call or tracepoint, if `kernel`
 * (of `kind`; NULL: of no such source) is about these; false with the error recorded. */
bool fay_check_kernel_name(struct fay_checked *checked, const struct fay_node *at,
			   enum fay_source kind, const struct fay_kernel_source *kernel,
			   const char *name);
/* cluster.Function(kernel, ...): the arguments' names and types, if there is one such function and
 * its type is known. */
bool fay_check_kernel_function(struct fay_checked *checked, const char *pattern);
/* An argument of the tracepoint or function by its name. NULL without an error: there is none of
 * this name. */
struct fay_value_node *fay_check_kernel_argument(struct fay_checked *checked,
						 const struct fay_node *node);
/* Whether argument `index` is a number, a bool, an enumeration's constant or a string. */
bool fay_check_kernel_is_plain(const struct fay_checked *checked, uint32_t index);
/* Argument `index` as a number. */
struct fay_value_node *fay_check_kernel_arg(struct fay_checked *checked, const struct fay_node *at,
					    uint32_t index);

/* --- lines of programs --- */

/* The probe's pattern for a string "module!file.c:123"; NULL with the error recorded. */
const char *fay_check_line_pattern(struct fay_checked *checked, const struct fay_node *string);
/* The line's number, of such a pattern. */
int64_t fay_check_line_number(const char *pattern);

/* --- functions of programs: what their debug information says --- */

/* An argument of the traced function by its name. NULL without an error: there is none of this
 * name, or nothing is known. */
struct fay_value_node *fay_check_function_argument(struct fay_checked *checked,
						   const struct fay_node *node);
/* Once all is checked: the pattern of the beginnings of calls, if they are to be kept. */
bool fay_check_calls(struct fay_checked *checked);
/* Once all is checked: the pattern of inlined copies, if the query asks for them. false with the
 * error recorded. */
bool fay_check_inlined(struct fay_checked *checked);
/* event.Known("name"): whether a variable that is seen from a line has a value there. */
struct fay_value_node *fay_check_known(struct fay_checked *checked, const struct fay_node *call);
/* Arguments of calls that have ended are kept from their beginning: of programs' functions. */
static inline bool fay_check_keeps_arguments(const struct fay_checked *checked)
{
	return checked->kind == SOURCE_RETURN && checked->domain == DOMAIN_USER;
}
/* ReturnValue, with the type that it has; just the register's value if nothing is known of it. NULL
 * with the error recorded: it is in no such register. */
struct fay_value_node *fay_check_function_result(struct fay_checked *checked,
						 const struct fay_node *node,
						 const struct fay_expr *word);
/* event.Caller */
static inline bool fay_check_has_caller(const struct fay_checked *checked)
{
	return (checked->kind == SOURCE_ENTRY || checked->kind == SOURCE_RETURN) &&
	       checked->domain == DOMAIN_USER;
}
struct fay_value_node *fay_check_caller(struct fay_checked *checked, const struct fay_node *node);
/* Names of the arguments, up to `max`. */
size_t fay_check_function_names(const struct fay_checked *checked, const char **names, size_t max);
/* "`read` has the arguments `fd`, `buf`", of a program's function, a tracepoint or a function of
 * the kernel; "": they are not known by name. */
const char *fay_check_argument_list(const struct fay_checked *checked);
/* Why arguments of a program's function are not known by name; "". */
const char *fay_check_function_reason(const struct fay_checked *checked);

/* --- saved traces --- */

/* Of "Function" and the like; SOURCE_NONE: it is no source's name. */
enum fay_source fay_check_source_kind(const char *name);
/* file("NAME") as a source; NULL with the error recorded. */
struct fay_value_node *fay_check_file(struct fay_checked *checked, const struct fay_node *call);
/* file("NAME").Function("module!name") and the like: of the saved events those that the same source
 * of the cluster would have. */
bool fay_check_is_file_source(const struct fay_node *call);
struct fay_value_node *fay_check_file_source(struct fay_checked *checked,
					     const struct fay_node *call);
/* Whether the events are saved ones that have that column. */
bool fay_check_is_saved(const struct fay_checked *checked, const char *name);
/* Whether the saved trace has the event's own field or argument (`Arg(0)`) of that name; false with
 * the error recorded. */
bool fay_check_saved(struct fay_checked *checked, struct fay_span span, const char *name);
/* event.name of a saved event, where no event has this field by itself; NULL with the error
 * recorded. */
struct fay_value_node *fay_check_saved_member(struct fay_checked *checked,
					      const struct fay_node *node);
/* The same as an expression; NULL: there is no such column, or only one that every event has. */
const struct fay_expr *fay_check_saved_column(struct fay_checked *checked, const char *name);
/* The column that has the event's field, of its type; NULL. */
const struct fay_saved_column *fay_saved_field(const struct fay_saved *saved,
					       const struct fay_field *field);
/* The same by its name. */
const struct fay_saved_column *fay_saved_own(const struct fay_saved *saved, const char *name);
/* Columns that no event has by itself lie in words of the event that it has no other use for: the
 * word at which this one begins; 0: it has no such place. */
uint32_t fay_saved_word(const struct fay_saved *saved, const struct fay_saved_column *column);
/* The event's own field of that name; NULL. */
const struct fay_field *fay_field_of(const char *name);

#endif
