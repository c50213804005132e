/* SPDX-License-Identifier: MIT */
/*
 * A process or file as a set of modules. Modules are known by name at once and
 * opened (their symbols read) only when a pattern names them, so that attaching to a process with a
 * hundred libraries costs what the one asked for costs.
 */
#ifndef FAY_LOADER_TARGET_H
#define FAY_LOADER_TARGET_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "dispatcher/user/trampoline.h"
#include "fay/error.h"
#include "fay/loader.h"
#include "loader/flow/flow.h"
#include "loader/flow/relocate.h"

#define FAY_TARGET_MAX_MODULES 65536u
#define FAY_FIND_MAX (1u << 20) /* matches of one pattern */
#define FAY_MODULE_MAX_NAMES 8u
#define FAY_OBJECT_MAX_SYMBOLS (16u << 20)
#define FAY_OBJECT_MAX_SEGMENTS 512u
#define FAY_OBJECT_MAX_MARKERS 65536u
#define FAY_MARKER_MAX_STRING 1000u /* bytes of a provider, a name or an argument string */
#define FAY_OBJECT_MAX_TOLD 1024u   /* patterns of places that debug information tells */

/* One PT_LOAD of an object. */
struct fay_segment {
	uint64_t vaddr, offset, file_size, memory_size;
	bool executable;
};

/* PART: code without a symbol that is jumped to, not called. */
enum fay_symbol_kind {
	FAY_SYMBOL_FUNCTION,
	FAY_SYMBOL_IFUNC,
	FAY_SYMBOL_OBJECT,
	FAY_SYMBOL_UNDEFINED,
	FAY_SYMBOL_PART
};

struct fay_symbol {
	const char *name; /* in the object's string table; a version after '@' is not part of it */
	uint32_t length;  /* of the name without its version */
	uint16_t kind;    /* enum fay_symbol_kind */
	/* an old version (memcpy@GLIBC_2.2.5), kept for programs linked long ago */
	bool compat;
	bool unnamed;     /* known from the unwind table alone; the name is made up */
	bool joined;      /* a part of a function after all (elf_parts.c) */
	uint64_t address; /* virtual address in the object */
	uint64_t size;    /* bytes, as the symbol says; 0 unknown */
	uint64_t limit;   /* end of the section that holds it: an upper bound for the size */
};

struct fay_code_symbol {
	uint64_t address;
	uint64_t end;
	uint64_t reach; /* where this function and all those before it are over */
	size_t index;   /* of the symbol */
};

/* An ELF object opened for its symbols. */
struct fay_object {
	int fd;
	Elf *elf;     /* keeps the string tables */
	int debug_fd; /* of the file that the symbol table was split off to; -1 none */
	Elf *debug_elf;
	char *made_names; /* of functions without a symbol */
	uint16_t type;
	bool text_relocations; /* the dynamic linker changes its code after it has mapped it */
	struct fay_segment *segments;
	size_t segment_count;
	/* of .symtab and .dynsym, in file order, not unique; then those of .eh_frame that no symbol
	 * names */
	struct fay_symbol *symbols;
	size_t symbol_count;
	struct fay_marker *markers; /* USDT; read when they are first asked for */
	size_t marker_count;
	bool markers_read, markers_cut_short;
	struct fay_told *told; /* places.c */
	size_t told_count;
	/* functions by address, for addresses.c; made when first needed */
	struct fay_code_symbol *code;
	size_t code_count;
	bool parts_found;
	uint64_t *starts; /* sorted starts of all functions; made when first needed */
	size_t start_count;
	struct fay_taken *taken; /* made when first needed */
	/* targets, and what is kept for others, that have it; the last one closes it */
	unsigned users;
	bool kept;
};

/* Takes over fd (closed in every case on failure). `name` is for messages. It has one user. */
int fay_object_open(int fd, const char *name, struct fay_object **object, struct fay_error *error);
void fay_object_close(struct fay_object *object); /* one user less */
/* NULL as of fay_taken_create(). The other one: it is much, and not kept if nobody else has use for
 * it. */
const struct fay_taken *fay_object_taken(struct fay_object *object);
void fay_object_forget_taken(struct fay_object *object);
/* Does the object define the name of a compat symbol also in its present version? Then the plain
 * name means that one. */
bool fay_object_superseded(const struct fay_object *object, const struct fay_symbol *symbol);
/* Whether a function's symbol has this address. Starts are those of the symbols read when it is
 * first asked. */
