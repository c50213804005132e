/* SPDX-License-Identifier: MIT */
/*
 * A copy of the pages that hold many patched places, so that thousands of them are read and written
 * with a handful of system calls while the target is stopped.
 *
 *	make room     before the stop: one buffer, neighbouring pages side by side, its memory
 *		      already present
 *	read          in the stop: one read a run of neighbouring pages
 *	at, change    the bytes of a place; changing marks its pages
 *	write         one read and one write a run of changed pages
 *
 * Whole pages are written. While the target is stopped the kernel may still change its text, when
 * somebody sets a uprobe or takes one away: so a run is read again right before it is written, what
 * others have changed stays as it is, and a place that is not what it was when it was changed here
 * is a failure.
 */
#ifndef FAY_LOADER_TEXT_H
#define FAY_LOADER_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fay/error.h"

struct fay_text_page {
	uint64_t address;
	bool readable, changed;
};
#define FAY_TEXT_CHANGE_MAX 8u
struct fay_text_edit {
	uint64_t address, order;
	uint8_t size, was[FAY_TEXT_CHANGE_MAX], bytes[FAY_TEXT_CHANGE_MAX];
};
struct fay_text {
	struct fay_text_page *pages; /* sorted */
	size_t count, capacity;
	uint8_t *bytes; /* count pages */
	size_t bytes_size;
	/* in the order of their making, and sorted by address when written */
	struct fay_text_edit *edits;
	size_t edit_count, edit_capacity;
};

/* The bytes [address, address + size) will be wanted. Any order, any number of times. */
int fay_text_want(struct fay_text *text, uint64_t address, size_t size, struct fay_error *error);
/* All is said: allocates. */
int fay_text_ready(struct fay_text *text, struct fay_error *error);
/* `memory` is /proc/PID/mem. Pages that cannot be read are marked; that is no failure. */
void fay_text_read(struct fay_text *text, int memory);
/* NULL if it was not wanted or is not readable. Valid until fay_text_deinit(). */
const uint8_t *fay_text_at(const struct fay_text *text, uint64_t address, size_t size);
/* FAY_TEXT_CHANGE_MAX bytes at most. False: a byte is missing, or out of memory. */
bool fay_text_change(struct fay_text *text, uint64_t address, const void *bytes, size_t size);
/* Writes the changed pages. On failure errno is set (EBUSY: somebody has changed a place
 * meanwhile), and some may have been written; those that have not stay marked. */
int fay_text_write(struct fay_text *text, int memory);
void fay_text_deinit(struct fay_text *text);

#endif
