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
 * The thread table: open addressing, linear probing. An entry's key is the thread's fs base, plus one where a thread may have base 0, so that zeroed memory
 * is an empty table (a forked child finds it so: MADV_WIPEONFORK). Entries are only ever added.
 */
#define FAY_THREAD_TABLE_BITS 13u
#define FAY_THREAD_TABLE_ENTRIES (1u << FAY_THREAD_TABLE_BITS)
#define FAY_THREAD_ENTRY_BITS 6u /* a cache line each: `top` is written */
/* Behind the table, and wiped on fork like it: the number of the process, a uint32_t. FAY_PROCESS_TRACED: written by the loader; 0: a forked child without events. */
#define FAY_PROCESS_AT (FAY_THREAD_TABLE_ENTRIES << FAY_THREAD_ENTRY_BITS)
#define FAY_THREAD_TABLE_BYTES (FAY_PROCESS_AT + 4096u)
/*
 * Threads' fs bases lie a stack apart, or a control block: multiples of a few hundred bytes to many megabytes. The multiplier is a positive imm32 for `imul r64, r64, imm32`, so the
 * product's uppermost bits say nothing of the lower 20 bits of the base; those from bit 30 on depend on bits 0 to 42. Of random odd multipliers this one has the fewest
 * collisions for 300 to 2,500 threads at equal distances of 2 KiB to 256 MiB (tests/loader/test_thread_table.c).
 */
#define FAY_THREAD_HASH_MULTIPLIER 0x4deb156fu
#define FAY_THREAD_HASH_SHIFT 30u