bool fay_object_has_start(struct fay_object *object, uint64_t address);
/* The last start at or before `address`, or UINT64_MAX. */
uint64_t fay_object_start_before(struct fay_object *object, uint64_t address);
/* The size of a function: the symbol's own, else up to the next function or its section's end. */
uint64_t fay_object_size(struct fay_object *object, const struct fay_symbol *symbol);

/* elf_markers.c: fills object->markers, once. */
void fay_object_read_markers(struct fay_object *object);
/* places.c: what debug information tells of a pattern's text behind the @, as markers; asked for
 * once. A code: `error` says why there are none. */
int fay_object_told(struct fay_object *object, const char *path, const char *text,
		    const struct fay_marker **markers, size_t *count, struct fay_error *error);
void fay_object_forget_told(struct fay_object *object);
/* elf_debug.c: opens object->debug_elf if there is a file with the object's build ID. */
void fay_object_open_debug(struct fay_object *object, Elf *elf);
/* elf_unnamed.c: adds the functions that only the unwind table knows. */
int fay_object_read_unnamed(struct fay_object *object, Elf *elf, const char *name,
			    struct fay_error *error);

/* An executable mapping of a module; in a file, an executable segment. */
struct fay_range {
	uint64_t start, end; /* addresses in the process */
	uint64_t offset;     /* of start in the file */
	/* address in the process - virtual address in the object; known once opened */
	uint64_t bias;
	bool placed; /* bias is known */
};

struct fay_module {
	char *name;                        /* canonical short name */
	char *names[FAY_MODULE_MAX_NAMES]; /* all names it answers to, the canonical first */
	size_t name_count;
	char *path; /* as the target sees it, without " (deleted)" */
	bool deleted;
	bool main;  /* the process's executable */
	bool known; /* a session of the process has looked at it before (session/beside.c) */
	uint64_t device, inode;
	struct fay_range *ranges;
	size_t range_count;
	struct fay_object *object; /* NULL until opened */
	char *unreadable;          /* why it could not be opened; tried once */
};

/* Names handed out, by hash: open addressing, power of two. */
struct fay_name_table {
	struct fay_interned {
		uint64_t hash;
		char *name;
	} *items;
	size_t count, size;
};

/*
 * What is kept of files for other processes that have them. A file is the same if all of this is:
 * writing to it changes its times. Of what is read of the file nothing is believed that a process
 * has not mapped (target.c), whoever read it.
 */
#define FAY_FILES_KEPT_MAX 64u
struct fay_kept_file {
	uint64_t device, inode, size;
	struct timespec modified, changed;
	struct fay_object *object;
};
struct fay_files {
	struct fay_kept_file items[FAY_FILES_KEPT_MAX];
	size_t count, oldest;
	struct fay_name_table names;  /* of all targets that it is for */
	struct fay_kept_plans *plans; /* plan/kept.c; NULL: none */
	struct fay_ready_list *ready; /* plan/ready.c; NULL: none */
};

struct fay_target {
	pid_t pid;   /* 0: a file */
	char *title; /* for messages: "process 12 (redis-server)" or the file's path */
	struct fay_module *modules;
	size_t module_count;
	struct fay_name_table names;   /* that were handed out */
	struct fay_files *files;       /* NULL: nothing is */
	const struct fay_module *only; /* patterns pass over all other modules; NULL: over none */
	bool only_new;                 /* likewise those that are known */
	uint64_t symbols_compared;     /* for markers' operands, which bounds that work */
	/* the last pattern that matched nothing: what was asked for is worth a better message than
	 * FAY_NO_MATCH (loader/suggest) */
	struct fay_unmatched {
		bool markers;
		char module[256], name[256];
	} unmatched;
};
#define FAY_NO_MATCH "nothing in %s matches `%.255s!%.255s`"

/* --- modules.c: /proc/PID/maps and module names --- */
int fay_target_read_maps(struct fay_target *target, struct fay_error *error);
/* Opens a module's object and places its ranges. NULL (and module->unreadable) if it cannot be
 * read. */
struct fay_object *fay_module_object(const struct fay_target *target, struct fay_module *module);
/* The module whose code is mapped at an address in the process; NULL. */
const struct fay_module *fay_target_module_at(const struct fay_target *target, uint64_t address);
bool fay_module_matches(const struct fay_module *module, const char *pattern);
/* Likewise, and it is not passed over. */
bool fay_target_asks(const struct fay_target *target, const struct fay_module *module,
		     const char *pattern);
