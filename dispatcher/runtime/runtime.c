/* SPDX-License-Identifier: MIT */
/*
 * The runtime in the target: what a probe's slow paths and helpers need, without any library.
 *
 * Everything here runs on the traced program's stack, in its threads, at any of its functions,
 * signal handlers included. So: no library, no errno, no vector registers (-mgeneral-regs-only), no
 * writable data of its own, no lock. System calls are made directly and only where stated; their
 * failure is an answer, never a fault.
 *
 * Ordering guarantees: see fay/shm.h. LOCAL, the slot's header and spill_head are written by the
 * owning thread only; the trampoline's busy flag keeps the thread's own signal handlers out of
 * probes and so out of the helpers. fay_rt_acquire() alone may be interrupted by itself: both may
 * take a slot. An entry of the table is claimed by a compare-and-swap of its key, and found by
 * others once it is filled; an interruption in between enters the thread a second time, further on,
 * where it is not found again.
 *
 * Limits: a thread is known by its fs base. Two threads that run at once with one fs base (clone
 * without CLONE_SETTLS and without CLONE_VFORK) would share a slot.
 */
#include "runtime_private.h"

/* how long a probe waits for room in its ring before its event counts as lost */
#define ROOM_WAIT_NS 100000000u
/* so much of that a look at the ring takes at most: longer ones had no processor, and then the
 * consumer may have had none either */
#define ROOM_LOOK_NS 1000000u
#define ROOM_LOOKS_MAX 4096u /* also where a sandbox grants no clock */

void fay_rt_ask_name(void *local);
uint64_t fay_rt_flush(void *local, uint64_t state);
uint64_t fay_rt_emit(void *local, uint64_t state, const void *row);

/* The compiler may call these two whatever the options. */
void *memcpy(void *to, const void *from, size_t size)
{
	void *result = to;
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
	return result;
}

void *memset(void *to, int value, size_t size)
{
	void *result = to;
	__asm__ volatile("rep stosb" : "+D"(to), "+c"(size) : "a"(value) : "memory");
	return result;
}

/* Makes the slot this thread's, by an entry that it has claimed. Returns LOCAL. */
static uint64_t slot_enter(uint32_t index, struct fay_thread_entry *entry, uint64_t key,
			   uint32_t tid)
{
	struct fay_slot_header *slot = slot_at(index);

	slot->entry = (uint64_t)entry;
	if (fay_config.records)
		fay_rt_records_init(slot, index);
	entry->local = (uint64_t)slot + FAY_SLOT_HEADER;
	entry->tid = tid;
	__atomic_store_n(&entry->key, key, __ATOMIC_RELEASE);
	return entry->local;
}

/* Is only a part of the threads traced, and this is none of them? */
static bool left_out(uint32_t tid)
{
	for (uint32_t i = 0; i < fay_config.tid_count; i++)
		if (fay_config.tids[i] == tid)
			return false;
	return fay_config.tid_count > 0;
}

static uint64_t leave_out(struct fay_thread_entry *entry, uint64_t key, uint32_t tid)
{
	entry->local = 0;
	entry->tid = tid;
	__atomic_store_n(&entry->key, key, __ATOMIC_RELEASE);
	return 0;
}

/* The slow half of the trampoline's look-up. Returns the thread's LOCAL; 0 if there is none left,
 * which counts as a lost event. */
