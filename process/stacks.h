/* SPDX-License-Identifier: MIT */
/* What probes walk the stacks of traced processes by: struct fay_stack_tables of each process, made
 * of the unwind tables of its modules. */
#ifndef FAY_CLI_STACKS_H
#define FAY_CLI_STACKS_H

#include "fay/loader.h"
#include "fay/stacks.h"
#include "unwind.h"

/* Files that were read; zero at first. */
struct fay_cli_stacks {
	struct fay_cli_stacks_file {
		uint64_t device, inode;
		struct fay_unwind_rows rows;
	} *files;
	size_t count;
	size_t left_out; /* mappings for which there was no room */
};
void fay_cli_stacks_deinit(struct fay_cli_stacks *stacks);
/* Fills the tables, zero at first, for what the process has mapped; again: for what it has mapped
 * by now. */
void fay_cli_stacks_fill(struct fay_cli_stacks *stacks, struct fay_target *target,
			 struct fay_stack_tables *tables);
/* Tables of malloc(3) for a session that is about to be attached to the process, into `options`. */
int fay_cli_stacks_make(struct fay_cli_stacks *stacks, struct fay_target *target,
			struct fay_attach_options *options, struct fay_stack_tables **tables,
			struct fay_error *error);
/* Brings a session's tables up to date while its probes run: the process has loaded modules. */
void fay_cli_stacks_renew(struct fay_cli_stacks *stacks, struct fay_target *target,
			  struct fay_stack_tables *tables, struct fay_session *session);

#endif
