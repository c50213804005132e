/* SPDX-License-Identifier: MIT */
/*
 * Calls under way: when they began, and what they were, for the events of their ends. The
 * trampolines' fast paths (trampoline.c, trampoline_record.c) begin and end a call whose record is
 * at its home; everything else comes here.
 *
 * Nothing of the program is changed for a record, and none is believed to be right: a call that was
 * left in ways that nobody told leaves its record behind, a stack may be copied elsewhere, a
 * coroutine may go on in another thread. So a record is never taken for a call's because it is
 * there, but because the call that ends has its return address at that place of the stack, which no
 * other call under way can have. What is not found is no event; what is found too late is what it
 * was.
 *
 *	begins		free place -> record. One with the same slot was left before, or is pending
 *	returns		record -> event, and so for all that are pending at the slot, newest first
 *	is left by a jump to another function if that one's exits are patched, the record stays,
 *	  pending; else it ends here, with an event that has no return value
 *	is left otherwise an exception event, when an exit of the unwinder sweeps the stack between
 *	  its own frame and where it goes on, or when the slot is used again. An exit of longjmp
 *	  only marks what it sweeps: coroutines switch by it, and may come back
 *
 * Ordering guarantees: a table is written by its slot's thread and its signal handlers, which come
 * between any two instructions. A record is claimed by its slot and filled afterwards; a handler
 * takes other places and has emptied them when it returns, unless it was left by a jump. A call
 * that ends in another thread than it began in is taken out of that one's table by a
 * compare-and-swap of its slot.
 */
#include "runtime_private.h"

#define PENDING_MOST 8u /* at one slot: more functions that jump to each other end one by one */
#define SWEEP_BYTES (8u << 20) /* more is another stack */
/* a record so far below a call that begins was left, whatever stack it is on */
#define LEFT_BYTES (32u << 10)

void *fay_rt_begin(void *local, uint64_t slot, const struct fay_watched *watched);
void fay_rt_end(void *local, uint64_t slot, const struct fay_returned *returned);
void fay_rt_jump(void *local, uint64_t slot, uint64_t target, uint64_t rbp);
void fay_rt_sweep(void *local, uint64_t to);

static struct fay_records *records_of(uint32_t index)
{
	return (struct fay_records *)(fay_config.records +
				      index * fay_records_stride((unsigned)fay_config.record_bits));
}

bool fay_rt_records_used(uint32_t index)
{
	return fay_config.records && records_of(index)->used;
}

void fay_rt_records_init(struct fay_slot_header *slot, uint32_t index)
{
	struct fay_records *records = records_of(index);

	records->used = 1;
	slot->records = (uint64_t)records->items;
}

static struct fay_record *record_at(struct fay_record *items, uint64_t index)
{
	return (struct fay_record *)((char *)items + (index << fay_config.record_bits));
}

static struct fay_record *place_of(struct fay_record *items, uint64_t slot, unsigned step)
{
	return record_at(items, (fay_record_home(slot) + step) % FAY_RECORDS);
}

/* `to` has room for a wide one. */
static void copy(void *to, const struct fay_record *from)
{
	const uint64_t *words = (const uint64_t *)from;

	for (uint64_t i = 0; i < (1u << fay_config.record_bits) / sizeof(uint64_t); i++)
		((uint64_t *)to)[i] = words[i];
}

/* Places at which a call may have its record. */
static unsigned probed(const struct fay_record *items)
{
	const struct fay_records *records =
		(const void *)((const char *)items - offsetof(struct fay_records, items));

	return __atomic_load_n(&records->scattered, __ATOMIC_RELAXED) ? FAY_RECORDS_PROBED : 1;
}

static void scatter(struct fay_record *items)
{
	struct fay_records *records = (void *)((char *)items - offsetof(struct fay_records, items));

	__atomic_store_n(&records->scattered, 1, __ATOMIC_RELEASE);
}

static uint64_t marks_of(const struct fay_record *record, uint64_t slot)
{
	return __atomic_load_n(&record->slot, __ATOMIC_RELAXED) - slot;
}

/* The one with exactly this word, or NULL. */
static struct fay_record *find(struct fay_record *items, uint64_t word)
{
	uint64_t slot = word & ~(uint64_t)FAY_RECORD_MARKS;

	for (unsigned step = probed(items); step-- > 0;) {
		struct fay_record *record = place_of(items, slot, step);

		if (__atomic_load_n(&record->slot, __ATOMIC_RELAXED) == word)
			return record;
	}
	return NULL;
}