uint64_t fay_rt_acquire(uint64_t key)
{
	struct fay_thread_entry *table = (struct fay_thread_entry *)fay_config.thread_table;
	uint32_t home = fay_thread_home(key - fay_config.key_step);
	uint32_t index = fay_config.slot_max;
	uint32_t tid =
		fay_config.tid_count ? (uint32_t)system_call(SYS_GETTID, 0, 0, 0, 0, 0, 0) : 0;
	bool out = left_out(tid);

	for (uint32_t step = 0; step < FAY_THREAD_TABLE_ENTRIES; step++) {
		struct fay_thread_entry *entry = &table[(home + step) % FAY_THREAD_TABLE_ENTRIES];
		uint64_t found = __atomic_load_n(&entry->key, __ATOMIC_ACQUIRE);

		if (found == key && (tid == 0 || entry->tid == tid))
			return entry->local;
		if (found == key) { /* left by a thread that has ended */
			if (out)
				return leave_out(entry, key, tid);
			index = fay_rt_slot_take();
			if (index == fay_config.slot_max)
				break;
			return slot_enter(index, entry, key, tid);
		}
		if (found == 0) {
			if (out &&
			    __atomic_compare_exchange_n(&entry->key, &found, FAY_THREAD_TAKEN,
							false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
				return leave_out(entry, key, tid);
			if (!out && index == fay_config.slot_max)
				index = fay_rt_slot_take();
			if (!out && index == fay_config.slot_max)
				break;
			if (!out &&
			    __atomic_compare_exchange_n(&entry->key, &found, FAY_THREAD_TAKEN,
							false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
				return slot_enter(index, entry, key, tid);
		}
		if (found == key)
			return entry->local;
	}
	__atomic_fetch_add(&control_page()->lost_no_slot, 1, __ATOMIC_RELAXED);
	return 0;
}

uint64_t fay_rt_monotonic_ns(void)
{
	int64_t time[2] = { 0, 0 };

	system_call(SYS_CLOCK_GETTIME, 1, (uint64_t)time, 0, 0, 0, 0);
	return (uint64_t)time[0] * 1000000000u + (uint64_t)time[1];
}

void fay_rt_wake_consumer(void)
{
	struct fay_shm_control *control = control_page();

	__atomic_fetch_add(&control->wake, 1, __ATOMIC_RELEASE);
	system_call(SYS_FUTEX, (uint64_t)&control->wake, 1 /* FUTEX_WAKE, shared */, 1, 0, 0, 0);
}

static uint64_t ring_used(const struct fay_slot_header *slot)
{
	return slot->spill_head - __atomic_load_n(&slot->spill_tail, __ATOMIC_ACQUIRE);
}

static uint64_t ring_room(const struct fay_slot_header *slot)
{
	uint64_t used = ring_used(slot);

	/* The consumer is trusted no more than the target: a tail ahead of the head is a full
	 * ring. */
	return used > fay_config.spill_size ? 0 : fay_config.spill_size - used;
}

/*
 * True once `bytes` fit: the oldest records are given up, but for those that the consumer takes
 * first. What lies there may have been overwritten by the program; each round moves the tail by a
 * record at least, or to the head, or finds that the consumer has moved it.
 */
static bool ring_give_up(struct fay_slot_header *slot, uint64_t bytes)
{
	const char *ring = (const char *)slot + fay_config.spill_offset;
	uint64_t rounds = fay_config.spill_size / sizeof(struct fay_spill_record);

	for (; ring_room(slot) < bytes && rounds; rounds--) {
		uint64_t tail = __atomic_load_n(&slot->spill_tail, __ATOMIC_ACQUIRE),
			 used = slot->spill_head - tail;
		struct fay_spill_record record;

		if (used > fay_config.spill_size || tail % sizeof(record))
			return false;
		if (fay_config.spill_size - used >= bytes)
			/* the consumer has made room meanwhile, and may have left no record to give
			 * up */
			return true;
		memcpy(&record, ring + (tail & (fay_config.spill_size - 1)), sizeof(record));
		bool whole = record.size >= sizeof(record) && record.size % sizeof(record) == 0 &&
			     record.size <= used;
		if (__atomic_compare_exchange_n(&slot->spill_tail, &tail,
						whole ? tail + record.size : slot->spill_head,
						false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			slot->lost_full++;
	}
	return ring_room(slot) >= bytes;
}

/* True once `bytes` fit. Where that is asked for, waits for a live consumer, at most ROOM_WAIT_NS
 * of its own time. */
static bool ring_reserve(struct fay_slot_header *slot, uint64_t bytes)
{
	struct fay_shm_control *control = control_page();
	int64_t nap[2] = { 0, 200000 };
	uint64_t waited = 0, looked = 0;

	if (bytes > fay_config.spill_size)
		return false;
	for (unsigned round = 0; ring_room(slot) < bytes; round++) {
		if (fay_config.when_full != FAY_FULL_BLOCK || fay_config.hosted_pid ||
		    !__atomic_load_n(&control->consumer_alive, __ATOMIC_RELAXED))
			return false; /* in fay itself the consumer is who would wait */
		if (ring_used(slot) > fay_config.spill_size)
			/* overwritten, or the consumer refuses it: it will not be emptied */
			return false;
		uint64_t now = fay_rt_monotonic_ns(), look = now - looked;
		waited += round == 0 ? 0 : look < ROOM_LOOK_NS ? look : ROOM_LOOK_NS;
		looked = now;
		if (waited > ROOM_WAIT_NS || round == ROOM_LOOKS_MAX) {
			/* Killed, stopped or busy elsewhere: nobody waits for it again until it
			 * says so itself, at its next poll. */
			__atomic_store_n(&control->consumer_alive, 0, __ATOMIC_RELEASE);
			return false;
		}
		if (round % 16 == 0)
			fay_rt_wake_consumer();
		if (round < 32)
			system_call(SYS_SCHED_YIELD, 0, 0, 0, 0, 0, 0);
		else
			system_call(SYS_NANOSLEEP, (uint64_t)nap, 0, 0, 0, 0, 0);
	}
	return true;
}

/* Copies to ring position `at`, in two pieces if it wraps. Returns the position after. */
static uint64_t ring_put(struct fay_slot_header *slot, uint64_t at, const void *from, uint64_t size)
{
	char *ring = (char *)slot + fay_config.spill_offset;
	uint64_t start = at & (fay_config.spill_size - 1);
	uint64_t first = fay_config.spill_size - start;

	if (first > size)
		first = size;
	memcpy(ring + start, from, first);
	if (first < size)
		memcpy(ring, (const char *)from + first, size - first);
	return at + size;
}

static void ring_publish(struct fay_slot_header *slot, uint64_t head)
{
	uint64_t tail = __atomic_load_n(&slot->spill_tail, __ATOMIC_RELAXED);
	uint64_t half = fay_config.spill_size / 2;
	bool crossed = slot->spill_head - tail <= half && head - tail > half;

	__atomic_store_n(&slot->spill_head, head, __ATOMIC_RELEASE);
	if (crossed && __atomic_load_n(&control_page()->consumer_alive, __ATOMIC_RELAXED))
		fay_rt_wake_consumer();
}

static uint64_t lost_full(struct fay_slot_header *slot)
{
	slot->lost_full++;
	return 1;
}

static const struct fay_runtime_state *state_of(uint64_t state, uint32_t kind)
{
	const struct fay_runtime_state *states =
		(const struct fay_runtime_state *)fay_config.states;

	/* The verifier proved this; a check costs nothing here. */
	return state < fay_config.state_count && states[state].kind == kind ? &states[state] : NULL;
}

#define RECORD_ROWS_MAX 65535u

/* Rows from the first one on, behind which none is occupied: of a table that grows, those that its
 * probe has come to. Row and number are the program's. */
static uint32_t rows_in_use(const struct fay_runtime_state *table,
			    const struct fay_table_header *header)
{
	uint64_t last = header->last;

	return last && last < table->rows ? (uint32_t)last + 1 : table->rows;
}

/*
 * All of a table goes out at once or not at all, so that a full ring never leaves half a table
 * counted. The sequence is odd from before the first row is handed over until the table is empty: a
 * reader never sees a row in both places, or in neither.
 */
uint64_t fay_rt_flush(void *local, uint64_t state)
{
	const struct fay_runtime_state *table = state_of(state, FAY_STATE_TABLE);
	struct fay_slot_header *slot = slot_of(local);
	struct fay_table_header *header;
	char *rows;
	uint64_t occupied = 0, records, head, left;
	uint32_t count;

	if (!table)
		return lost_full(slot);
	header = (struct fay_table_header *)((char *)local + table->offset);
	rows = (char *)(header + 1);
	count = rows_in_use(table, header);
	for (uint32_t i = 0; i < count; i++)
		occupied += *(const uint64_t *)(rows + (uint64_t)i * table->row_size) != 0;
	records = (occupied + RECORD_ROWS_MAX - 1) / RECORD_ROWS_MAX;
	if (!ring_reserve(slot,
			  occupied * table->row_size + records * sizeof(struct fay_spill_record)))
		return lost_full(slot);

	__atomic_store_n(&slot->sequence, slot->sequence + 1, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	head = slot->spill_head;
	left = occupied;
	for (uint32_t i = 0, in_record = 0; i < count; i++) {
		const char *row = rows + (uint64_t)i * table->row_size;

		if (*(const uint64_t *)row == 0)
			continue;
		if (in_record == 0) {
			struct fay_spill_record record;

			in_record = left < RECORD_ROWS_MAX ? (uint32_t)left : RECORD_ROWS_MAX;
			record.size = (uint32_t)sizeof(record) + in_record * table->row_size;
			record.state = (uint16_t)state;
			record.rows = (uint16_t)in_record;
			head = ring_put(slot, head, &record, sizeof(record));
			left -= in_record;
		}
		head = ring_put(slot, head, row, table->row_size);
		in_record--;
	}
	if (occupied)
		ring_publish(slot, head);
	memset(rows, 0, (uint64_t)count * table->row_size);
	header->used = 0;
	__atomic_store_n(&slot->sequence, slot->sequence + 1, __ATOMIC_RELEASE);
	return 0;
}

uint64_t fay_rt_emit(void *local, uint64_t state, const void *row)
{
	const struct fay_runtime_state *stream = state_of(state, FAY_STATE_STREAM);
	struct fay_slot_header *slot = slot_of(local);
	struct fay_spill_record record;
	uint64_t head;

	if (!stream)
		return lost_full(slot);
	record.size = (uint32_t)sizeof(record) + stream->row_size;
	record.state = (uint16_t)state;
	record.rows = 1;
	if (fay_config.when_full == FAY_FULL_OVERWRITE && record.size <= fay_config.spill_size)
		(void)ring_give_up(slot, record.size);
	if (!ring_reserve(slot, record.size))
		return lost_full(slot);
	head = ring_put(slot, slot->spill_head, &record, sizeof(record));
	head = ring_put(slot, head, row, stream->row_size);
	ring_publish(slot, head);
	return 0;
}

#define PR_GET_NAME 16

/* For the trampolines (event_fields.c), where the name that is kept may be no more the thread's. */
void fay_rt_ask_name(void *local)
{
	struct fay_slot_header *slot = slot_of(local);
	uint64_t names = __atomic_load_n(&control_page()->names, __ATOMIC_RELAXED);
	uint32_t tid = 0;

	slot->named = FAY_NAMED_NONE;
	if (fay_config.tid_offset >= 0)
		__asm__ volatile("mov %%fs:(%1), %0" : "=r"(tid) : "r"(fay_config.tid_offset));
	system_call(SYS_PRCTL, PR_GET_NAME, (uint64_t)slot->name, 0, 0, 0, 0);
	if (tid && names)
		slot->named = names + tid;
}

/* For few bytes: rep movsb takes longer to begin than these to be copied. */
static void copy_words(void *to, uint64_t from, uint64_t size)
{
	const char *next = (const char *)from;
	char *end = (char *)to + size, *at = to;

	for (; end - at >= 32; at += 32, next += 32) {
		uint64_t words[4];

		__builtin_memcpy(words, next, sizeof(words));
		__builtin_memcpy(at, words, sizeof(words));
	}
	for (; end - at >= 8; at += 8, next += 8)
		__builtin_memcpy(at, next, 8);
	for (; at < end; at++, next++)
		*at = *next;
}

/*
 * What lies on the thread's own stack is copied. Of the rest the kernel does the reading, so an
 * unmapped address is an answer and not a fault. process_vm_readv may stop at a page boundary with
 * part of it read: that is a failure here, all or nothing.
 */
int64_t fay_rt_try_read(void *to, uint64_t size, uint64_t address)
{
	struct {
		uint64_t base, size;
	} here, there;
	int64_t got = -1;

	if (size == 0)
		return 0;
	if (size <= FAY_TRY_READ_MAX && fay_rt_on_own_stack(address, size)) {
		copy_words(to, address, size);
		return 0;
	}
	if (size <= FAY_TRY_READ_MAX) {
		here.base = (uint64_t)to;
		there.base = address;
		here.size = there.size = size;
		uint64_t pid = fay_config.hosted_pid
				       ? fay_config.hosted_pid
				       : (uint64_t)system_call(SYS_GETPID, 0, 0, 0, 0, 0, 0);

		got = system_call(SYS_PROCESS_VM_READV, pid, (uint64_t)&here, 1, (uint64_t)&there,
				  1, 0);
	}
	if (got == (int64_t)size)
		return 0;
	if (size <= FAY_TRY_READ_MAX)
		memset(to, 0, size);
	return -1;
}
