/* SPDX-License-Identifier: MIT */
/*
 * What the loader and the in-target runtime agree on.
 *
 * The runtime is one flat, position-independent blob (runtime.c, runtime_entry.S, runtime.lds) that
 * the loader copies to the start of each code zone. The blob begins with struct fay_runtime_header,
 * whose offsets lead to everything else. The configuration inside it is filled by the loader before
 * the zone is sealed; in the target it is read-only.
 */
#ifndef FAY_DISPATCHER_RUNTIME_H
#define FAY_DISPATCHER_RUNTIME_H

#include <stdint.h>

#define FAY_RUNTIME_MAGIC 0x454d495459414621u

/*
 * The thread table: open addressing, linear probing. An entry's key is the thread's fs base, plus
 * one where a thread may have base 0, so that zeroed memory is an empty table (a forked child finds
 * it so: MADV_WIPEONFORK). Entries are only ever added.
 */
#define FAY_THREAD_TABLE_BITS 13u
#define FAY_THREAD_TABLE_ENTRIES (1u << FAY_THREAD_TABLE_BITS)
#define FAY_THREAD_ENTRY_BITS 6u /* a cache line each */
/* Behind the table, and wiped on fork like it: the number of the process, a uint32_t.
 * FAY_PROCESS_TRACED: written by the loader; 0: a forked child without events. */
#define FAY_PROCESS_AT (FAY_THREAD_TABLE_ENTRIES << FAY_THREAD_ENTRY_BITS)
#define FAY_THREAD_TABLE_BYTES (FAY_PROCESS_AT + 4096u)
/*
 * Threads' fs bases lie a stack apart, or a control block: multiples of a few hundred bytes to many
 * megabytes. The multiplier is a positive imm32 for `imul r64, r64, imm32`, so the product's
 * uppermost bits say nothing of the lower 20 bits of the base; those from bit 30 on depend on bits
 * 0 to 42. Of random odd multipliers this one has the fewest collisions for 300 to 2,500 threads at
 * equal distances of 2 KiB to 256 MiB (tests/loader/test_thread_table.c).
 */
#define FAY_THREAD_HASH_MULTIPLIER 0x4deb156fu
#define FAY_THREAD_HASH_SHIFT 30u

struct fay_thread_entry {
	/* fs base + fay_config.key_step; 0: empty; FAY_THREAD_TAKEN: being filled */
	uint64_t key;
	uint64_t local; /* address of the slot's LOCAL; 0: the thread is left out */
	uint32_t tid;   /* of the thread that it was filled for, if only some threads are traced */
	uint32_t reserved[11];
};
_Static_assert(sizeof(struct fay_thread_entry) == 1u << FAY_THREAD_ENTRY_BITS, "thread entry");
/* Where the search for a thread's entry begins. The trampoline looks there only. */
static inline uint32_t fay_thread_home(uint64_t fs_base)
{
	return (fs_base * FAY_THREAD_HASH_MULTIPLIER >> FAY_THREAD_HASH_SHIFT) %
	       FAY_THREAD_TABLE_ENTRIES;
}
#define FAY_THREAD_TAKEN UINT64_MAX

/* Geometry of one state object, as the helpers need it. */
struct fay_runtime_state {
	uint32_t kind; /* enum fay_state_kind */
	uint32_t offset;
	uint32_t rows;
	uint32_t row_size;
};

/*
 * Calls under way whose beginning is to be known when they end: a table for each slot, in memory
 * that is private to the process, so that a forked child has its own copy of its parent's. A call
 * is found by the place of its return address on the program's stack (`slot` below), which no two
 * calls under way share, on whatever stack and in whatever thread. See records.c.
 */
struct fay_record {
	/* 0: free. With FAY_RECORD_PENDING: its function has been left by a jump to another one,
	 * and ends with that. With FAY_RECORD_LEFT: by longjmp, it seems */
	uint64_t slot;
	uint64_t cycles;  /* time stamp counter at the call */
	uint64_t watched; /* address of the function's struct fay_watched; 0: being filled */
	uint64_t target;  /* of one that is pending: the function that was jumped to */
};
/* What a record is where probes read, when a call ends, what it began with (FAY_FIELDS_KEPT). */
struct fay_wide_record {
	struct fay_record call;
	struct fay_kept {
		uint64_t arg[6];
		uint64_t caller;
	} kept;
	uint64_t reserved[5];
};
#define FAY_RECORD_BITS 5u
#define FAY_WIDE_RECORD_BITS 7u
_Static_assert(sizeof(struct fay_record) == 1u << FAY_RECORD_BITS &&
		       sizeof(struct fay_wide_record) == 1u << FAY_WIDE_RECORD_BITS,
	       "records are found by shifts");
#define FAY_RECORD_PENDING 1u
#define FAY_RECORD_LEFT 2u
#define FAY_RECORD_MARKS 7u
#define FAY_RECORDS 4096u      /* a slot; a power of two */
#define FAY_RECORDS_PROBED 16u /* places from its home at which a call may have its record */
struct fay_records {
	uint64_t used;      /* 1 once a thread of this process has had the slot */
	uint64_t scattered; /* 1 once a record was not at its home */
	uint64_t reserved[2];
	struct fay_record items[]; /* FAY_RECORDS of them, or so many wide ones */
};
static inline uint64_t fay_records_stride(unsigned bits)
{
	return ((uint64_t)FAY_RECORDS << bits) + 4096;
}
/* The place of the first that is looked at for a call's record. Frames lie some words apart, and
 * stacks at equal distances, as threads' fs bases do. */
