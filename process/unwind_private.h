/* SPDX-License-Identifier: MIT */
/* Where frames are, by the unwind tables (.eh_frame, Go's .gopclntab) of an object file. */
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
	size_t count, room;
};

/* Where a register of the caller's is. */
enum fay_frame_place { FAY_FRAME_SAME, FAY_FRAME_SAVED, FAY_FRAME_AT_RBP, FAY_FRAME_UNKNOWN };

/* What an unwind table says of a function's frame at one place. */
struct fay_frame {
	uint32_t base;   /* FAY_STACK_...; END: not known */
	uint64_t number; /* of the register, if it is FAY_STACK_REGISTER: DWARF's */
	int64_t offset;  /* bytes; of FAY_STACK_LINKAGE, from where on a word more is pushed */
	enum fay_frame_place rbp, return_address;
	int64_t rbp_at, return_at; /* SAVED: bytes from the CFA */
};
/* unwind_rule.c */
uint32_t fay_unwind_rule(const struct fay_frame *frame);

/* unwind_rows.c. false: no memory, or too many. */
bool fay_unwind_add(struct fay_unwind_rows *rows, uint64_t address, uint32_t rule);
/* In order; of rows of one address the last; none that says the same as the one before it. */
void fay_unwind_fold(struct fay_unwind_rows *rows);

/* Adds what a table of `size` bytes tells that lies at virtual address `address`. What is
 * malformed, or not understood, has no rule. Not folded. false: no memory. */
bool fay_unwind_read(const uint8_t *table, size_t size, uint64_t address,
		     struct fay_unwind_rows *rows);
/* Adds what Go's table of functions (.gopclntab) tells, whose code begins at `text`; 0: where it
 * says itself. What is malformed, or of a version that is not known, has no rule. */
bool fay_unwind_read_go(const uint8_t *table, size_t size, uint64_t text,
			struct fay_unwind_rows *rows);
/* Both of an open ELF file, folded; no rows if it has no table. */
bool fay_unwind_read_file(int fd, struct fay_unwind_rows *rows);
/* The same of one in memory. */
bool fay_unwind_read_memory(void *object, size_t size, struct fay_unwind_rows *rows);
void fay_unwind_rows_deinit(struct fay_unwind_rows *rows);

#endif
