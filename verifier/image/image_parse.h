/* SPDX-License-Identifier: MIT */
/*
 * What the parts of the image parser share: image.c reads ELF, image_sections.c its sections,
 * image_dynamic.c imports; image_tables.c the .fay.* tables, image_states.c those of states.
 */
#ifndef FAY_VERIFIER_IMAGE_PARSE_H
#define FAY_VERIFIER_IMAGE_PARSE_H

#include <elf.h>

#include "image.h"

/* Limits of the parser beyond those of fay/image.h. All loops over a file's content are bounded by
 * one of them. */
#define MAX_SECTIONS 256u
#define MAX_SEGMENTS 32u
#define MAX_DYNAMIC 256u /* entries of .dynamic */
#define MAX_DYNSYM 4096u /* entries of .dynsym */
/* entries of .symtab that are looked at; the rest has no names in messages */
#define MAX_SYMBOLS 16384u
#define MAX_SYMBOL_NAME 128u
#define MAX_STRINGS (1u << 20) /* bytes of .fay.strings */
#define MAX_LINES (1u << 18)   /* entries of .fay.lines */
#define MAX_ADDRESS ((uint64_t)1 << 46)
#define MAX_ROW_SIZE 4096u
/* columns do not overlap and have at least 8 bytes each */
#define MAX_ROW_COLUMNS (MAX_ROW_SIZE / 8)
#define MAX_TABLE_ROWS 65536u
#define PAGE_SIZE 4096u

/* Sections with a meaning. Order: the index into known_sections of image_sections.c. */
enum section_id {
	SECTION_TEXT,
	SECTION_RODATA,
	SECTION_GOT,
	SECTION_RELA,
	SECTION_DYNSYM,
	SECTION_DYNSTR,
	SECTION_DYNAMIC,
	SECTION_IMAGE,
	SECTION_PROBES,
	SECTION_STATE,
	SECTION_COLUMNS,
	SECTION_STRINGS,
	SECTION_LINES,
	SECTION_COUNT
};

struct section { /* a section that is present has size > 0 */
	uint64_t address, offset, size;
	const uint8_t *bytes; /* size bytes of the file */
	const char *name;     /* for messages: the literal of known_sections */
};

struct parser {
	struct fay_arena *arena;
	const uint8_t *file;
	size_t file_size;
	struct fay_image *image;
	Elf64_Ehdr header;
	Elf64_Shdr sections[MAX_SECTIONS];
	Elf64_Phdr segments[MAX_SEGMENTS];
	struct section known[SECTION_COUNT];
	struct fay_refusal refusal;
};

/* Records why; always false, so that callers return it. */
bool fay_parser_refuse(struct parser *parser, enum fay_rule rule, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Arena memory, zeroed; NULL after recording LIM-RESOURCE. */
void *fay_parser_alloc(struct parser *parser, size_t count, size_t size);

/* The bytes [offset, offset + size) of the file; NULL if they are not all there. */
const uint8_t *fay_parser_span(const struct parser *parser, uint64_t offset, uint64_t size);
/* The string at `offset` of a string table, if it ends inside it within `max` bytes; NULL
 * otherwise. */
const char *fay_parser_string(const uint8_t *table, uint64_t size, uint64_t offset, size_t max);
/* Names come from the file and go into messages: anything unprintable becomes '?'. */
const char *fay_parser_printable(struct parser *parser, const char *text);

/* Fills known[] from the section headers; those and the segments are read and the segments checked.
 * */
bool fay_parse_sections(struct parser *parser);
const char *fay_section_name(enum section_id id);

/* Reads .fay.*; the ELF side is done: known[] and image->text, layout_base are set. */
bool fay_parse_tables(struct parser *parser);

/* image_dynamic.c: .dynamic, once known[] is filled; and helper slots, once there is a layout. */
bool fay_parse_dynamic(struct parser *parser);
bool fay_parse_relocations(struct parser *parser);

/* image_tables.c: whether section `id` has `count` entries of `size`; the string that the reference
 * at offset `field` of `section` means, copied, or NULL after a refusal. */
bool fay_parser_table_size(struct parser *parser, enum section_id id, uint32_t count, size_t entry,
			   const char *name);
const char *fay_parser_reference(struct parser *parser, const struct section *section,
				 uint64_t field, fay_rel32 rel);

/* image_states.c */
bool fay_parse_columns(struct parser *parser);
bool fay_parse_states(struct parser *parser);

#endif
