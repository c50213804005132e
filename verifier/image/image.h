/* SPDX-License-Identifier: MIT */
/*
 * The room of the image: parsing of a file into what the analysis needs, policies (policy.c,
 * pattern.c; declared in fay/verify.h), and the hash that binds what was verified to what runs.
 *
 * image.c and image_sections.c are the only code that reads ELF; they read every byte through a
 * bounds-checked cursor, allocate from the verdict's arena, and never follow an offset twice. The
 * limits are in image_parse.h and fay/image.h.
 */
#ifndef FAY_VERIFIER_IMAGE_H
#define FAY_VERIFIER_IMAGE_H

#include "fay/verify.h"
#include "sha256.h"
#include "verifier/rules/rules.h"

/* A range of virtual addresses of the image, [start, start + size). size 0: absent. */
struct fay_range {
	uint64_t start;
	uint64_t size;
};

/* of .symtab or .dynsym: STT_FUNC or STT_NOTYPE in .text; for messages only */
struct fay_image_symbol {
	uint64_t address;
	const char *name;
};

struct fay_image {
	struct fay_image_header header;
	/* bytes etc.; layout.bytes[a - layout_base] is the byte at virtual address a */
	struct fay_layout layout;
	uint64_t layout_base; /* virtual address of layout.bytes[0] */
	struct fay_range text, rodata, got;
	uint32_t probe_count;
	/* pattern, kind, parameter, code_offset filled in; the analysis fills the rest */
	struct fay_probe_facts *probes;
	struct fay_schema schema;
	uint32_t line_count;
	/* validated copies; `file` replaced by an index into line_files */
	const struct fay_image_line *lines;
	const char *const *line_files;
	uint32_t symbol_count;
	const struct fay_image_symbol *symbols; /* sorted by address */
};

/* Parses and validates; checks the limits of fay/image.h. All pointers in *image are in the arena.
 * */
struct fay_refusal fay_image_parse(struct fay_arena *arena, const void *bytes, size_t size,
				   struct fay_image *image);

/* The helper whose slot is at virtual address `address`; -1 none. */
int fay_image_slot(const struct fay_image *image, uint64_t address);

#endif
