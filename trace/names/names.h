/* SPDX-License-Identifier: MIT */
/* How functions, places in code and processes are written, and how probes are dispatched. */
#ifndef FAY_TRACE_NAMES_H
#define FAY_TRACE_NAMES_H

#include <stdio.h>

#include "fay/verify.h"
#include "process/process.h"

/*
 * A C++ or Rust function's name as people write it, without its arguments, or the name itself;
 * readable.c. Cut to `size` with "..."; lives as long as `buffer` and `name`.
 */
const char *fay_readable_name(const char *name, char *buffer, size_t size);
/* The same with its arguments. */
const char *fay_readable_signature(const char *name, char *buffer, size_t size);

/* "libc!qsort+0x1c", or "0x7f..." */
void fay_address_text(struct fay_addresses *addresses, uint64_t address, unsigned form, char *text,
		      size_t size);

/* Likewise of what a machine of a cluster said of a place in code (docs/cluster.md, PARTIAL);
 * `code` NULL: it said nothing of this hash. */
void fay_code_text(const char *code, uint64_t hash, unsigned form, char *text, size_t size);

/* --- dispatch.c --- */

/* A line for each probe of an accepted image. */
void fay_dispatch_print(FILE *out, const char *indent, const struct fay_verdict *verdict);
/* The same as JSON objects. */
void fay_dispatch_print_json(FILE *out, const struct fay_verdict *verdict);
/* What would be done to the functions of a process, which stays as it is: one line, or a JSON
 * object for each function; what hinders it is said in `messages`. `traps`: as in
 * fay_attach_options. */
void fay_points_print(FILE *out, FILE *messages, bool json, pid_t pid,
		      const struct fay_verdict *verdict, uint32_t traps);

/* How many of them; what is added to. FAY_E_REFUSED and others: none can be traced. */
struct fay_points {
	size_t functions, traps, untraced;
};
int fay_points_count(pid_t pid, const struct fay_verdict *verdict, uint32_t traps,
		     struct fay_points *points, struct fay_error *error);

/* --- comms.c --- */

/* The name of a process that is most like this one; NULL. It lies in `nearest`. */
const char *fay_nearest_comm(const char *comm, char nearest[FAY_COMM_SIZE]);
/* Whether it is digits alone. */
bool fay_is_number(const char *text);

#endif
