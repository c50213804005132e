/* SPDX-License-Identifier: MIT */
/*
 * The room of libraries that are loaded when they are needed: LLVM, Z3 and Capstone, those of
 * terminals, and libmicrohttpd of `fay serve`. What only installs probes by their certificates
 * needs none of them, and does not wait for LLVM.
 *
 * `stubs` makes a stub for each function that a program takes from them. The first call of any
 * loads its library and looks up all its functions; later ones are a jump through memory. If the
 * library is not there, the program ends with a message and exit code 1: who must not, asks before.
 */
#ifndef FAY_DELAY_H
#define FAY_DELAY_H

#include "fay/error.h"
#include "fay/verify.h"

/* Whether the prover's libraries can be loaded: FAY_OK, or the error says what is missing. */
int fay_delay_prover(struct fay_error *error);
/* As fay_verify(), where the prover may not be there: then only what the policy accepts by its
 * certificate has a verdict. FAY_OK, or the error's code and no verdict. */
int fay_delay_verify(const void *bytes, size_t size, const struct fay_policy *policy,
		     struct fay_verdict *verdict, struct fay_error *error);

/* Gives back what was needed to begin, and now is not for a while: pages of these libraries' code,
 * and memory that is free. Nothing where the program is linked with them as usual. */
void fay_delay_rest(void);

/* ---- for the stubs ---- */

/* The functions of a library, as `stubs` writes them. */
struct fay_delayed {
	const char *library; /* its soname; NULL: behind the last */
	const char *names;   /* each NUL-terminated, one after the other */
	void **first, **end; /* where their addresses are kept */
};
/* NULL: the program is linked with all libraries as usual. */
extern const struct fay_delayed fay_delayed[] __attribute__((weak));
/* Fills in the addresses of its functions: NULL, or what dlerror(3) says. */
const char *fay_delay_load(const struct fay_delayed *delayed);
/* The same of the library that `slot` belongs to, or ends the program. */
void fay_delay_fill(void **slot);

#endif
