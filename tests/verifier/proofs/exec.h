/* SPDX-License-Identifier: MIT */
/*
 * Runs functions of LLVM IR on terms of bit vectors instead of numbers.
 *
 * One path at a time, always from the start: what was decided where paths part is written down
 * (`way`), and the next path is the same run with the last open decision made the other way. So
 * nothing is ever copied or taken back.
 */
#ifndef FAY_PROOFS_EXEC_H
#define FAY_PROOFS_EXEC_H

#include <llvm-c/Core.h>
#include <llvm-c/Target.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <z3.h>

typedef Z3_ast term;

/* Where paths part: this one takes `value`; up to `last` are left to be taken. */
struct decision {
	uint32_t value, last;
	uint64_t pick; /* an address that was picked */
};

/* p = a * b, of which only what add_product says is known. exact: also over the integers. */
struct product {
	term a, b, p, exact;
};

/* A byte of memory: byte `index` of a term; NULL: nothing was written. */
struct cell {
	term t;
	uint32_t index;
};
struct object {
	struct cell *cells;
	uint32_t size;
};

enum { WAYS = 4096, FACTS_MOST = 65536, PRODUCTS = 1024, OBJECTS = 4096, INPUTS = 256 };
enum { REPLACEMENTS = 32 };

struct exec {
	Z3_context z;
	LLVMModuleRef module;
	LLVMTargetDataRef layout;
	unsigned limit_ms; /* of a proof */
	bool thorough;     /* rules may take all cases of what is alike */

	struct decision way[WAYS];
	unsigned ways, at;

	/* of the path */
	term facts[FACTS_MOST];
	unsigned fact_count;
	bool opaque;  /* products and quotients of two unknowns are symbols */
	bool ordered; /* with axioms on their order where they do not wrap, */
	bool defined; /* and on when that is */
	struct product product[PRODUCTS];
	unsigned products;
	struct object object[OBJECTS];
	unsigned objects;
	struct {
		LLVMValueRef global;
		uint64_t address;
	} global[512];
	unsigned globals;
	struct {
		const char *name;
		term t;
	} input[INPUTS];
	unsigned inputs, symbols;
	uint64_t steps;
	struct {
		const char *name, *by;
		bool inside;
	} replaced[REPLACEMENTS];
	unsigned replacements;
	jmp_buf out; /* the path ends */

	/* of the rule */
	unsigned paths, queries, proved;
	bool second; /* which solver is asked first */
	/* What was to be proved, and whether some input comes there: it is not about nothing. */
	struct {
		const char *what;
		bool reached;
	} claim[64];
	unsigned claims;
	char failure[1024];
};

/* ---- term.c ---- */
unsigned width_of(struct exec *x, term t);
term number(struct exec *x, uint64_t n, unsigned bits);
term simple(struct exec *x, term t);
term symbol(struct exec *x, const char *name, unsigned bits);
bool is_number(struct exec *x, term t, uint64_t *n); /* of at most 64 bits */
term part(struct exec *x, term t, unsigned high, unsigned low);
/* Sign or zero extension, or the low part. */
term resize(struct exec *x, term t, unsigned bits, bool sign);
term truth(struct exec *x, term condition); /* as one bit */
term condition(struct exec *x, term bit);   /* of one bit */
void add_fact(struct exec *x, term condition);
term multiply(struct exec *x, term a, term b);
/* Whether the product does not wrap, as far as that is known. */
term product_exact(struct exec *x, term a, term b);
term divide_terms(struct exec *x, term a, term b, bool sign, bool rest);
/* Whether the facts and `extra` have a model; *model, if it is wanted. */
Z3_lbool query(struct exec *x, term extra, unsigned ms, Z3_model *model);
bool decide(struct exec *x, term condition);
unsigned choose(struct exec *x, unsigned n);
/* What the address is: one of those that it can be, for each of which there is a path. */
uint64_t settle(struct exec *x, term address);

/* ---- memory.c ---- */
uint64_t object_new(struct exec *x, uint32_t size, bool zero);
term memory_load(struct exec *x, uint64_t at, unsigned bits);
void memory_store(struct exec *x, uint64_t at, term t);
void memory_move(struct exec *x, uint64_t to, uint64_t from, uint64_t size);
void memory_fill(struct exec *x, uint64_t to, term byte, uint64_t size);
uint64_t global_address(struct exec *x, LLVMValueRef global);
const char *memory_text(struct exec *x, uint64_t at); /* until the path ends */
void memory_drop(struct exec *x);

/* ---- exec.c ---- */
term constant(struct exec *x, LLVMValueRef v);
term run_function(struct exec *x, LLVMValueRef function, term *arguments, unsigned count);
unsigned type_bits(struct exec *x, LLVMTypeRef type);

/* ---- calls.c ---- */
/* A function without a body: of the rules' header, of the compiler, or of the C library. */
term run_builtin(struct exec *x, const char *name, LLVMValueRef call, term *a);
/* Ends the path. */
_Noreturn void path_leave(struct exec *x);
_Noreturn void path_fail(struct exec *x, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
