/* SPDX-License-Identifier: MIT */
/* What the halves of the parser share: elf.c reads ELF, tables.c the .fay.* tables. */
#ifndef FAY_READER_PARTS_H
#define FAY_READER_PARTS_H

#include <elf.h>
#include <string.h>

#include "reader.h"

/* The sections with a meaning, in the order of the table in elf.c. */
enum { TEXT, RODATA, GOT, RELA, DYNSYM, DYNSTR, DYNAMIC };
enum {
	IMAGE = DYNAMIC + 1,
	PROBES,
	STATES,
	COLUMNS,
	STRINGS,
	LINES,
	CERTIFICATE,
	INTERFACE,
	PARTS
};

struct check_file {
	struct check_bytes all;                /* the file, start 0 */
	struct check_bytes part[PARTS];        /* size 0, start 0: the image has none */
	struct check_bytes segments, sections; /* the headers */
	Elf64_Ehdr header;
	struct fay_image_header image;
	struct check_subject *subject; /* what is made of it */
	struct check_refusal refusal;  /* place and what: that is being looked at */
};

/*
 * Whether conditions of the format hold; if not, the image is refused by this rule. `f` is the
 * file. Functions of the parser return true as long as all hold.
 */
#define NEED(rule, holds) check_need(f, FAY_RULE_IMG_##rule, holds)
static inline bool check_need(struct check_file *f, enum fay_rule rule, bool holds)
{
	f->refusal.rule = rule;
	return holds;
}

/* Copies entry `i` of a table and looks at it; false if the table ends before. */
static inline bool check_entry(struct check_file *f, const struct check_bytes *table, uint64_t i,
			       void *entry, size_t size)
{
	const uint8_t *from = check_span(table, i * size, size);

	if (!from)
		return false;
	memcpy(entry, from, size);
	f->refusal.place = (uint64_t)(from - f->all.bytes);
	return true;
}

/* tables.c: the .fay.* tables, once f->part is there. */
bool check_tables(struct check_file *f);

#endif