#define FAY_RECORD_HASH_SHIFT 30u
static inline uint64_t fay_record_home(uint64_t slot)
{
	return (slot * FAY_THREAD_HASH_MULTIPLIER >> FAY_RECORD_HASH_SHIFT) % FAY_RECORDS;
}

#define FAY_RUNTIME_MAX_ZONES 8u

/* A function whose exits are patched, in a session that has records. */
struct fay_watched {
	uint64_t function; /* its first byte */
	/* void returned(uint64_t cycles, void *local, uint64_t slot, const struct fay_returned *,
	 * 0, const struct fay_kept *); 0: no return probe */
	uint64_t returned;
	uint64_t left; /* likewise, for a call that was left otherwise; 0: no exception probe */
	/* address of a byte that the program can only read: not 0 while the function's jumps are
	 * taken out */
	uint64_t out;
};
/*
 * Functions by which calls are left other than by returning. At their exits all calls between their
 * own frame and the stack pointer are. Of some unwinders it has no name where they go on: what they
 * have left is known when another of these functions is called, or one that is called when they
 * have done (FAY_SWEEP_CATCH).
 */
enum fay_sweep { FAY_SWEEP_NONE, FAY_SWEEP_UNWINDER, FAY_SWEEP_LONGJMP, FAY_SWEEP_CATCH };
#define FAY_SWEPT_PERHAPS 1u /* in fay_slot_header.swept_from: it is longjmp */
/* What a function returned, as far as probes can read it, and rbp, which is its caller's. */
struct fay_returned {
	uint64_t rax, rdx, xmm0, rbp;
};

/* By how much the counter is shifted for a multiplier that is for a shift of 32 bits of the
 * product: not at all, if it counts faster than 1 GHz; else 2^60 cycles of at least 62.5 MHz
 * fit. */
static inline uint8_t fay_time_shift(uint64_t multiplier)
{
	return multiplier >> 32 ? 4 : 0;
}

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
	/* event.time = ((tsc << time_shift) * multiplier >> 64) + offset: see fay_time_shift() */
	uint64_t time_multiplier;
	uint64_t time_offset;
	/* slot_max of struct fay_records, fay_records_stride() apart; 0: there are none */
	uint64_t records;
	uint64_t record_bits; /* of a record's size */
	/* the runtime is mapped in fay itself: the traced process, whose memory is read; else 0 */
	uint64_t hosted_pid;
	/* 0 where the trampolines read the fs base at fs:0, and so none is 0; else 1 */
	uint64_t key_step;
	uint32_t tids[16]; /* the threads that are traced, tid_count of them; 0: all */
	uint64_t tid_count;
	/* st_dev, st_ino of the traced process's /proc/PID/ns/pid; 0: not known */
	uint64_t pid_namespace[2];
	/* fs:offset holds the thread id; below 0: it does not */
	int64_t tid_offset;
	/* The initial stack, or its upper part, as it was mapped when the program was patched; and
	 * where behind fs:0 glibc notes a thread's stack (stacks.c). 0: not known. */
	uint64_t main_stack, main_stack_end, stack_noted;
	uint64_t pid_read;   /* some probe reads event.pid */
	uint64_t when_full;  /* enum fay_when_full */
	uint64_t rendezvous; /* struct r_debug, which the dynamic linker writes; 0: not known */
	/* the fay that answers, as the traced process sees it; 0: it cannot */
	uint64_t owner;
	uint64_t zone_count; /* 0: there are too many (none of them watches calls) */
	struct fay_runtime_zone {
		uint64_t start, end;             /* of a zone's code */
		uint64_t watched, watched_count; /* struct fay_watched, by function */
	} zones[FAY_RUNTIME_MAX_ZONES];
};
#define FAY_RUNTIME_CONFIG_ROOM 576u
_Static_assert(sizeof(struct fay_runtime_config) <= FAY_RUNTIME_CONFIG_ROOM,
	       "room for the configuration");

/* Offsets are bytes from the start of the blob. */
struct fay_runtime_header {
	uint64_t magic;
	uint32_t config; /* struct fay_runtime_config */
	uint32_t slow;   /* rsi = key -> rsi = LOCAL or 0; keeps every other register */
	/* rsi = LOCAL: the thread's name to its slot. Keeps every register */
	uint32_t name;
	uint32_t helper[3]; /* by enum fay_helper */
	/* rsi = LOCAL, rax = slot, rdx = struct fay_watched -> rdi = a free record. Keeps every
	 * other register */
	uint32_t begin;
	/* rsi = LOCAL, rax = slot, rdi and rdx = the function's rax and rdx, rbp = its own: does
	 * all that is to be done at a return. Keeps every register */
	uint32_t end;
	/* rsi = LOCAL, rax = slot, rdi = where the jump leads: likewise where a function is left by
	 * a jump. Keeps every register */
	uint32_t jump;
	/* rsi = LOCAL, rax = what the stack pointer will be: calls below are left. Keeps every
	 * register */
	uint32_t sweep;
	/* rsi = LOCAL of a thread that is marked busy -> zero flag set: by a probe that was left
	 * for good; it is no longer marked. Keeps every register */
	uint32_t busy;
	/* hook at the start of the function that the dynamic linker calls for debuggers */
	uint32_t modules;
};

/* The blob as built into libfay_dispatcher. */
extern const uint8_t fay_runtime_blob[];
extern const uint8_t fay_runtime_blob_end[];

#endif
