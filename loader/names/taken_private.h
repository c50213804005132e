/* SPDX-License-Identifier: MIT */
/* What elf_taken.c and elf_handlers.c share: the addresses that are found while a file is read. */
#ifndef FAY_LOADER_TAKEN_PRIVATE_H
#define FAY_LOADER_TAKEN_PRIVATE_H

#include <elf.h>
#include <stdbool.h>

#include "target.h"

/* records that are read, and sections that are looked at for them */
#define FAY_TAKEN_WORK_MAX (1u << 28)

struct fay_taken_section {
	uint64_t start, end;
	const uint8_t *bytes;        /* NULL: none in the file */
	bool code, writable, unwind; /* .eh_frame: no jump reads it */
};

struct fay_taken_list {
	uint64_t *items;
	size_t count, room;
};

struct fay_taken {
	struct fay_taken_list lists[FAY_TAKEN_KINDS]; /* enum fay_taken_kind */
	bool failed;
	bool faults; /* of code here become exceptions */
	struct fay_taken_section *sections;
	size_t section_count, last; /* the one that was found last */
	uint64_t code_low, code_high, work;
};

/* elf_taken.c: the section around an address; NULL: there is none. */
const struct fay_taken_section *fay_taken_section_of(struct fay_taken *taken, uint64_t address);
/* Nothing, if no code is there. */
void fay_taken_add(struct fay_taken *taken, enum fay_taken_kind kind, uint64_t address);

/* elf_handlers.c: adds the landing pads that .eh_frame leads to; sets `faults`. */
void fay_taken_read_frames(struct fay_taken *taken, Elf *elf, const Elf64_Shdr *header,
			   Elf_Data *data);

#endif
