/* SPDX-License-Identifier: MIT */
/* Makes a valid image around code that a test emits, so that nothing but the code is at fault. */
#ifndef FAY_TESTS_IMAGE_BUILDER_H
#define FAY_TESTS_IMAGE_BUILDER_H

#include <stddef.h>
#include <stdint.h>

#define PAGE 4096u
#define RODATA_FROM_TEXT 0x100000 /* where .rodata is put, if there is one */

struct builder {
	uint8_t *code;
	size_t size, room;
	uint32_t probes;
	int32_t *rodata; /* words of .rodata, or NULL */
	uint32_t words;
};

void builder_emit(struct builder *b, const void *bytes, size_t size);
void builder_emit32(struct builder *b, int64_t value);
#define EMIT(b, ...)                                                                               \
	builder_emit(b, (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))
/* The file, in memory that is kept until the process ends. */
uint8_t *builder_finish(struct builder *b, size_t *file_size);

#endif