struct fay_thread_entry {
	uint64_t key;   /* fs base + fay_config.key_step; 0: empty; FAY_THREAD_TAKEN: being filled */
	uint64_t local; /* address of the slot's LOCAL; 0: the thread is left out */
	uint64_t top;   /* of the thread's struct fay_call_stack: address behind the last place that was taken. Calls in these places may have ended; all places
			   behind are empty */
	uint32_t tid;   /* of the thread that it was filled for, if only some threads are traced */
	uint32_t reserved[9];
};
_Static_assert(sizeof(struct fay_thread_entry) == 1u << FAY_THREAD_ENTRY_BITS, "thread entry");
/* Where the search for a thread's entry begins. The trampoline looks there only. */
static inline uint32_t fay_thread_home(uint64_t fs_base)
{
	return (fs_base * FAY_THREAD_HASH_MULTIPLIER >> FAY_THREAD_HASH_SHIFT) % FAY_THREAD_TABLE_ENTRIES;
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
 * Calls that are watched until they return: one stack a slot, in memory that is private to the process, so that a forked child has its own
 * copy of its caller's. See docs/dispatcher.md for who writes what, and calls.c.
 */
struct fay_call {
	uint64_t slot;    /* where on the thread's stack the return address was, and how it was left; 0: no call */
	uint64_t address; /* the real return address; 0: no call, or one that is being begun */
	uint64_t cycles;  /* time stamp counter at the call, if somebody asks for durations */
};
/* In fay_call.slot, whose lowest bits are 0 otherwise. */
#define FAY_CALL_LEFT 1u /* by a longjmp: it returns if that was a switch of stacks */
#define FAY_CALL_GONE 2u /* by the unwinder, or returned in another thread: it does not return */
#define FAY_CALL_MARKS (FAY_CALL_LEFT | FAY_CALL_GONE)
#define FAY_CALLS_FIRST 1728u /* bytes from the call stack's start to its first call */
struct fay_call_stack {
	uint64_t used;  /* 1 once a thread has taken it */
	uint64_t entry; /* address of the thread's struct fay_thread_entry; wiped on fork */
	uint64_t key;   /* of the thread, as in the thread table */
	uint64_t zero;
	uint32_t full, patience; /* times found full; the count at which dead calls are looked for again */
	uint64_t switches; /* a longjmp has led down the stack, that is, to another: so may those have done that lead up */
	uint64_t moves;    /* odd while calls are copied to other places: some lie here twice, or in another stack, too */
	uint8_t unwind[FAY_CALLS_FIRST - 80]; /* unwind information for this thread: .eh_frame_hdr, CIE, FDE */
	struct fay_call before; /* looks like a call under way that is nobody's, so that an empty stack needs no test */
};
_Static_assert(sizeof(struct fay_call_stack) == FAY_CALLS_FIRST, "call stack");
#define FAY_CALLS_MAX 4096u /* calls under way in one thread */
#define FAY_CALLS_SPARE 64u /* by which the limit may be exceeded */
#define FAY_CALLS_STRIDE 102400u
_Static_assert(FAY_CALLS_FIRST + (FAY_CALLS_MAX + FAY_CALLS_SPARE) * sizeof(struct fay_call) <= FAY_CALLS_STRIDE && FAY_CALLS_STRIDE % 4096 == 0,
	       "stride of call stacks");

#define FAY_RUNTIME_MAX_ZONES 8u

/*
 * Where the code of the process's other sessions that watch calls lies. Of several sessions that watch a call one has its return point in the slot, each other in the record of the one
 * before it. On a page of its own behind the call stacks; written by the loader, while the process is stopped, as sessions come and go. A range keeps its place; empty ones are { 0, 0 }.
 * It may become or stop being empty between a thread's two reads: no address of the program lies within a size of 0, or within any range's size from 0.
 */
#define FAY_WATCHING_SESSIONS 7u
#define FAY_OTHERS_MAX (FAY_WATCHING_SESSIONS * FAY_RUNTIME_MAX_ZONES)
#define FAY_OTHERS_BYTES 4096u
struct fay_others {
	uint64_t end; /* address behind the last range that is not empty; 0: there is none */
	uint64_t reserved;
	struct fay_other_code {
		uint64_t start, size;
	} ranges[FAY_OTHERS_MAX];
};
_Static_assert(sizeof(struct fay_others) <= FAY_OTHERS_BYTES, "other sessions' code");

/* Where watched calls of one function return to. */
struct fay_return_point {
	uint64_t address;
	uint64_t exception; /* void exception(uint64_t cycles, void *local, uint64_t slot); 0: no exception probe */
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
	uint64_t calls;       /* slot_max call stacks, behind them struct fay_others; 0: no call is watched */
	uint64_t hosted_pid;  /* the runtime is mapped in fay itself: the traced process, whose memory is read; else 0 */
	uint64_t key_step;    /* 0 where the trampolines read the fs base at fs:0, and so none is 0; else 1 */
	uint64_t unwind_step; /* 1 to FAY_WATCHING_SESSIONS, different for each session in a process; see calls_unwind.c */
	uint32_t tids[16];    /* the threads that are traced, tid_count of them; 0: all */
	uint64_t tid_count;
	uint64_t pid_namespace[2]; /* st_dev, st_ino of the traced process's /proc/PID/ns/pid; 0: not known */
	uint64_t pid_read;         /* some probe reads event.pid */
	uint64_t when_full;        /* enum fay_when_full */
	uint64_t rendezvous;   /* struct r_debug, which the dynamic linker writes; 0: not known */
	uint64_t owner;        /* the fay that answers, as the traced process sees it; 0: it cannot */
	uint64_t sees_exceptions;  /* 1: the session has exception probes; else 0 */
	uint64_t zone_count;   /* 0: there are too many (none of them watches calls) */
	struct fay_runtime_zone {
		uint64_t start, end; /* of a zone's code */
		uint64_t returns;    /* struct fay_return_point[return_count], sorted; behind it alias_count more, sorted, for the same functions: the return points of sessions that were there before */
		uint32_t return_count, alias_count;
	} zones[FAY_RUNTIME_MAX_ZONES];
};
#define FAY_RUNTIME_CONFIG_ROOM 512u
_Static_assert(sizeof(struct fay_runtime_config) <= FAY_RUNTIME_CONFIG_ROOM, "room for the configuration");

/* Offsets are bytes from the start of the blob. */
struct fay_runtime_header {
	uint64_t magic;
	uint32_t config;   /* struct fay_runtime_config */
	uint32_t slow;     /* rsi = key -> rsi = LOCAL or 0; keeps every other register */
	uint32_t comm;     /* rdi = where to put the thread's name; clobbers rax rcx r11 rdi */
	uint32_t helper[3]; /* by enum fay_helper */
	uint32_t leave;    /* rsi = LOCAL or 0, rax = fay_call.slot -> rax = return address, rdi = cycles; keeps every other register */
	uint32_t full;     /* rsi = LOCAL -> zero flag set: no room for a further call; keeps every register */
	uint32_t find_object; /* hook at the start of _dl_find_object */
	uint32_t find_fde;    /* hook at the start of _Unwind_Find_FDE */
	uint32_t longjmp;     /* hook at the start of longjmp */
	uint32_t busy;        /* rsi = LOCAL of a thread that is marked busy -> zero flag set: by a probe that was left for good; it is no longer marked. Keeps every
				 register */
	uint32_t modules;     /* hook at the start of the function that the dynamic linker calls for debuggers */
};

/* The blob as built into libfay_dispatcher. */
extern const uint8_t fay_runtime_blob[];
extern const uint8_t fay_runtime_blob_end[];

#endif
