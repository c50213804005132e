/* SPDX-License-Identifier: MIT */
/*
 * The aggregator's own types: what it reads from the shared memory of traced processes, and what it
 * keeps of that. What it offers is fay/aggregator.h and partial.h.
 */
#ifndef FAY_AGGREGATOR_LIVE_PARTS_H
#define FAY_AGGREGATOR_LIVE_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/rows/rows.h"
#include "fay/aggregator.h"
#include "partial.h"

/* Bytes of all rows and indices that one aggregator may hold; FAY_E_LIMIT beyond. */
#define FAY_AGGREGATOR_MEMORY_MAX (1ull << 30)
#define FAY_AGGREGATOR_MAX_SOURCES 4096u
/* How often a snapshot looks at a table that is being flushed, without and with a nap of 100 us,
 * before it takes the flush for dead. */
#define FAY_SNAPSHOT_YIELDS 200u
#define FAY_SNAPSHOT_NAPS 200u
/* How long it does so while another thread's ring is to be emptied. That thread waits for 100 ms
 * before its events are lost. */
#define FAY_SNAPSHOT_ASKED_NS 20000000u

/* --- aggregator.c --- */

/* What is remembered of one slot of a source. */
struct fay_slot_view {
	/* bytes consumed; shared memory's copy is only ever written, unless the producer moves it,
	 * too: then it is where it was last */
	uint64_t tail;
	bool seen;         /* tail was taken over from shared memory */
	bool corrupt;      /* reported; ignored since */
	bool drained;      /* a record came from it */
	bool stuck;        /* its sequence was odd for as long as a snapshot waits... */
	uint32_t stuck_at; /* ...at this value */
	/* Table rows drained while the sequence was odd: rows that may still lie in the table, too,
	 * should the owner have died there. */
	uint8_t *open_rows;
	size_t open_size, open_room; /* bytes; each row preceded by 8 bytes, its state's index */
};

/* One process's shared memory; its geometry is checked and copied once. */
struct fay_source {
	struct fay_shm_control *control;
	uint8_t *base;
	uint32_t only_pid, slot_max;
	uint64_t slot_stride, slots_offset, global_offset, spill_offset, spill_size;
	bool overwrites; /* producers give up the oldest records of full rings */
	uint32_t wake_seen;
	struct fay_slot_view *slots;
};

/* What is kept of a state's last picture for the next one. */
struct fay_picture {
	struct fay_rows rows; /* fay_rows_again(); no `state`: they are not kept */
	struct fay_budget budget;
	uint64_t *copy; /* NULL: none was taken yet; contents are void */
};

struct fay_aggregator {
	const struct fay_schema *schema;
	struct fay_rows *drained;    /* by state */
	struct fay_traffic *traffic; /* by state */
	/* by state: losses and threads of sources that are gone; no rows */
	struct fay_result *retired;
	struct fay_source *sources;
	size_t source_count;
	struct fay_budget budget;
	struct fay_picture *pictures; /* by state; NULL: nothing is kept */
	fay_row_function *on_row;
	void *on_row_context;
	struct fay_texts *texts; /* NULL: none come */
	uint32_t text_state;
	struct fay_error pending; /* found by a snapshot, told by the next poll; code 0: none */
	bool over_limit; /* rows were lost to the budget; told once, nothing is drained since */
};

static inline uint32_t fay_source_slot_count(const struct fay_source *source)
{
	uint32_t next = __atomic_load_n(&source->control->slot_next, __ATOMIC_ACQUIRE);
	return next < source->slot_max ? next : source->slot_max;
}

static inline struct fay_slot_header *fay_source_slot(const struct fay_source *source,
						      uint32_t slot)
{
	return (struct fay_slot_header *)(source->base + source->slots_offset +
					  slot * source->slot_stride);
}

static inline bool fay_source_wants(const struct fay_source *source,
				    const struct fay_slot_header *slot)
{
	/* A forked child in a PID namespace of its own can have the program's number. */
	return !source->only_pid ||
	       (__atomic_load_n(&slot->pid, __ATOMIC_RELAXED) == source->only_pid &&
		slot->process <= FAY_PROCESS_TRACED);
}

/* --- ring.c --- */

/* A row of a stream: a piece of a text, or for `on_row`. */
void fay_aggregator_hand_on(struct fay_aggregator *aggregator, uint32_t index, const uint8_t *row);

/* Drains one slot's ring. Returns the bytes consumed, or -1 with error set, once, when the ring is
 * corrupt or the budget is exceeded. */
int64_t fay_ring_drain(struct fay_aggregator *aggregator, struct fay_source *source, uint32_t slot,
		       struct fay_error *error);

/* Copies `size` bytes of shared memory, each aligned word whole and in order. */
static inline void fay_copy_words(void *to, const void *from, size_t size)
{
	uint64_t *words = to;
	const uint64_t *shared = from;
	for (size_t i = 0; i < size / 8; i++)
		words[i] = __atomic_load_n(&shared[i], __ATOMIC_ACQUIRE);
}

/*
 * windows.c: takes drained rows whose first key is below `below` out and into *gone, which becomes
 * the caller's; with `told` those only that are the same there. false: nothing was done, since
 * there are few of them, none, or no memory.
 */
bool fay_aggregator_split(struct fay_aggregator *aggregator, uint32_t state, uint64_t below,
			  const struct fay_rows *told, struct fay_rows *gone);

/* snapshot.c: merges what is live in one source into what was drained; 0, or -1 over the budget. */
int fay_source_take_over(struct fay_aggregator *aggregator, struct fay_source *source,
			 uint32_t state);

/* Adds what was lost, and the threads. */
void fay_losses_add(struct fay_result *to, const struct fay_result *from);
/* All that pictures have left behind. */
void fay_pictures_forget(struct fay_aggregator *aggregator);

#endif
