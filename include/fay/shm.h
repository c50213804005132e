/* SPDX-License-Identifier: MIT */
/*
 * The shared memory of one session in one target process: written by the target's threads, read by
 * the aggregator. It is a memfd that the aggregator keeps open, so it outlives the target.
 *
 *   0                     struct fay_shm_control, one page (FAY_SHM_PAGE)
 *   control.global_offset GLOBAL, global_size bytes, rounded up to a page
 *   control.slots_offset  slot_max slots of slot_stride bytes (a multiple of a page; untouched
 *			   slots cost no memory)
 *
 * A slot belongs to one thread at a time (the thread whose fs base is in the process's thread table
 * under that slot):
 *
 *   0                            struct fay_slot_header (FAY_SLOT_HEADER bytes)
 *   FAY_SLOT_HEADER              LOCAL, local_size bytes: `local`, the probe's second argument,
 *				  points here
 *   control.cost_offset          struct fay_place_cost[cost_count], one for each patched place
 *   control.spill_offset         spill ring, spill_size bytes (a power of two)
 *
 * Ordering guarantees: LOCAL and the header's producer fields have one writer, the owning thread
 * (or its signal handlers, which the busy flag keeps out). The spill ring is single producer,
 * single consumer: the producer fills a record and then stores spill_head with release; the
 * consumer loads it with acquire, copies, and stores spill_tail with release. Cells and tables may
 * be read while the owner writes: each aligned 8-byte word is seen whole. A table that is being
 * flushed is protected by the slot's sequence: odd while fay_flush runs; a reader that saw an odd
 * or a changed sequence reads again. With FAY_FULL_OVERWRITE both sides move spill_tail, by
 * compare-and-swap over one record: who moves it past a record has it, the consumer to count it,
 * the producer to write over it. What the consumer copied before it moved the tail is whole, since
 * the producer writes only behind the tail. A tail more than spill_size behind the head is how the
 * consumer refuses a ring that was overwritten: the producer finds no room in it and does not wait
 * for any.
 */
#ifndef FAY_SHM_H
#define FAY_SHM_H

#include <stddef.h>
#include <stdint.h>

#define FAY_SHM_MAGIC 0x3153594146464159u
#define FAY_SHM_PAGE 4096u
#define FAY_SLOT_HEADER 192u

/* What a producer does for a record that its spill ring has no room for. */
enum fay_when_full {
	/* waits for a consumer that is alive, for a moment; then the event is lost */
	FAY_FULL_BLOCK,
	FAY_FULL_DROP, /* the event is lost */
	/* the oldest records are given up, and their events are lost; each record is one row of a
	 * stream */
	FAY_FULL_OVERWRITE,
};

struct fay_shm_control {
	uint64_t magic;
	uint32_t version; /* 1 */
	uint32_t slot_max;
	uint64_t slot_stride;  /* bytes */
	uint64_t slots_offset; /* bytes from the start of the memfd */
	uint64_t global_offset;
	uint64_t global_size;
	uint64_t local_size;
	uint64_t spill_offset; /* bytes from the slot's start */
	uint64_t spill_size;   /* bytes, power of two; 0: the image has neither table nor stream */
	/* in the target's own PID namespace, as the runtime's getpid() says */
	uint32_t target_pid;
	/* struct fay_place_cost in each slot; 0: what the probes cost is not measured */
	uint32_t cost_count;
	uint64_t cost_offset;            /* bytes from the slot's start */
	uint32_t when_full;              /* enum fay_when_full */
	_Alignas(64) uint32_t slot_next; /* slots handed out; atomic; may exceed slot_max */
	/* where the next search for an ended child's slot begins; atomic */
	uint32_t retake_next;
	/* number of the process that had its first event last; atomic */
	uint32_t process_last;
	_Alignas(64) uint64_t lost_no_slot; /* events lost because no slot was left; atomic */
	/* futex word: bumped by a producer whose spill ring is over half full */
	_Alignas(64) uint32_t wake;
	/* 1 while an aggregator polls; producers wait for room only then */
	uint32_t consumer_alive;
	/* A program that has changed its modules waits until `modules_answered` is what it has
	 * counted `modules_asked` up to: docs/decisions/0015. */
	_Alignas(64) uint32_t modules_asked; /* atomic */
	uint32_t modules_seen;               /* what it was when the loader looked at it last */
	uint32_t modules_answered;           /* futex word */
	/* 1: the loader answers. 0: nobody waits; a thread that waited in vain clears it, the next
	 * answer sets it */
	uint32_t modules_follow;
	uint32_t modules_late; /* threads that waited in vain; atomic */
	/* threads' names that were read when it had another value are read again; 0: each time.
	 * Raised by FAY_NAMES_STEP */
	_Alignas(64) uint64_t names;
};
_Static_assert(sizeof(struct fay_shm_control) <= FAY_SHM_PAGE, "control page");

