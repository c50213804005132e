/* SPDX-License-Identifier: MIT */
/*
 * The probe image, format version 1. docs/probe-image.md is the specification; this header and
 * image/parts.h are its C form.
 *
 * An ELF64 little-endian x86-64 shared object (ET_DYN). These sections mean something, all others
 * that are allocated must be on the ignore list of docs/probe-image.md or the image is refused:
 *
 *   .text         code, SHF_ALLOC|SHF_EXECINSTR, not writable required
 *   .rodata       read-only data, SHF_ALLOC optional
 *   .got          helper slots, 8 bytes each, filled by R_X86_64_GLOB_DAT relocations only optional
 *   .rela.dyn     those relocations; .dynsym/.dynstr name the helpers optional
 *   .fay.image    struct fay_image_header, exactly one required
 *   .fay.probes   struct fay_image_probe[probe_count] required
 *   .fay.state    struct fay_image_state[state_count] optional
 *   .fay.columns  struct fay_image_column[column_count] optional
 *   .fay.strings  NUL-terminated UTF-8 strings required
 *   .fay.lines    struct fay_image_line[], sorted by code offset optional
 *
 * A `fay_rel32` is a self-relative reference: the virtual address of the field plus its signed
 * value is the virtual address of the target, so no run-time relocation is needed (assembly: `.long
 * target - .`). 0 means "none" where that is allowed.
 *
 * Helpers are called through their slot: `call *slot(%rip)`, the code that `-fno-plt` gives in any
 * toolchain.
 */
#ifndef FAY_IMAGE_H
#define FAY_IMAGE_H

#include <stdint.h>

#include "fay/event.h"
#include "fay/image/parts.h"

#define FAY_IMAGE_MAGIC "FAYPROBE" /* 8 bytes, no NUL */
#define FAY_IMAGE_VERSION 1u

struct fay_image_header {
	char magic[8];        /* FAY_IMAGE_MAGIC */
	uint32_t version;     /* FAY_IMAGE_VERSION */
	uint32_t flags;       /* 0 */
	uint32_t local_size;  /* bytes of LOCAL, multiple of 8 */
	uint32_t global_size; /* bytes of GLOBAL, multiple of 8 */
	uint32_t probe_count;
	uint32_t state_count;
	uint32_t column_count;
	uint32_t reserved[7]; /* 0 */
};
FAY_STATIC_ASSERT(sizeof(struct fay_image_header) == 64, "image format");

struct fay_table_header {
	uint64_t used; /* occupied rows */
	/* number of the last row that may be occupied, by which readers need not look at all of a
	 * large table; 0: any may be */
	uint64_t last;
};

enum fay_column_type {
	FAY_TYPE_I64 = 1,
	FAY_TYPE_U64 = 2,
	FAY_TYPE_STRING = 3,   /* `size` bytes, NUL padded */
	FAY_TYPE_FUNCTION = 4, /* u64 from event.function; shown by name */
	FAY_TYPE_TIME = 5,     /* u64, nanoseconds since the epoch */
	FAY_TYPE_BOOL = 6,     /* u64, 0 or 1 */
};

/*
 * Merge operators: how two partials of one value column become one. All are associative and
 * commutative, identity all-zero.
 *
 *   COUNT, SUM     u64/i64 addition modulo 2^64, 8 bytes
 *   MAX            8 bytes; holds max(x ^ bias), bias 1<<63 for I64, 0 for U64; merged as unsigned
 *		    maximum
 *   MIN            8 bytes; holds max(~(x ^ bias)): likewise unsigned maximum
 *   AVERAGE        16 bytes: sum, then count
 *   HIST_LOG2      65 * 8 bytes: bucket 0 for x <= 0, bucket 1 + floor(log2 x) otherwise
 *   HIST_LINEAR    (2 + n) * 8 bytes, n = size / 8 - 2: bucket 0 underflow (x < param[0]), then n
 *		    buckets of width param[1], last overflow
 *   HIST_LOGLINEAR 488 * 8 bytes: bucket 0 for x <= 0, x for x < 8, then 8 equal buckets in each
 *     power of two (fay_loglinear_bucket(x, 3)); added
 *   QUANTILE       960 * 4 bytes: likewise with 16 buckets in each power of two; 32-bit counts,
 *		    added, that stop at 2^32 - 1
 *   DISTINCT       2^p bytes, p from 4 to 12: HyperLogLog's registers; bytewise maximum
 *   TOP            16 + k * 16 bytes: total, error, then k pairs of key and count, count 0 for
 *		    none. Counts of equal keys are added; if more than k keys are left, the (k+1)-th
 *		    largest count is taken from all and added to error. Commutative; another
 *		    grouping may give other counts, within the same bound: true count - error <=
 *		    count <= true count, error <= total / (k + 1)
 *   FIRST, LAST    16 bytes: time (FIRST: its complement), then the value; the larger pair,
 *		    compared as (time, value)
 *   SAMPLE         k * 16 bytes: pairs of value and random number (0: none); the k largest by
 *		    (random number, value)
 *
 * fay/sketch.h feeds the last six.
 */