static void clear(struct fay_record *record)
{
	record->watched = 0;
	__atomic_store_n(&record->slot, 0, __ATOMIC_RELEASE);
}

typedef void routine(uint64_t cycles, void *local, uint64_t slot,
		     const struct fay_returned *returned, uint64_t stub,
		     const struct fay_kept *kept);

/* The event of a call whose record was taken out of its table. */
static void report(const struct fay_wide_record *taken, void *local,
		   const struct fay_returned *returned)
{
	const struct fay_record *record = &taken->call;
	const struct fay_watched *watched = (const struct fay_watched *)record->watched;
	uint64_t code = !watched ? 0 : returned ? watched->returned : watched->left;

	if (code)
		((routine *)code)(record->cycles, local, record->slot & ~(uint64_t)FAY_RECORD_MARKS,
				  returned, 0, &taken->kept);
}

static void end_record(struct fay_record *record, void *local, const struct fay_returned *returned)
{
	struct fay_wide_record taken;

	copy(&taken, record);
	clear(record);
	report(&taken, local, returned);
}

/* All that are pending at a slot. */
static void end_pending(struct fay_record *items, void *local, uint64_t slot,
			const struct fay_returned *returned)
{
	struct fay_record *record;

	for (unsigned i = 0;
	     i < FAY_RECORDS_PROBED && (record = find(items, slot | FAY_RECORD_PENDING)); i++)
		end_record(record, local, returned);
}

/* Whether the call now beginning there is what a function that is pending has jumped to. */
static bool is_continued(const struct fay_record *record, uint64_t slot,
			 const struct fay_watched *watched)
{
	return marks_of(record, slot) == FAY_RECORD_PENDING && record->target == watched->function;
}

/*
 * Where all places are taken, one is given up: of a call that was left, since it would lie below
 * the one that begins, or some other, which is lost. Many may be of stacks that are gone.
 */
static struct fay_record *give_up(struct fay_record *items, void *local, uint64_t slot)
{
	struct fay_record *record =
		place_of(items, slot, (unsigned)(slot >> 3) % FAY_RECORDS_PROBED);

	for (unsigned step = 0; step < FAY_RECORDS_PROBED; step++)
		if (slot - place_of(items, slot, step)->slot < LEFT_BYTES) {
			record = place_of(items, slot, step);
			end_record(record, local, NULL);
			return record;
		}
	slot_of(local)->lost_calls++;
	clear(record);
	return record;
}

void *fay_rt_begin(void *local, uint64_t slot, const struct fay_watched *watched)
{
	struct fay_record *items = (struct fay_record *)slot_of(local)->records, *free = NULL;

	for (unsigned step = 0; step < FAY_RECORDS_PROBED; step++) {
		struct fay_record *record = place_of(items, slot, step);

		if (record->slot && marks_of(record, slot) <= FAY_RECORD_MARKS &&
		    !is_continued(record, slot, watched))
			end_record(record, local, NULL);
		if (!free && record->slot == 0)
			free = record;
	}
	if (!free)
		free = give_up(items, local, slot);
	if (free != place_of(items, slot, 0))
		scatter(items);
	return free;
}