/* Derives all names from a file's base name: "libc.so.6" gives "libc", "libc.so.6", "libc.so". */
bool fay_module_add_names_of(struct fay_module *module, const char *path);
void fay_module_deinit(struct fay_module *module);

/* --- target.c --- */
/* What a pattern matched so far; the items are malloc'ed. */
struct fay_matches {
	struct fay_function *items;
	size_t count, room;
};
/* FAY_E_LIMIT: more than FAY_FIND_MAX, or no memory. */
int fay_matches_add(struct fay_matches *matches, const struct fay_function *function,
		    struct fay_error *error);
/* fay_target_find() by symbols alone. */
int fay_target_find_symbols(struct fay_target *target, const char *pattern,
			    struct fay_function_list *list, struct fay_error *error);
/* Says that a pattern matched nothing. */
int fay_target_no_match(struct fay_target *target, bool markers, const char *module,
			const char *name, struct fay_error *error);
/* The function that begins at an address in the process. False: none does, or its module cannot be
 * read. */
bool fay_target_function_at(struct fay_target *target, uint64_t address,
			    struct fay_function *function);
/* A NUL-terminated copy of the name that lives as long as the target, or as what is kept; the same
 * name gives the same pointer. */
const char *fay_target_intern(struct fay_target *target, const char *name, size_t length);

/* --- kept.c --- */
/* The object of a file, for another user; NULL: it is not kept. */
struct stat;
struct fay_object *fay_files_object(struct fay_files *files, const struct stat *status);
/* An object that was opened now. In the place of the oldest one if there are too many. */
void fay_files_add(struct fay_files *files, struct fay_object *object);
void fay_name_table_deinit(struct fay_name_table *names);
/* Whether the module's code, as it is mapped in the process, is its file's: its pages are the
 * file's own, or have the same bytes. `memory` and `pages` are /proc/PID/mem and pagemap. False in
 * doubt. */
bool fay_module_text_is_files(const struct fay_module *module, int memory, int pages);
/* Bytes of the file as they are mapped at an address in the process if nobody has changed them.
 * Returns how many there are. */
size_t fay_target_file_text(const struct fay_target *target, uint64_t address, void *to,
			    size_t size);

/* --- elf_parts.c --- */
struct fay_taken;
/* Marks functions that are parts of others (`joined`), once. `taken` is the object's. */
void fay_object_find_parts(struct fay_object *object, const struct fay_taken *taken);

/* --- addresses.c --- */
/* Makes object->code. False: no memory. */
bool fay_object_sort_code(struct fay_object *object);
/* Of the code symbols around a virtual address one that begins last; NULL: there is none. */
const struct fay_symbol *fay_object_symbol_at(struct fay_object *object, uint64_t address);
/* The code symbol around an address in the process, of several the one that begins last; its bounds
 * there. False: there is none. */
bool fay_target_symbol_at(struct fay_target *target, uint64_t address, struct fay_module **module,
			  uint64_t *bias, const struct fay_symbol **symbol, uint64_t *start,
			  uint64_t *end);
/* The same as the analysis of exits sees it (flow.h). */
enum fay_flow_place fay_target_place(struct fay_target *target, uint64_t address, uint64_t *start,
				     uint64_t *end);

/* --- pattern.c --- */
struct fay_glob {
	const char *text;
	size_t prefix; /* literal bytes at the start */
	bool exact;    /* no special character */
	bool all;      /* "*" */
	bool source;   /* also what the symbol is called in the source, fay_names_read_by() */
};
void fay_glob_init(struct fay_glob *glob, const char *text);
/* name need not be NUL-terminated at `length`; at most 4095 bytes are looked at. */
bool fay_glob_match(const struct fay_glob *glob, const char *name, size_t length);

/* --- markers.c: USDT markers as places to trace: from a marker's note to what its trampoline
 * and its removal need. */
struct fay_marker_place {
	struct fay_operand operands[FAY_MARKER_OPERANDS];
	uint32_t operand_count;
	char reason[FAY_REASON_MAX]; /* why the marker cannot be traced; "" it can */
};

/* `fields`: what is read of the event. NULL: out of memory. */
struct fay_marker_place *fay_marker_place_create(struct fay_target *target,
						 const struct fay_function *marker,
						 uint32_t fields);

/* --- elf_taken.c --- */
/* What an ELF file tells of addresses in its code that are entered by other ways than branches: see
 * struct fay_flow_program. */

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
