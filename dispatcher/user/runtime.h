/* SPDX-License-Identifier: MIT */
/*
 * What the loader and the in-target runtime agree on.
 *
 * The runtime is one flat, position-independent blob (runtime.c, runtime_entry.S, runtime.lds) that the loader copies to the start of
 * each code zone. The blob begins with struct fay_runtime_header, whose offsets lead to everything else. The configuration inside it is
 * filled by the loader before the zone is sealed; in the target it is read-only.
 */
#ifndef FAY_DISPATCHER_RUNTIME_H
#define FAY_DISPATCHER_RUNTIME_H

#include <stdint.h>

#define FAY_RUNTIME_MAGIC 0x454d495459414621u

/*
 * The thread table: open addressing, linear probing. An entry's key is the thread's fs base plus one, so that zeroed memory is
 * an empty table (a forked child finds it so: MADV_WIPEONFORK). Entries are only ever added.
 */
#define FAY_THREAD_TABLE_BITS 13u
#define FAY_THREAD_TABLE_ENTRIES (1u << FAY_THREAD_TABLE_BITS)
#define FAY_THREAD_TABLE_BYTES (FAY_THREAD_TABLE_ENTRIES * 16u)
/* index = (fs base * multiplier mod 2^64) >> (64 - bits); the multiplier is a positive imm32 for `imul r64, r64, imm32`. */
#define FAY_THREAD_HASH_MULTIPLIER 0x61c88647u

struct fay_thread_entry {
	uint64_t key;   /* fs base + 1; 0: empty */
	uint64_t local; /* address of the slot's LOCAL */
};

/* Geometry of one state object, as the helpers need it. */
struct fay_runtime_state {
	uint32_t kind; /* enum fay_state_kind */
	uint32_t offset;
	uint32_t rows;
	uint32_t row_size;
};

/* All addresses are the target's. */
struct fay_runtime_config {
	uint64_t thread_table;
	uint64_t control; /* struct fay_shm_control */
	uint64_t slots;   /* first slot */
	uint64_t slot_stride;
	uint64_t spill_offset;
	uint64_t spill_size;
	uint64_t states; /* struct fay_runtime_state[state_count] */
	uint32_t state_count;
	uint32_t slot_max;
	uint64_t time_multiplier; /* event.time = (tsc * multiplier >> 32) + offset */
	uint64_t time_offset;
};

/* Offsets are bytes from the start of the blob. */
struct fay_runtime_header {
	uint64_t magic;
	uint32_t config;   /* struct fay_runtime_config */
	uint32_t slow;     /* rsi = key -> rsi = LOCAL or 0; keeps every other register */
	uint32_t comm;     /* rdi = where to put the thread's name; clobbers rax rcx r11 rdi */
	uint32_t helper[3]; /* by enum fay_helper */
};

/* The blob as built into libfay_dispatcher. */
extern const uint8_t fay_runtime_blob[];
extern const uint8_t fay_runtime_blob_end[];

#endif
