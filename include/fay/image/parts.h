/* SPDX-License-Identifier: MIT */
/*
 * What of a probe image decides what its code can do: probes, states and the format's limits. All
 * that the checker needs of image.h, which has the rest.
 */
#ifndef FAY_IMAGE_PARTS_H
#define FAY_IMAGE_PARTS_H

#include <stdint.h>

/* Layouts are checked by C and by C++. */
#ifdef __cplusplus
#define FAY_STATIC_ASSERT static_assert
#else
#define FAY_STATIC_ASSERT _Static_assert
#endif

/* Limits of the format (each is a rejection by rule IMG-LIMIT). */
#define FAY_IMAGE_MAX_FILE (64u << 20) /* bytes of the file */
/* bytes from the lowest to the highest used virtual address */
#define FAY_IMAGE_MAX_SPAN (16u << 20)
#define FAY_IMAGE_MAX_PROBES 1024u
#define FAY_IMAGE_MAX_STATES 1024u
#define FAY_IMAGE_MAX_COLUMNS 8192u
#define FAY_IMAGE_MAX_HELPERS 64u        /* slots of .got */
#define FAY_IMAGE_MAX_LOCAL (4u << 20)   /* bytes of thread-local state */
#define FAY_IMAGE_MAX_GLOBAL (16u << 20) /* bytes of module-global state */
#define FAY_IMAGE_MAX_STRING 256u        /* bytes of one string with its NUL */
#define FAY_IMAGE_COLUMN 32u             /* bytes of a struct fay_image_column */
#define FAY_EVENT_SIZE 296u              /* bytes of a struct fay_event */
#define FAY_TRY_READ_MAX 4096u           /* bytes that fay_try_read() reads */

typedef int32_t fay_rel32;

enum fay_probe_kind {
	FAY_PROBE_ENTRY = 1,
	FAY_PROBE_RETURN = 2,
	FAY_PROBE_EXCEPTION = 3,
	FAY_PROBE_OFFSET = 4, /* parameter: byte offset from the function's start */
	FAY_PROBE_BEGIN = 5,
	FAY_PROBE_END = 6,
	FAY_PROBE_THREAD_BEGIN = 7,
	FAY_PROBE_THREAD_END = 8,
	FAY_PROBE_TIMER = 9,   /* parameter: period in nanoseconds */
	FAY_PROBE_MARKER = 10, /* USDT; pattern "module!provider:name" */
};

struct fay_image_probe {
	/* string: "module!function", globs allowed; "" for kinds 5 to 9; a marker's:
	 * "module!provider:name" */
	fay_rel32 pattern;
	uint32_t kind;      /* enum fay_probe_kind */
	fay_rel32 code;     /* first instruction, in .text */
	uint32_t reserved0; /* 0 */
	uint64_t parameter;
	uint64_t reserved1; /* 0 */
};
FAY_STATIC_ASSERT(sizeof(struct fay_image_probe) == 32, "image format");

/*
 * State objects. All-zero bytes are the identity of every object and of every merge operator, so
 * fresh state is zeroed state.
 *
 * FAY_STATE_CELL one row at `offset`: the value columns only; row_size bytes. FAY_STATE_TABLE at
 * `offset`: struct fay_table_header, then `rows` rows (a power of two) of row_size bytes. A row
 * begins
 *                   with a 64-bit tag: 0 means empty, anything else occupied. Open addressing; who
 *                     inserts chooses the tag
 *                   and the row, the aggregator only walks occupied rows and merges by the key
 *                     columns.
 * FAY_STATE_STREAM no storage in the region (size 0): rows of row_size bytes that the probe hands
 * to fay_emit().
 */
enum fay_state_kind { FAY_STATE_CELL = 1, FAY_STATE_TABLE = 2, FAY_STATE_STREAM = 3 };
enum fay_state_scope { FAY_SCOPE_LOCAL = 1, FAY_SCOPE_GLOBAL = 2 };

struct fay_image_state {
	fay_rel32 name;        /* string, not empty, unique in the image */
	uint16_t kind;         /* enum fay_state_kind */
	uint16_t scope;        /* enum fay_state_scope; tables and streams are local */
	uint32_t offset;       /* bytes from the region's start, multiple of 8 */
	uint32_t size;         /* bytes; CELL: row_size, TABLE: 16 + rows * row_size, STREAM: 0 */
	uint32_t first_column; /* index into .fay.columns; key columns first, then value columns */
	uint16_t keys;
	uint16_t values;
	uint32_t rows;        /* TABLE: power of two, 2..65536; CELL and STREAM: 1 */
	uint32_t row_size;    /* bytes, multiple of 8, at most 4096 */
	uint32_t reserved[4]; /* 0 */
};
FAY_STATIC_ASSERT(sizeof(struct fay_image_state) == 48, "image format");

#endif
