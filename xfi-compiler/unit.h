/* SPDX-License-Identifier: MIT */
/*
 * What the passes of the XFI compiler share. A unit is one module on its way to an image:
 *
 *   pointer_calls.c  functions called through pointers
 *   called.c   functions that are not inlined
 *   check.c    refuse what no probe can have, with the source line and what to write instead
 *   define.c   no undefined behaviour left for the optimiser to build on
 *   module.c   the order of things: inline all, simplify, guard, optimise, generate, link
 *   objects.c  state objects of probe.h (globals in the source) become LOCAL + offset
 *   memory.c   memcpy and the like become loads, stores and loops: a probe has no libc
 *   fill.c     loops that fill bytes
 *   range.c    unsigned ranges of IR integers: which index needs no guard
 *   loop.c     counters of loops: their ranges, and whether the loop ends
 *   address.c  from an access to its object; which member an index belongs to
 *   pointers.c loop variables that are pointers, as offsets
 *   splitload.c loads from one of several objects
 *   flow.c     dominators
 *   shorten.c  loops of no more rounds than the array has elements
 *   accesses.c which accesses there are
 *   guard.c    the XFI guards: every access inside its region for every input
 *   bound.c    what a guard does to an index: mask, clamp, check
 *   unsigned.c numbers that are never negative
 *   apart.c    accesses that never meet
 *   fuel.c     every loop ends
 *   vector.c   floating point and vectors: which instruction sets, and LLVM's vectorisers
 *   shape.c    last changes for the sake of the proof
 *   initialise.c arrays on the stack that a loop fills
 *   plain.c    machine code that shows what the IR knows
 *   highbyte.c no ah, bh, ch, dh
 *   slots.c    helpers called through their slots only, where speculation is confined
 *   codegen.c  machine code
 *   link.c     relocatable object to text, read-only data, helper slots
 *   where.c    places in the source, refusals that show them
 *   marks.c    why each guard is there, in the assembly of -S
 *   extension.c functions of C that a query calls
 *   writer.c   the ELF image, byte for byte the same for the same input
 *
 * Nothing here is trusted: a mistake shows as a refusal by the verifier.
 */
#ifndef FAY_COMPILER_UNIT_H
#define FAY_COMPILER_UNIT_H

#include <stdbool.h>
#include <stdint.h>

#include <llvm-c/Core.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>

#include "fay/compiler.h"

/* A global that stands for state number i of the spec: extent known, so guards keep an index inside
 * its own object. */
struct fay_object {
	LLVMValueRef global;
	enum fay_state_scope scope;
	uint64_t offset; /* bytes from the region's start */
	uint64_t size;
};

struct fay_unit {
	LLVMModuleRef module;
	LLVMContextRef context;
	LLVMTargetMachineRef machine;
	LLVMTargetDataRef layout;
	const struct fay_image_spec *spec;
	const struct fay_object *objects;
	unsigned object_count;
	struct fay_error *error;
	struct fay_compile_counts count;
	bool vectors;    /* floating point and vectors are available */
	bool rounding;   /* floor() and the like are single instructions */
	bool vectorise;  /* loops and straight-line code may become vectors */
	bool marks;      /* the assembly is to say why each guard is there */
	unsigned apart;  /* functions whose accesses are told apart */
	bool unfuelled;  /* loops whose end cannot be shown are left as they are */
	bool confined;   /* guards hold on mispredicted paths, too */
	unsigned report; /* print what was guarded to standard error */
};

/* fay_compile_module() with state objects; report fills in the figures. Consumes the module. */
int fay_unit_compile(LLVMModuleRef module, const struct fay_image_spec *spec,
		     const struct fay_object *objects, unsigned object_count,
		     const struct fay_compile_options *options, unsigned report,
		     struct fay_buffer *image, struct fay_buffer *assembly,
		     struct fay_error *error);

/* An error with the place of a value (instruction, global, function) and its source line with a
 * caret, as far as they are known. */
int fay_error_at(struct fay_error *error, enum fay_error_code code, LLVMValueRef value,
		 const char *format, ...) __attribute__((format(printf, 4, 5)));
const char *fay_source_name(LLVMValueRef value); /* what the author called it */
/* What has no place in IR: at the first line of the source that holds `words`. */
int fay_error_at_text(struct fay_error *error, LLVMModuleRef module, const char *words,
		      const char *message);
