/* SPDX-License-Identifier: MIT */
/*
 * A program of corpus.h twice: as an image that is guarded, and compiled natively by clang-19 as it stands; both run the same events, with packets, texts and
 * records to read, and their states must be equal.
 */
#ifndef FAY_TEST_REFERENCE_H
#define FAY_TEST_REFERENCE_H

#include <stdbool.h>

#include "../compiler/harness.h"

#define DATA_SIZE 16384

struct native {
	void *library;
	void (*probe)(const struct fay_event *event, void *local, void *global);
	uint32_t local_size, global_size;
};

/* SOURCES/NAME.c to FOLDER/NAME.so, all of them at once, on all processors. */
void native_build(const char *sources, const char *folder, char *const *names, unsigned count);
void native_open(const char *path, struct native *native);
/* Runs both; `data` are DATA_SIZE bytes for them to read. Whether the state was the same after each event. */
bool native_compare(const char *name, struct loaded *loaded, struct native *native, uint8_t *data, unsigned events);
/* Whether the verifier accepts it; prints why not. */
bool image_accepted(const char *name, const struct fay_buffer *image);

#endif
