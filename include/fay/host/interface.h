/* SPDX-License-Identifier: MIT */
/*
 * A host interface: what a verified image may see and call. These are its canonical bytes, which
 * the checker reads; docs/internals/host-interface.md has the text that hosts write and what each
 * word promises. What is not used is zero. SHA-256 of the whole stands in an extension's image.
 */
#ifndef FAY_INTERFACE_H
#define FAY_INTERFACE_H

#include <stdint.h>

#include "fay/image/parts.h"

#define FAY_INTERFACE_MAGIC "FAYHOST1" /* 8 bytes, no NUL */
#define FAY_INTERFACE_PARAMETERS 6u    /* in rdi rsi rdx rcx r8 r9 */
#define FAY_INTERFACE_REGIONS 8u
#define FAY_INTERFACE_FIELDS 32u
#define FAY_INTERFACE_HELPERS 32u
#define FAY_INTERFACE_NAME 32u        /* bytes of a helper's name with its NUL */
#define FAY_INTERFACE_SIZE (1u << 30) /* bytes of a region at most */
#define FAY_INTERFACE_ALIGNMENT 64u   /* of a region's start, at most */
#define FAY_INTERFACE_COST (1u << 20) /* instructions of a helper, at most */

#define FAY_EXTENSION_SECTION ".fay.interface" /* of an image: the interface's SHA-256 */
#define FAY_EXTENSION_HASH 32u
/* In the place of an enum fay_probe_kind: an entry that a host calls; its pattern is its name. */
#define FAY_EXTENSION_ENTRY 11u

/* What a parameter, an argument of a helper or a result is: an integer of 64 bits, or a pointer. */
enum fay_interface_kind {
	FAY_VALUE_NONE = 0,
	FAY_VALUE_NUMBER = 1, /* in [lo, hi] */
	FAY_VALUE_START = 2,  /* where region `of` begins */
	FAY_VALUE_SIZE = 3,   /* of parameters: how many bytes region `of` has, in [lo, hi] */
	/* of arguments: a pointer to bytes, as many as argument `count` - 1 says, or hi */
	FAY_VALUE_READ = 4,  /* which the helper reads */
	FAY_VALUE_WRITE = 5, /* which it writes, all of them: on the stack or FAY_REGION_FILLED */
	/* of probes' helpers only */
	FAY_VALUE_ADDRESS = 6, /* a number that is the traced program's address; or as READ */
	FAY_VALUE_STATE = 7,   /* the constant number of a state of kind `of`; counts as its row */
};

struct fay_interface_value {
	uint8_t kind, of, count, reserved[5];
	int64_t lo;
	uint64_t hi; /* if lo is negative, as signed */
};

enum fay_interface_permission {
	FAY_REGION_READ = 1,     /* every region has it */
	FAY_REGION_WRITE = 2,    /* by the image */
	FAY_REGION_FILLED = 4,   /* helpers may be told to write there; with WRITE only */
	FAY_REGION_CONSTANT = 8, /* nobody writes it while the image runs; without WRITE only */
};
/* Where a region's size comes from. `size` is what it is at most, PASSED and LOCAL. */
enum fay_interface_extent {
	FAY_EXTENT_FIXED = 1,
	FAY_EXTENT_PASSED = 2, /* the one parameter that is its SIZE */
	FAY_EXTENT_LOCAL = 3,  /* the image's local_size */
	FAY_EXTENT_GLOBAL = 4, /* of probes only: the image's global_size */
};

struct fay_interface_region {
	uint32_t size, alignment;
	uint8_t permission, extent, reserved[6];
};

/* Bytes of a FIXED region: if it has fields, all others may not be touched. In order. */
struct fay_interface_field {
	uint32_t offset, size;
	uint8_t region, permission, reserved[6];
};

struct fay_interface_helper {
	char name[FAY_INTERFACE_NAME]; /* what the image imports */
	struct fay_interface_value argument[FAY_INTERFACE_PARAMETERS];
	struct fay_interface_value result; /* NONE or NUMBER */
	/* instructions, beside the call; a bit for each region, FIXED or PASSED, that it ends */
	uint32_t cost, ends;
};

struct fay_interface {
	char magic[8];
	uint32_t parameter_count, region_count, field_count, helper_count;
	uint64_t max_instructions;    /* as in a policy */
	uint32_t max_stack, confined; /* likewise; 1: speculation is */
	struct fay_interface_value parameter[FAY_INTERFACE_PARAMETERS];
	struct fay_interface_value result; /* NONE or NUMBER */
	struct fay_interface_region region[FAY_INTERFACE_REGIONS];
	struct fay_interface_field field[FAY_INTERFACE_FIELDS];
	struct fay_interface_helper helper[FAY_INTERFACE_HELPERS];
};
FAY_STATIC_ASSERT(sizeof(struct fay_interface) == 7504, "canonical bytes");

#endif