/* Of a call that began in another thread, or before this process was forked. */
static bool take_elsewhere(uint64_t slot, struct fay_wide_record *taken)
{
	uint32_t used = slots_used();

	for (uint32_t i = 0; i < used; i++) {
		struct fay_records *records = records_of(i);
		struct fay_record *record = records->used ? find(records->items, slot) : NULL;
		uint64_t expected = slot;

		if (!record)
			continue;
		copy(taken, record);
		if (__atomic_compare_exchange_n(&record->slot, &expected, 0, false,
						__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return true;
	}
	return false;
}

void fay_rt_end(void *local, uint64_t slot, const struct fay_returned *returned)
{
	struct fay_record *items = (struct fay_record *)slot_of(local)->records,
			  *own = find(items, slot);
	struct fay_wide_record elsewhere;

	if (!own)
		own = find(items, slot | FAY_RECORD_LEFT);
	if (own)
		end_record(own, local, returned);
	else if (take_elsewhere(slot, &elsewhere))
		report(&elsewhere, local, returned);
	end_pending(items, local, slot, returned);
}

/* Its exits are patched just now. */
static bool is_watched(uint64_t function)
{
	for (uint64_t i = 0; i < fay_config.zone_count; i++) {
		const struct fay_watched *all =
			(const struct fay_watched *)fay_config.zones[i].watched;
		uint64_t low = 0, high = fay_config.zones[i].watched_count;

		while (low < high) {
			uint64_t middle = low + (high - low) / 2;

			if (all[middle].function == function)
				return !__atomic_load_n((const uint8_t *)all[middle].out,
							__ATOMIC_RELAXED);
			if (all[middle].function < function)
				low = middle + 1;
			else
				high = middle;
		}
	}
	return false;
}

/* Those that wait at the slot wait for the new function from now on. Returns how many there are. */
static unsigned retarget(struct fay_record *items, uint64_t slot, uint64_t target)
{
	unsigned count = 0;

	for (unsigned step = 0; step < FAY_RECORDS_PROBED; step++) {
		struct fay_record *record = place_of(items, slot, step);

		if (marks_of(record, slot) != FAY_RECORD_PENDING)
			continue;
		record->target = target;
		count++;
	}
	return count;
}

/* Makes a place free by putting its record elsewhere. The call that it is of is under way further
 * up on the stack, and not before the one now ending is it looked for. */
static bool move_away(struct fay_record *items, struct fay_record *record)
{
	uint64_t slot = record->slot & ~(uint64_t)FAY_RECORD_MARKS;

	for (unsigned step = 0; step < FAY_RECORDS_PROBED; step++) {
		struct fay_record *place = place_of(items, slot, step);

		if (place->slot)
			continue;
		scatter(items);
		copy(place, record);
		clear(record);
		return true;
	}
	return false;
}

/*
 * A record waits at its slot's home: so the next function's entry, which finds that taken, goes the
 * way through fay_rt_begin(), and its exit, which does not find its own record there, the way
 * through fay_rt_end(). False: there is no room.
 */
static bool wait_for(struct fay_record *items, struct fay_record *own, uint64_t slot,
		     uint64_t target)
{
	struct fay_record *home = place_of(items, slot, 0);

	own->target = target;
	if (home == own || marks_of(home, slot) == FAY_RECORD_PENDING) {
		own->slot = slot | FAY_RECORD_PENDING;
		return true;
	}
	if (home->slot && !move_away(items, home))
		return false;
	copy(home, own);
	home->slot = slot | FAY_RECORD_PENDING;
	clear(own);
	return true;
}

void fay_rt_jump(void *local, uint64_t slot, uint64_t target, uint64_t rbp)
{
	const struct fay_returned nothing = { .rbp = rbp };
	struct fay_slot_header *header = slot_of(local);
	struct fay_record *items = (struct fay_record *)header->records, *own = find(items, slot);
	struct fay_wide_record elsewhere;
	bool goes_on = is_watched(target);

	if (own && goes_on && retarget(items, slot, target) < PENDING_MOST &&
	    wait_for(items, own, slot, target))
		return;
	if (own) {
		copy(&elsewhere, own);
		clear(own);
	}
	if (own || take_elsewhere(slot, &elsewhere)) {
		const struct fay_watched *watched =
			(const struct fay_watched *)elsewhere.call.watched;

		header->left_by_jump += watched && watched->returned;
		report(&elsewhere, local, &nothing);
	}
	if (!goes_on)
		end_pending(items, local, slot, &nothing);
}

static void leave(struct fay_record *record, void *local, bool perhaps)
{
	if (perhaps)
		record->slot |= FAY_RECORD_LEFT;
	else
		end_record(record, local, NULL);
}

/* All of a slot's records, whatever they are. */
static void leave_at(struct fay_record *items, void *local, uint64_t slot, bool perhaps)
{
	for (unsigned step = probed(items); step-- > 0;) {
		struct fay_record *record = place_of(items, slot, step);

		if (record->slot && marks_of(record, slot) <= FAY_RECORD_MARKS)
			leave(record, local, perhaps);
	}
}

/* The function that was entered at header->swept_from goes on with its stack pointer at `to`: what
 * lies between is left. Newest first. */
void fay_rt_sweep(void *local, uint64_t to)
{
	struct fay_slot_header *header = slot_of(local);
	struct fay_record *items = (struct fay_record *)header->records;
	uint64_t from = header->swept_from & ~(uint64_t)7;
	bool perhaps = header->swept_from & FAY_SWEPT_PERHAPS;

	header->swept_from = 0;
	/* it returns, or goes to another stack */
	if (!from || to <= from + 8 || to - from > SWEEP_BYTES)
		return;
	if (to - from > FAY_RECORDS * sizeof(uint64_t)) { /* looking at each record is less */
		for (unsigned i = 0; i < FAY_RECORDS; i++)
			if (record_at(items, i)->slot - from < to - from)
				leave(record_at(items, i), local, perhaps);
		return;
	}
	for (uint64_t slot = from; slot < to; slot += 8)
		leave_at(items, local, slot, perhaps);
}