enum fay_merge {
	FAY_MERGE_KEY = 0, /* a key column: not merged, grouped by */
	FAY_MERGE_COUNT = 1,
	FAY_MERGE_SUM = 2,
	FAY_MERGE_MIN = 3,
	FAY_MERGE_MAX = 4,
	FAY_MERGE_AVERAGE = 5,
	FAY_MERGE_HIST_LOG2 = 6,
	FAY_MERGE_HIST_LINEAR = 7,
	FAY_MERGE_HIST_LOGLINEAR = 8,
	FAY_MERGE_QUANTILE = 9,
	FAY_MERGE_DISTINCT = 10,
	FAY_MERGE_TOP = 11,
	FAY_MERGE_FIRST = 12,
	FAY_MERGE_LAST = 13,
	FAY_MERGE_SAMPLE = 14,
};
#define FAY_HIST_LOG2_BUCKETS 65u
#define FAY_HIST_LOGLINEAR_BITS 3u
#define FAY_HIST_LOGLINEAR_BUCKETS ((64u - FAY_HIST_LOGLINEAR_BITS) << FAY_HIST_LOGLINEAR_BITS)
#define FAY_QUANTILE_BITS 4u
#define FAY_QUANTILE_BUCKETS ((64u - FAY_QUANTILE_BITS) << FAY_QUANTILE_BITS)

struct fay_image_column {
	fay_rel32 name;   /* string */
	uint16_t type;    /* enum fay_column_type (of the values fed in) */
	uint16_t merge;   /* enum fay_merge; STREAM columns are all FAY_MERGE_KEY */
	uint32_t offset;  /* bytes from the row's start, multiple of 8; in a TABLE at least 8 */
	uint32_t size;    /* bytes, multiple of 8 */
	int64_t param[2]; /* by operator, else 0 */
};
FAY_STATIC_ASSERT(sizeof(struct fay_image_column) == FAY_IMAGE_COLUMN, "image format");

struct fay_image_line {
	uint32_t code_offset; /* bytes from the start of .text */
	uint32_t line;        /* from 1 */
	fay_rel32 file;       /* string */
	uint32_t column;      /* from 1; 0 unknown */
};
FAY_STATIC_ASSERT(sizeof(struct fay_image_line) == 16, "image format");

/*
 * Helpers: the trusted functions that a probe may import, by symbol name. System V calling
 * convention; all caller-saved general registers are clobbered, vector registers are not. The
 * verifier holds calls to their contracts (verifier/prover/transfer/transfer_helper.c).
 *
 *   uint64_t fay_flush(void *local, uint64_t state)
 *       local must be the start of LOCAL; state a constant index of a TABLE. Hands all its rows to
 *         the aggregator and clears the
 *       table. 0: done, the table is empty. 1: no room; the table is unchanged and this event was
 *         counted as lost: the probe
 *       must leave without recording it.
 *   uint64_t fay_emit(void *local, uint64_t state, const void *row)
 *       state a constant index of a STREAM, row points to row_size initialised readable bytes. 0:
 *         sent. 1: no room, counted as lost.
 *   int64_t fay_try_read(void *to, uint64_t size, uint64_t address)
 *       Fault-safe read of the traced program's memory at `address`, a number (or a pointer, of
 *         what the probe may read itself). `to` points to `size` writable bytes of the probe's
 *         stack or LOCAL, size at most
 *       4096. 0: read. -1: some byte is not readable; all of `to` is zeroed. Either way all `size`
 *         bytes are initialised after.
 */
#endif
