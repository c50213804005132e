/* SPDX-License-Identifier: MIT */
/*
 * Runs an image in this process: the segments mapped as the file says, the helper slots filled with
 * helpers of the test, and the probes called with an event, a LOCAL and a GLOBAL that each end at a
 * page that faults, so that one byte too far ends the test.
 */
#ifndef FAY_TEST_HARNESS_H
#define FAY_TEST_HARNESS_H

#include "fay/compiler.h"
#include "fay/event.h"
#include "fay/image.h"

#define HARNESS_ROWS 8192

struct loaded {
	uint8_t *base;
	size_t span;
	const struct fay_image_header *header;
	const struct fay_image_probe *probes;
	const struct fay_image_state *states;
	const struct fay_image_column *columns;
	const struct fay_image_line *lines;
	size_t line_count, text_size, rodata_size;
	unsigned slots;
	struct fay_event *event;
	uint8_t *local, *global;
};

/* What the helpers saw; reset by image_load(). */
struct helper_log {
	unsigned flushes, emits, reads;
	uint64_t flush_result;
	uint8_t emitted[4096];
	uint64_t emitted_state;
	unsigned flushed_rows;
	struct {
		uint64_t key, value;
	} rows[HARNESS_ROWS]; /* first key and first value word of the rows flushed */
	/* what fay_try_read can read; NULL: everything from the second page on */
	const uint8_t *readable;
	size_t readable_size;
};
extern struct helper_log helper_log;

/* Checks the ELF on the way: only GLOB_DAT relocations, sections inside segments. Fails the test if
 * anything is off. */
void image_load(const struct fay_buffer *image, struct loaded *loaded);
void image_unload(struct loaded *loaded);
void image_call(struct loaded *loaded, unsigned probe);
/* State object by name in LOCAL or GLOBAL. */
void *image_state(struct loaded *loaded, const char *name);
const struct fay_image_state *image_state_info(struct loaded *loaded, const char *name);
const char *image_string(const fay_rel32 *field);
/* What fay_try_read does in images, and what native references of images can use. */
int64_t harness_try_read(void *to, uint64_t size, uint64_t address);
/* `size` bytes of zeros that end where a page begins that cannot be touched; and back. */
void *harness_guarded(size_t size);
void harness_guarded_free(void *p, size_t size);
/* The verifier accepts it, where there is one. */
void image_verify(const char *name, const struct fay_buffer *image);

#endif
