/* SPDX-License-Identifier: MIT */
/* Where frames are, by the unwind table (.eh_frame) of an object file. */
#ifndef FAY_PROCESS_UNWIND_PRIVATE_H
#define FAY_PROCESS_UNWIND_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fay_unwind_row {
	uint64_t address; /* virtual, in the object: from here up to the next row's */
	uint32_t rule;    /* fay/stacks.h */
};

struct fay_unwind_rows {
	struct fay_unwind_row *items; /* ascending */
	size_t count;
};

/* Reads a table of `size` bytes that lies at virtual address `address`. What is malformed, or not
 * understood, has no rule. false: no memory. */
bool fay_unwind_read(const uint8_t *table, size_t size, uint64_t address,
		     struct fay_unwind_rows *rows);
/* The same of an open ELF file; no rows if it has no table. */
bool fay_unwind_read_file(int fd, struct fay_unwind_rows *rows);
void fay_unwind_rows_deinit(struct fay_unwind_rows *rows);

#endif
