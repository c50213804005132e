/* SPDX-License-Identifier: MIT */
/*
 * Entry trampolines: the code between a patched function entry and the verified probes.
 *
 * fay_trampoline_emit() writes one for one patch point at a known address. It ends where the displaced instructions have to follow; the caller
 * (the loader) appends those.
 */
#ifndef FAY_DISPATCHER_TRAMPOLINE_H
#define FAY_DISPATCHER_TRAMPOLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fay/verify.h"

/* Upper bounds, in bytes, for sizing a zone before its address is known. */
#define FAY_TRAMPOLINE_BASE_MAX 640u
#define FAY_TRAMPOLINE_VECTORS_MAX 448u /* more, if any probe of the point clobbers vectors or uses_mxcsr */
#define FAY_TRAMPOLINE_PROBE_MAX 64u

struct fay_trampoline_probe {
	const struct fay_probe_facts *facts;
	uint64_t code; /* address in the target */
};

struct fay_trampoline_spec {
	uint64_t address;  /* of the first byte, in the target */
	uint64_t runtime;  /* address of the runtime blob, within 2 GiB */
	uint64_t global;   /* address of GLOBAL */
	uint64_t function; /* fay_name_hash values of this point */
	uint64_t module;
	int32_t tid_offset; /* fs:offset holds the thread id (glibc's TCB, checked by the loader); -1: ask the kernel */
	bool thread_pointer; /* fs:0 holds the fs base (checked by the loader); else rdfsbase is used, which is slow */
	const struct fay_trampoline_probe *probes; /* run in this order */
	size_t probe_count;
};

/*
 * Writes the trampoline to `code`. *displaced is where execution continues after the probes: the end of what was written is the out-of-line
 * part, so the hole of `displaced_room` bytes at *displaced is left for the displaced instructions. Returns the bytes used, 0 if
 * `capacity` is too small or something is out of a rel32's reach.
 */
size_t fay_trampoline_emit(const struct fay_trampoline_spec *spec, size_t displaced_room, uint8_t *code,
			   size_t capacity, size_t *displaced);

/* NULL if these probes can be dispatched, else why not. */
const char *fay_trampoline_refusal(const struct fay_probe_facts *facts);

#endif
