/* SPDX-License-Identifier: MIT */
/*
 * What the passes of the XFI compiler share: the module on its way to an image, and what is known
 * of its IR.
 *
 *   ir.c       calls, and what several passes build
 *   where.c    places in the source, refusals that show them
 *   marks.c    why each guard is there, in the assembly of -S
 *   range.c    unsigned ranges of IR integers: which index needs no guard
 *   loop.c     counters of loops: their ranges, and whether the loop ends
 *   flow.c     dominators
 *   address.c  from an access to its object; which member an index belongs to
 *
 * Nothing here is trusted: a mistake shows as a refusal by the verifier.
 */
#ifndef FAY_COMPILER_IR_IR_H
#define FAY_COMPILER_IR_IR_H

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
/* Assembly with its line directives as comments; takes and frees the text of `assembly`. */
int fay_comment_lines(struct fay_buffer *assembly, struct fay_error *error);
#define FAY_HELPERS 3
extern const char *const fay_helpers[FAY_HELPERS];
bool fay_is_helper(const char *name);
/* The instructions of a function, or of a module, one after the other; NULL behind the last. */
LLVMValueRef fay_first_of_function(LLVMValueRef function);
LLVMValueRef fay_next_of_function(LLVMValueRef instruction);
LLVMValueRef fay_first_of_module(LLVMModuleRef module);
LLVMValueRef fay_next_of_module(LLVMValueRef instruction);
/* Whether the function is one of the probes. */
bool fay_is_probe(const struct fay_unit *unit, LLVMValueRef function);
/* Name of the called function, NULL if indirect. */
const char *fay_callee(LLVMValueRef call);

/* a new function of the module's own, without a body yet, which is inlined wherever it is called */
LLVMValueRef fay_inlined_function(struct fay_unit *unit, const char *name, LLVMTypeRef type);
/* out of a probe or a kept function, with the value 0 */
void fay_build_leave(LLVMBuilderRef b, LLVMValueRef function);
/* v, of 32 or 64 bits, which the code generator must have in a register and knows nothing of; no
 * instruction. */
LLVMValueRef fay_hide(LLVMBuilderRef b, LLVMValueRef v);

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

/* --- addresses: where an access goes: a known object, a constant, and scaled indices --- */

#define FAY_TERMS_MAX 8

/* base + constant + scale * index + ... */
struct fay_address {
	LLVMValueRef base;
	int64_t constant;
	unsigned terms;
	struct fay_term {
		LLVMValueRef index;
		int64_t scale;
		/* elements of the array that it indexes by its type; 0: not known */
		uint64_t limit;
		/* bytes from the start of that element to the address, without what other indices
		 * add */
		uint64_t beyond;
	} term[FAY_TERMS_MAX];
};

/* Traces a pointer to its base. false: not of the form. */
bool fay_trace(struct fay_unit *unit, LLVMValueRef pointer, struct fay_address *address);

struct fay_extent {
	uint64_t size;
	bool writable;
	const char *what;
};
/* false: not an object that a probe may touch. */
bool fay_extent_of(struct fay_unit *unit, LLVMValueRef base, struct fay_extent *extent);
/* The state object that a base is, or NULL. */
const struct fay_object *fay_object_of(struct fay_unit *unit, LLVMValueRef base);

bool fay_is_gep(LLVMValueRef v);
LLVMValueRef fay_widen(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef index);
/* constant + the terms, as i64. */
LLVMValueRef fay_sum_terms(struct fay_unit *unit, LLVMBuilderRef b,
			   const struct fay_address *address);

/* Dominators and loop depth of one function's blocks, as they are when it is created; blocks in
 * reverse postorder. */
struct fay_flow {
	unsigned count;
	LLVMBasicBlockRef *blocks;
	unsigned *idom, *depth; /* indices into blocks */
};
/* NULL: out of memory. Blocks that cannot be reached are left out. */
struct fay_flow *fay_flow_create(LLVMValueRef function);
void fay_flow_destroy(struct fay_flow *flow);
/* Index of a block; flow->count if it cannot be reached. */
unsigned fay_flow_index(const struct fay_flow *flow, LLVMBasicBlockRef block);
bool fay_flow_dominates(const struct fay_flow *flow, LLVMBasicBlockRef over,
			LLVMBasicBlockRef block);

/* A loop's counter: phi = [start, entry], [next = phi + step, latch]. */
struct fay_counter {
	LLVMValueRef next, start;
	LLVMBasicBlockRef latch, entry;
	int64_t step;
};
bool fay_counter_of(LLVMValueRef phi, struct fay_counter *counter);
/* The condition, about phi or next, under which block `test` goes on with the loop. */
bool fay_counter_test(LLVMValueRef phi, const struct fay_counter *counter, LLVMBasicBlockRef test,
		      struct fay_compare *compare);
/* The rounds of a loop of one block whose counter starts at 0 and goes up by 1 to a constant; 0:
 * another loop, or another way out. */
uint64_t fay_exact_rounds(LLVMValueRef phi, const struct fay_counter *counter);

#endif