/* Refuses at an instruction, a global or a function. */
#define fay_refuse_at(unit, value, ...)                                                            \
	fay_error_at((unit)->error, FAY_E_REFUSED, value, __VA_ARGS__)
/* Where the author's file is the cause: out of what was inlined from Fay's headers. */
LLVMMetadataRef fay_user_location(LLVMMetadataRef location);
/*
 * With -S: what is built at `b` from here on is there for the reason given; the assembly says so.
 * `at` is what it is for. Without text: the place of `at` alone.
 */
void fay_mark(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef at, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
void fay_settle_lines(struct fay_unit *unit); /* gives each instruction its author's line */
#define FAY_HELPERS 3
extern const char *const fay_helpers[FAY_HELPERS];
bool fay_is_helper(const char *name);
/* Name of the called function, NULL if indirect. */
const char *fay_callee(LLVMValueRef call);

/* refuses those that cannot lead to a function of this file */
int fay_lower_pointer_calls(struct fay_unit *unit);
/* a function that stands for a call through a pointer */
bool fay_is_dispatcher(const char *name);
int fay_keep_functions(struct fay_unit *unit); /* large ones that would be inlined many times */
/* after everything else was inlined: their LOCAL and GLOBAL */
void fay_settle_called(struct fay_unit *unit);
bool fay_is_called(LLVMValueRef function);
/* out of a probe or a kept function, with the value 0 */
void fay_build_leave(LLVMBuilderRef b, LLVMValueRef function);
int fay_check_module(struct fay_unit *unit);     /* as it comes in */
int fay_check_simplified(struct fay_unit *unit); /* after inlining: what is left in the probes */
void fay_define(struct fay_unit *unit);
void fay_fill(struct fay_unit *unit); /* loops that fill bytes as memset, for fay_expand_memory() */
#define FAY_FILL_MAX (64u << 10)
int fay_expand_memory(struct fay_unit *unit);
bool fay_is_compare(const char *name); /* memcmp, which fay_expand_memory() knows */
int fay_guard(struct fay_unit *unit);
/* after the optimiser: guards that it must not judge */
void fay_lower_bounds(struct fay_unit *unit);
void fay_lower_checks(struct fay_unit *unit); /* at the very end: those that are branches */
void fay_set_metadata(LLVMContextRef context, LLVMValueRef i, const char *kind,
		      LLVMMetadataRef *operands, size_t count);
/* optimisation merges loads of different objects; take them apart again */
void fay_split_loads(struct fay_unit *unit);
int fay_fuel(struct fay_unit *unit);
/* The instruction sets for -march=`march` (NULL: by what the module needs). */
int fay_vectors_choose(struct fay_unit *unit, const char *march, const char **cpu,
		       const char **features);
/* may be called by its LLVM name */
bool fay_vectors_intrinsic(const struct fay_unit *unit, const char *name);
void fay_define_conversion(LLVMBuilderRef b, LLVMValueRef i);
/* State objects lie at multiples of 8, whatever the front end took their globals for. */
void fay_clamp_alignment(struct fay_unit *unit);
int fay_vectorise(struct fay_unit *unit, int (*run_passes)(struct fay_unit *, const char *));
/* fay_object_flush(&table) to fay_flush(local, state) */
int fay_lower_calls(struct fay_unit *unit);
int fay_lower_objects(struct fay_unit *unit);
void fay_shape(struct fay_unit *unit);
/* an address is made of it, through the arithmetic that indices see */
bool fay_feeds_address(LLVMValueRef v);
int fay_initialise_arrays(struct fay_unit *unit);
void fay_make_plain(struct fay_unit *unit);
/* v, of 32 or 64 bits, which the code generator must have in a register and knows nothing of; no
 * instruction. */
LLVMValueRef fay_hide(LLVMBuilderRef b, LLVMValueRef v);
void fay_avoid_high_bytes(struct fay_unit *unit);
int fay_call_through_slots(struct fay_unit *unit);
/* Assembly with its line directives as comments; takes and frees the text of `assembly`. */
int fay_comment_lines(struct fay_buffer *assembly, struct fay_error *error);
int fay_unit_object(struct fay_unit *unit, LLVMMemoryBufferRef *object);
int fay_unit_assembly(struct fay_unit *unit, struct fay_buffer *text);
int fay_machine_create(LLVMTargetMachineRef *machine, const char *cpu, const char *features,
		       struct fay_error *error);

/*
 * The range [lo, hi] of an integer value (unsigned, of its own width, at most 64) as it is at `at`,
 * an instruction; without `at`: what it is whatever branches were taken, so on a mispredicted path,
 * too.
 */
struct fay_range {
	uint64_t lo, hi;
};
struct fay_range fay_range_of(LLVMValueRef value, LLVMValueRef at);
/*
 * The flow of the function that is asked about (NULL: none). With it, branches that dominate a
 * place are found beyond loop heads and joins.
 */
struct fay_flow;
void fay_range_use(const struct fay_flow *flow);
/* The same at some depth of the walk over definitions; beyond a limit nothing is known. */
struct fay_range fay_range_at(LLVMValueRef value, LLVMValueRef at, int depth);
/* `left predicate right` decides the terminator of a block; left is the value asked about. */
struct fay_compare {
	LLVMValueRef left, right;
	LLVMIntPredicate predicate;
};
bool fay_exit_compare(LLVMBasicBlockRef block, LLVMValueRef about, struct fay_compare *compare);
LLVMIntPredicate fay_predicate_not(LLVMIntPredicate predicate);
/* phi = [start, outside], [next = phi + step, latch] with constants. */
bool fay_induction(LLVMValueRef phi, uint64_t *start, uint64_t *step, LLVMValueRef *next,
		   LLVMBasicBlockRef *latch);
/* The values of a loop's counter; start and bound of the loop may be variables. */
bool fay_counter_range(LLVMValueRef phi, int depth, struct fay_range *range, uint64_t *step);
/* How often the loop whose header is `header` (entered back from `latch`) goes round at most; 0:
 * that cannot be shown. */
uint64_t fay_loop_rounds(LLVMBasicBlockRef header, LLVMBasicBlockRef latch);
/* Whether `to` can be reached from `from` without passing `header`. Too many blocks: yes. */
bool fay_reaches(LLVMBasicBlockRef from, LLVMBasicBlockRef to, LLVMBasicBlockRef header);

/* A linked probe: what the writer puts into an image. All pointers malloc'ed, released by
 * fay_linked_deinit(). */
struct fay_linked {
	uint8_t *text;
	size_t text_size;
	uint8_t *rodata;
	size_t rodata_size, rodata_align;
	struct fay_fixup { /* 32-bit field in text: target - place, once addresses are known */
		size_t place;
		enum { FIXUP_TEXT, FIXUP_RODATA, FIXUP_SLOT } kind;
		/* offset in text or rodata (may be outside by the addend), or number of the slot */
		int64_t target;
		int64_t addend; /* SLOT only */
	} *fixups;
	size_t fixup_count;
	char *slots[FAY_IMAGE_MAX_HELPERS];
	unsigned slot_count;
	struct fay_linked_symbol {
		char *name;
		uint64_t offset, size; /* in text */
	} *symbols;
	size_t symbol_count;
	struct fay_linked_line {
		uint32_t offset, line, column;
		char *file;
	} *lines;
	size_t line_count;
};
int fay_link(const void *object, size_t size, bool lines, struct fay_linked *linked,
	     struct fay_error *error);
int fay_link_lines(const void *object, size_t size, struct fay_linked *linked,
		   struct fay_error *error);
void fay_linked_deinit(struct fay_linked *linked);
int fay_write_image(const struct fay_image_spec *spec, const struct fay_linked *linked,
		    struct fay_buffer *image, struct fay_error *error);

/* Declarations of probe.h in a module, as a spec with objects; everything is owned by the struct.
 * */
struct fay_declarations {
	struct fay_image_spec spec;
	struct fay_spec_probe *probes;
	struct fay_spec_state *states;
	struct fay_spec_column *columns;
	struct fay_object *objects;
	unsigned object_count;
	char **strings;
	size_t string_count;
};
int fay_declarations_read(LLVMModuleRef module, struct fay_declarations *declarations,
			  struct fay_error *error);
void fay_declarations_deinit(struct fay_declarations *declarations);

/* The C file, through clang-19, as a module in `context`. */
int fay_source_module(const char *path, const char *const *clang_arguments,
		      unsigned clang_argument_count, LLVMContextRef context, LLVMModuleRef *module,
		      struct fay_error *error);
int fay_source_compile(const char *path, const struct fay_compile_options *options, unsigned report,
		       const char *const *clang_arguments, unsigned clang_argument_count,
		       struct fay_buffer *image, struct fay_buffer *assembly,
		       struct fay_error *error);

#endif
