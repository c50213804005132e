/* SPDX-License-Identifier: MIT */
/*
 * The budgets of a verification: the bump allocator that owns all a verdict points to, and the
 * clock.
 *
 * One owner and one release make leaks impossible on the many early exits of a verifier, and the
 * cap turns hostile images that ask for much memory into an outcome (EXHAUSTED) instead of a dead
 * process. Nothing is ever freed singly. Blocks double up to BLOCK_MAX.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rules.h"

#define BLOCK_MIN ((size_t)64 << 10)
#define BLOCK_MAX ((size_t)4 << 20)
#define ALIGNMENT ((size_t)16)

struct block {
	struct block *next;
	size_t size; /* bytes behind this header */
	size_t used;
	size_t padding; /* keeps the bytes 16-byte aligned */
};
_Static_assert(sizeof(struct block) % 16 == 0, "the bytes behind a block's header are aligned");

struct fay_arena {
	struct block *blocks;
	size_t max_bytes, total, next_size;
};

struct fay_arena *fay_arena_create(size_t max_bytes)
{
	struct fay_arena *arena = calloc(1, sizeof(*arena));

	if (!arena)
		return NULL;
	arena->max_bytes = max_bytes;
	arena->next_size = BLOCK_MIN;
	return arena;
}

void fay_arena_destroy(struct fay_arena *arena)
{
	if (!arena)
		return;
	for (struct block *block = arena->blocks, *next; block; block = next) {
		next = block->next;
		free(block);
	}
	free(arena);
}

static struct block *block_add(struct fay_arena *arena, size_t size)
{
	size_t bytes = size > arena->next_size ? size : arena->next_size;
	struct block *block;

	if (bytes > arena->max_bytes - arena->total)
		bytes = size;
	if (bytes > arena->max_bytes - arena->total)
		return NULL;
	/* calloc: large blocks come from fresh pages, which cost nothing to zero. */
	block = calloc(1, sizeof(*block) + bytes);
	if (!block)
		return NULL;
	block->size = bytes;
	block->next = arena->blocks;
	arena->blocks = block;
	arena->total += bytes;
	if (arena->next_size < BLOCK_MAX)
		arena->next_size *= 2;
	return block;
}

void *fay_arena_alloc(struct fay_arena *arena, size_t size)
{
	struct block *block = arena->blocks;
	void *bytes;

	if (size > arena->max_bytes || size > SIZE_MAX - ALIGNMENT - sizeof(struct block))
		return NULL;
	size = (size + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
	if (size == 0)
		size = ALIGNMENT;
	if (!block || block->size - block->used < size)
		block = block_add(arena, size);
	if (!block)
		return NULL;
	bytes = (uint8_t *)(block + 1) + block->used;
	block->used += size;
	return bytes;
}

char *fay_arena_printf(struct fay_arena *arena, const char *format, ...)
{
	va_list args;
	int length;
	char *text;

	va_start(args, format);
	length = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (length < 0)
		return NULL;
	text = fay_arena_alloc(arena, (size_t)length + 1);
	if (!text)
		return NULL;
	va_start(args, format);
	vsnprintf(text, (size_t)length + 1, format, args);
	va_end(args);
	return text;
}

uint64_t fay_monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}