/* the traced program itself; forked children are counted on from there, in the order of their first
 * events */
#define FAY_PROCESS_TRACED 1u
#define FAY_PID_UNKNOWN UINT32_MAX

#define FAY_NAMES_STEP (1ull << 32) /* above any thread's number */
#define FAY_NAMED_NONE UINT64_MAX

struct fay_slot_header {
	/* not 0 while a probe of this session runs on this thread: in processes, where its
	 * trampoline's stack frame is */
	uint64_t busy;
	/* of the process that took the slot (a forked child takes its own); FAY_PID_UNKNOWN: a
	 * child's */
	uint32_t pid;
	/* how many processes have taken it: forked children take those of children that have ended
	 * */
	uint32_t taken;
	uint32_t sequence; /* odd while fay_flush changes tables */
	/* number of the last of these processes: FAY_PROCESS_TRACED, or a forked child's */
	uint32_t process;
	uint64_t lost_reentrant; /* events that came while busy */
	uint64_t lost_full;      /* events lost because the spill ring had no room */
	/* calls whose end is no event: there was no room for their record */
	uint64_t lost_calls;
	/* where the stack was when the function that now leaves calls was called
	 * (dispatcher/runtime/records.c) */
	uint64_t swept_from;
	/* address of the thread's struct fay_thread_entry in the process */
	uint64_t entry;
	_Alignas(64) uint64_t spill_head; /* bytes ever produced */
	/* address of the slot's struct fay_record[] in the process; 0: none */
	uint64_t records;
	/* `pid` is one of the traced program's own PID namespace: once it means no process, another
	 * may take the slot */
	uint32_t may_retake;
	/* calls that ended with a jump to a function whose own end is not seen: events without a
	 * return value */
	uint64_t left_by_jump;
	/* the sum of the thread's number and `names` of the control page when `name` was its name;
	 * FAY_NAMED_NONE: it is nobody's */
	uint64_t named;
	uint64_t name[2];                 /* 16 bytes, padded with zeros */
	_Alignas(64) uint64_t spill_tail; /* bytes ever consumed */
};
_Static_assert(sizeof(struct fay_slot_header) <= FAY_SLOT_HEADER, "slot header");
_Static_assert(offsetof(struct fay_slot_header, spill_head) == 64 &&
		       offsetof(struct fay_slot_header, spill_tail) == 128,
	       "slot header");
_Static_assert(offsetof(struct fay_slot_header, pid) == 8 &&
		       offsetof(struct fay_slot_header, taken) == 12,
	       "pid and taken are changed as one word");

/*
 * What the probes at one place have cost one thread. Some events are timed, after a random number
 * of others; cycles / timed stands for all. Written by the owning thread by additions, each one
 * instruction, so that the number of events stays right when a signal handler's come in between.
 */
struct fay_place_cost {
	uint64_t drawn; /* drawn - left events have begun to run their probes */
	/* of the timed ones, by the time stamp counter; each FAY_COST_LONGEST at most */
	uint64_t cycles;
	uint32_t timed;
	int32_t left; /* events until the next one is timed; -1 and less while that begins */
};
_Static_assert(sizeof(struct fay_place_cost) == 24, "place cost");
/* a thread that lost its processor meanwhile, or waits for room in its ring, is no cost of the
 * probe's */
#define FAY_COST_LONGEST 65536u

/*
 * A record in the spill ring. Positions are modulo spill_size; records are multiples of 8 bytes and
 * may wrap at the ring's end, so a reader copies them out in up to two pieces. `size` covers the
 * header and rows * row_size bytes of payload. A table of rows larger than the ring's room goes out
 * as several records.
 */
struct fay_spill_record {
	uint32_t size;  /* bytes, header included, multiple of 8 */
	uint16_t state; /* index into .fay.state */
	uint16_t rows;
};
_Static_assert(sizeof(struct fay_spill_record) == 8, "spill record");

#endif
