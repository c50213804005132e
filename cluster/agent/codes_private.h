/* SPDX-License-Identifier: MIT */
/*
 * Addresses of code on an agent. They differ from process to process and from machine to machine,
 * so rows are told with hashes of what the addresses are called, and equal places of all machines
 * meet in one group. For probes that walk stacks, the tables by which they do.
 */
#ifndef FAY_CLUSTER_CODES_H
#define FAY_CLUSTER_CODES_H

#include "cluster/wire/wire.h"
#include "process/process.h"

struct fay_codes {
	struct fay_code_column {
		uint32_t state, offset, words;
		uint8_t flags;
	} columns[FAY_WIRE_CODES_MAX];
	uint32_t count;
	struct fay_addresses addresses;
	struct {
		uint64_t address, hash; /* hash 0: nothing is here */
		unsigned form;
	} known[FAY_ADDRESSES_KNOWN]; /* what was told last */
	bool walks;
	struct fay_stacks stacks;
};

/* FAY_E_REFUSED: START names columns that the image has not. */
int fay_codes_init(struct fay_codes *codes, const struct fay_wire_start *start,
		   const struct fay_schema *schema, struct fay_error *error);
void fay_codes_deinit(struct fay_codes *codes);
/* What the process has mapped by now is known from now on. */
void fay_codes_take(struct fay_codes *codes, pid_t pid);
typedef void fay_codes_function(void *context, uint64_t hash, const char *name);
/* Puts hashes in place of a row's addresses; `tell` gets the name of each, or has got it before:
 * "OFFSET MODULE!FUNCTION", "OFFSET MODULE" or "ADDRESS". */
void fay_codes_translate(struct fay_codes *codes, uint32_t state, uint8_t *row,
			 fay_codes_function *tell, void *context);
/* Tables for a session of the process, of malloc(3), into `options`; *tables NULL: the probes walk
 * no stacks. */
int fay_codes_tables(struct fay_codes *codes, struct fay_target *target,
		     struct fay_attach_options *options, struct fay_stack_tables **tables,
		     struct fay_error *error);
/* Its modules are not what they were. */
void fay_codes_update(struct fay_codes *codes, pid_t pid, struct fay_stack_tables *tables,
		      struct fay_session *session);

#endif
