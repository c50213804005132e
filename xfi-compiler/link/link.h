/* SPDX-License-Identifier: MIT */
/*
 * From IR to the image file.
 *
 *   codegen.c  machine code
 *   link.c     relocatable object to text, read-only data, helper slots
 *   lines.c    its line table
 *   writer.c   the ELF image, byte for byte the same for the same input
 */
#ifndef FAY_COMPILER_LINK_LINK_H
#define FAY_COMPILER_LINK_LINK_H

#include "xfi-compiler/ir/ir.h"

int fay_unit_object(struct fay_unit *unit, LLVMMemoryBufferRef *object);
int fay_unit_assembly(struct fay_unit *unit, struct fay_buffer *text);
int fay_machine_create(LLVMTargetMachineRef *machine, const char *cpu, const char *features,
		       struct fay_error *error);

/* A linked probe: what the writer puts into an image. All pointers malloc'ed, released by
 * fay_linked_deinit(). */
struct fay_linked {
	uint8_t *text;
	size_t text_size;
	uint8_t *rodata;
	size_t rodata_size, rodata_align;
	struct fay_fixup { /* 32-bit field in text: target - place, once addresses are known */
		size_t place;
		enum { FIXUP_TEXT, FIXUP_RODATA, FIXUP_SLOT } kind;
		/* offset in text or rodata (may be outside by the addend), or number of the slot */
		int64_t target;
		int64_t addend; /* SLOT only */
	} *fixups;
	size_t fixup_count;
	char *slots[FAY_IMAGE_MAX_HELPERS];
	unsigned slot_count;
	struct fay_linked_symbol {
		char *name;
		uint64_t offset, size; /* in text */
	} *symbols;
	size_t symbol_count;
	struct fay_linked_line {
		uint32_t offset, line, column;
		char *file;
	} *lines;
	size_t line_count;
};
int fay_link(const void *object, size_t size, bool lines, struct fay_linked *linked,
	     struct fay_error *error);
int fay_link_lines(const void *object, size_t size, struct fay_linked *linked,
		   struct fay_error *error);
void fay_linked_deinit(struct fay_linked *linked);
int fay_write_image(const struct fay_image_spec *spec, const struct fay_linked *linked,
		    struct fay_buffer *image, struct fay_error *error);

#endif
