/* SPDX-License-Identifier: MIT */
/*
 * Watched calls under way in a stopped process, as far as several sessions have to do with them: which code is whose (struct fay_others), and putting back a session's return
 * addresses when it is removed.
 *
 * Of the sessions that watch a call, the one that was there first has its return point on the program's stack; its record of the call has the return point of the next, and so on: the last
 * one's has the program's address. Where the function was entered by a tail call from another watched one, that is a return point again, of the calls before. What is read is the target's
 * and proves nothing: every count is bounded.
 */
#include "zone.h"

#include <stdlib.h>
#include <string.h>

#include "fay/shm.h"
#include "runtime.h"

#define CALL_STACKS_MAX 65536u /* more than a session has slots */
#define CALLS_MOST (FAY_CALLS_MAX + FAY_CALLS_SPARE)
#define STEPS_MOST (1u << 27) /* for one look at all calls: a program may fill its call stacks with anything, and stands still meanwhile */
#define READ_STEPS 16u        /* what a system call that reads counts for */
#define KEYS_A_STEP 8u

static bool watches(const struct fay_zones *zones, size_t index, uint64_t except)
{
	const struct fay_zone_header *header = &zones->items[index].header;

	return header->calls && header->calls_size > FAY_OTHERS_BYTES && header->session != except;
}

/* Whether it is the first zone of its session. */
static bool comes_first(const struct fay_zones *zones, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (zones->items[i].header.session == zones->items[index].header.session)
			return false;
	return true;
}

static struct fay_other_code *find_range(struct fay_others *others, struct fay_other_code wanted)
{
	for (size_t i = 0; i < FAY_OTHERS_MAX; i++)
		if (others->ranges[i].start == wanted.start && others->ranges[i].size == wanted.size)
			return &others->ranges[i];
	return NULL;
}

static bool is_other_code(const struct fay_zones *zones, uint64_t session, uint64_t gone, const struct fay_other_code *range)
{
	for (size_t i = 0; i < zones->count; i++)
		if (watches(zones, i, gone) && zones->items[i].header.session != session && zones->items[i].header.code == range->start)
			return true;
	return false;
}

/* Ranges that stay keep their places: a thread may have been stopped while it was looking at them. */
static int update_others(struct fay_stop *stop, const struct fay_zones *zones, const struct fay_zone_header *header, uint64_t gone, struct fay_error *error)
{
	uint64_t at = header->calls + header->calls_size - FAY_OTHERS_BYTES;
	struct fay_others others;

	if (fay_stop_read(stop, at, &others, sizeof(others)))
		return fay_error_set(error, FAY_E_INTERNAL, "process %d: cannot read its memory", (int)stop->pid);
	for (size_t i = 0; i < FAY_OTHERS_MAX; i++)
		if (!is_other_code(zones, header->session, gone, &others.ranges[i]))
			others.ranges[i] = (struct fay_other_code){ 0 };
	for (size_t i = 0; i < zones->count; i++) {
		const struct fay_zone_header *other = &zones->items[i].header;
		struct fay_other_code range = { other->code, other->code_size }, *place;

		if (!watches(zones, i, gone) || other->session == header->session || find_range(&others, range))
			continue;
		place = find_range(&others, (struct fay_other_code){ 0 });
		if (!place)
			return fay_error_set(error, FAY_E_LIMIT, "process %d: too many zones of traces that watch calls", (int)stop->pid);
		*place = range;
	}
	others.end = 0;
	for (size_t i = 0; i < FAY_OTHERS_MAX; i++)
		if (others.ranges[i].size)
			others.end = at + offsetof(struct fay_others, ranges) + (i + 1) * sizeof(others.ranges[i]);
	if (fay_stop_write(stop, at, &others, sizeof(others)))
		return fay_error_set(error, FAY_E_INTERNAL, "process %d: cannot write its memory", (int)stop->pid);
	return 0;
}

int fay_others_write(struct fay_stop *stop, const struct fay_zones *zones, uint64_t gone, struct fay_error *error)
{
	int code = 0;

	for (size_t i = 0; i < zones->count && !code; i++)
		if (watches(zones, i, gone) && comes_first(zones, i))
			code = update_others(stop, zones, &zones->items[i].header, gone, error);
	return code;
}

/* One thread's calls, as they were read. */
struct calls {
	uint64_t first; /* where they lie */
	struct fay_call *items;
	size_t count, from; /* those below `from` are still to be walked */
};

struct other {
	uint64_t session, stacks, used;
	uint64_t *keys; /* of the stacks' threads; 0: never used */
	struct calls calls;
};

struct returning {
	struct fay_stop *stop;
	const struct fay_zones *zones;
	const struct fay_zone_header *header; /* of the session that goes */
	struct calls own;
	struct other others[FAY_WATCHING_SESSIONS];
	size_t other_count;
	uint64_t steps; /* that are left */
	size_t *standing; /* threads that stand in the code of a session that watches calls */
	size_t standing_count;
	uint64_t before[2]; /* for fay_stop_interrupted_at */
	bool waits;	    /* somebody is in a chain, or a signal handler has interrupted who is: no call is put back now */
	bool doubt;     /* some call could not be followed */
};

/* False, and in doubt, once they are used up. */
static bool spend(struct returning *returning, uint64_t steps)
{
	if (steps < returning->steps) {
		returning->steps -= steps;
		return true;
	}
	returning->steps = 0;
	returning->doubt = true;
	return false;
}

static bool is_live_thread(const struct fay_stop *stop, uint64_t key)
{
	for (size_t i = 0; i < stop->count; i++)
		if (!stop->threads[i].gone && key - stop->threads[i].registers.fs_base <= 1)
			return true;
	return false;
}

/* How many places of a call stack are to be looked at: what the thread table says, if that is plausible, as in the runtime's calls.c; else all. */
static size_t call_places(const struct fay_stop *stop, const struct fay_call_stack *stack, uint64_t first)
{
	uint64_t top;

	if (fay_stop_read(stop, stack->entry + offsetof(struct fay_thread_entry, top), &top, sizeof(top)) || top - first > CALLS_MOST * sizeof(struct fay_call))
		return CALLS_MOST;
	return (top - first) / sizeof(struct fay_call);
}

static uint64_t stacks_used(const struct fay_stop *stop, const struct fay_zone_header *header)
{
	struct fay_shm_control control;
	uint64_t used = fay_stop_read(stop, header->shm, &control, sizeof(control)) ? 0 : control.slot_next;

	if (used > header->calls_size / FAY_CALLS_STRIDE)
		used = header->calls_size / FAY_CALLS_STRIDE;
	return used < CALL_STACKS_MAX ? used : CALL_STACKS_MAX;
}

static bool read_stack(const struct fay_stop *stop, uint64_t at, struct fay_call_stack *stack)
{
	return fay_stop_read(stop, at, stack, sizeof(*stack)) == 0 && stack->used;
}

static void read_calls(const struct fay_stop *stop, uint64_t at, const struct fay_call_stack *stack, struct calls *calls)
{
	calls->first = at + FAY_CALLS_FIRST;
	calls->count = call_places(stop, stack, calls->first);
	if (fay_stop_read(stop, calls->first, calls->items, calls->count * sizeof(*calls->items)))
		calls->count = 0;
}

static void read_stack_of_other(struct returning *returning, struct other *other, uint64_t index)
{
	uint64_t at = other->stacks + index * FAY_CALLS_STRIDE;
	struct fay_call_stack stack;

	other->calls.count = 0;
	if (!spend(returning, 3 * READ_STEPS) || !read_stack(returning->stop, at, &stack))
		return;
	returning->doubt |= stack.moves % 2;
	read_calls(returning->stop, at, &stack, &other->calls);
}

static bool is_empty(const struct calls *calls)
{
	for (size_t i = 0; i < calls->count; i++)
		if (calls->items[i].slot)
			return false;
	return true;
}

/* A forked child's thread may have two with its key; what its parent has left there is empty, but may seem to have all its places. */
static void read_others(struct returning *returning, uint64_t key)
{
	for (size_t k = 0; k < returning->other_count; k++) {
		struct other *other = &returning->others[k];

		other->calls.count = 0;
		if (!spend(returning, 1 + other->used / KEYS_A_STEP))
			return;
		for (uint64_t i = 0; i < other->used && is_empty(&other->calls); i++)
			if (other->keys[i] && other->keys[i] / 2 == key / 2) /* sessions' key_step may differ */
				read_stack_of_other(returning, other, i);
	}
}

/*
 * The newest call that is still to be walked, with this slot, of the session that the address belongs to: where its record has the return address.
 * 0: there is none.
 */
static uint64_t next_place(struct returning *returning, uint64_t address, uint64_t slot)
{
	for (size_t i = 0; i < returning->other_count; i++) {
		struct calls *calls = &returning->others[i].calls;

		if (!fay_zones_around(returning->zones, returning->others[i].session, address))
			continue;
		while (calls->from > 0 && spend(returning, 1)) {
			const struct fay_call *call = &calls->items[--calls->from];

			if (call->address && (call->slot & ~(uint64_t)FAY_CALL_LEFT) == slot)
				return calls->first + calls->from * sizeof(*call) + offsetof(struct fay_call, address);
		}
	}
	return 0;
}

/*
 * Where this session's newest return point for calls with this slot is: on the program's stack, or in another session's record, as the returns would come to it one after the other. 0:
 * nowhere. The others' calls are those of the slot's thread.
 */
static uint64_t place_of_point(struct returning *returning, uint64_t slot)
{
	uint64_t place = slot, word;

	for (size_t i = 0; i < returning->other_count; i++)
		returning->others[i].calls.from = returning->others[i].calls.count;
	while (place && spend(returning, READ_STEPS + returning->zones->count) && !fay_stop_read(returning->stop, place, &word, 8)) {
		if (fay_zones_around(returning->zones, returning->header->session, word))
			return place;
		place = next_place(returning, word, slot);
	}
	return 0;
}

/*
 * Whether another session's trampoline is between copying the word in the slot to its record and laying its own return point over it, or between the reverse at the return: then the word is
 * in both, and it will use the copy. Or it has not written the address yet: then the copy may be in a register. The others' calls are those of the slot's thread.
 */
static bool is_being_begun(struct returning *returning, uint64_t slot)
{
	uint64_t word;

	for (size_t i = 0; i < returning->other_count; i++) {
		const struct calls *calls = &returning->others[i].calls;
		size_t newest = calls->count;

		while (newest > 0 && spend(returning, 1) && (calls->items[newest - 1].slot & ~(uint64_t)FAY_CALL_MARKS) != slot)
			newest--;
		if (newest > 0 && calls->items[newest - 1].slot == slot &&
		    (fay_stop_read(returning->stop, slot, &word, 8) || calls->items[newest - 1].address == word || !calls->items[newest - 1].address))
			return true;
	}
	return false;
}

enum round { UNDER_WAY, LEFT, WITHOUT_ADDRESS, ROUNDS };

/* The slot of a call whose turn is in this round; 0: it is not. */
static uint64_t slot_in_round(const struct fay_call *call, enum round round)
{
	uint64_t slot = round == UNDER_WAY ? call->slot : call->slot & ~(uint64_t)FAY_CALL_LEFT;

	if (slot % 8 || (call->address == 0) != (round == WITHOUT_ADDRESS) || (round == LEFT && slot == call->slot))
		return 0;
	return slot;
}

static bool is_watching_code(const struct fay_zones *zones, uint64_t address)
{
	for (size_t i = 0; i < zones->count; i++)
		if (watches(zones, i, 0) && address - zones->items[i].header.code < zones->items[i].header.code_size)
			return true;
	return false;
}

#define NEAR_SLOT (64u << 10) /* a thread whose stack pointer is at most so far away from a slot is at its call */
#define BELOW_SLOT 4096u /* by so much a slot may lie below the stack pointer when its call has just returned */

/*
 * Whether the thread stands in code of a session that watches calls, this one or another, or one that stands there is at this slot: a call may return in another thread than it began in. A
 * trampoline there may have copied the word in the slot and not written its own, or the reverse at the return, or hold the address of a record that has ended in a register: then the chain from
 * the slot leads one call too far, or nowhere.
 */
static bool stands_in_code(struct returning *returning, uint64_t key, uint64_t slot)
{
	for (size_t i = 0; i < returning->standing_count; i++) {
		const struct user_regs_struct *registers = &returning->stop->threads[returning->standing[i]].registers;

		if (!spend(returning, 1) || key - registers->fs_base <= 1 || slot + BELOW_SLOT - registers->rsp <= NEAR_SLOT)
			return true;
	}
	return false;
}

/*
 * Puts the real return addresses of one thread's watched calls whose turn is in this round back, newest first: of several calls at one place on the stack the newest is the one
 * under way, and where it was itself a tail call, the older ones follow.
 */
static void return_calls(struct returning *returning, uint64_t key, enum round round)
{
	const struct calls *own = &returning->own;

	for (size_t i = own->count; i-- > 0;) {
		uint64_t slot = slot_in_round(&own->items[i], round);
		uint64_t place = slot ? place_of_point(returning, slot) : 0;
		bool waits = place && returning->other_count && (returning->waits || stands_in_code(returning, key, slot));

		if (place && (waits || (place == slot && is_being_begun(returning, slot))))
			returning->doubt = true;
		else if (place)
			fay_stop_write(returning->stop, place, &own->items[i].address, 8);
	}
}

static bool add_other(struct returning *returning, const struct fay_zone_header *header)
{
	struct other *other = &returning->others[returning->other_count];
	uint64_t used = stacks_used(returning->stop, header);

	if (returning->other_count == FAY_WATCHING_SESSIONS) {
		returning->doubt = true;
		return true;
	}
	*other = (struct other){ .session = header->session, .stacks = header->calls, .used = used };
	other->keys = calloc(used + 1, sizeof(*other->keys));
	other->calls.items = malloc(CALLS_MOST * sizeof(*other->calls.items));
	returning->other_count++;
	for (uint64_t i = 0; other->keys && i < used; i++) {
		struct {
			uint64_t used, entry, key;
		} stack; /* as struct fay_call_stack begins */

		if (!fay_stop_read(returning->stop, header->calls + i * FAY_CALLS_STRIDE, &stack, sizeof(stack)) && stack.used)
			other->keys[i] = stack.key;
	}
	return other->keys && other->calls.items;
}

static bool begin(struct returning *returning)
{
	bool enough = true;

	returning->own.items = malloc(CALLS_MOST * sizeof(*returning->own.items));
	returning->standing = calloc(returning->stop->count + 1, sizeof(*returning->standing));
	for (size_t i = 0; returning->standing && i < returning->stop->count; i++)
		if (!returning->stop->threads[i].gone && is_watching_code(returning->zones, returning->stop->threads[i].registers.rip))
			returning->standing[returning->standing_count++] = i;
	for (size_t i = 0; i < returning->zones->count; i++)
		if (watches(returning->zones, i, returning->header->session) && comes_first(returning->zones, i))
			enough &= add_other(returning, &returning->zones->items[i].header);
	return enough && returning->own.items && returning->standing;
}

static void end(struct returning *returning)
{
	for (size_t i = 0; i < returning->other_count; i++) {
		free(returning->others[i].keys);
		free(returning->others[i].calls.items);
	}
	free(returning->standing);
	free(returning->own.items);
}

#define NEAR_STACK (64u << 20)

/*
 * Whether the unwinder, which has marked this call, may be about to read its return address once more. It then stands below the call's frame, in whose slot the other session's return point
 * still is. What exceptions have left behind lies below the thread's stack, or was overwritten.
 */
static bool is_passed_now(struct returning *returning, const struct other *other, uint64_t key, uint64_t slot)
{
	uint64_t word;

	for (size_t i = 0; i < returning->stop->count && spend(returning, 1); i++) {
		const struct fay_stopped_thread *thread = &returning->stop->threads[i];

		if (!thread->gone && key - thread->registers.fs_base <= 1 && slot - thread->registers.rsp < NEAR_STACK)
			return !fay_stop_read(returning->stop, slot, &word, 8) && fay_zones_around(returning->zones, other->session, word);
	}
	return false;
}

/* Whether one of another session's calls will still lead to this one: one that was not among those that were put back. Those that are gone lead nobody but the unwinder. */
static bool returns_here(struct returning *returning, const struct other *other, uint64_t key)
{
	const struct calls *calls = &other->calls;

	for (size_t i = 0; i < calls->count && spend(returning, 1 + returning->zones->count); i++) {
		uint64_t slot = calls->items[i].slot & ~(uint64_t)FAY_CALL_MARKS;

		if (!slot || slot % 8 || !fay_zones_around(returning->zones, returning->header->session, calls->items[i].address))
			continue;
		if (calls->items[i].slot & FAY_CALL_GONE ? is_passed_now(returning, other, key, slot)
							 : returning->waits || stands_in_code(returning, key, slot) || place_of_point(returning, slot) != 0)
			return true;
	}
	return false;
}

static void look_for_rest(struct returning *returning)
{
	for (size_t k = 0; k < returning->other_count; k++) {
		struct other *other = &returning->others[k];

		for (uint64_t i = 0; i < other->used && !returning->doubt; i++) {
			if (other->keys[i] == 0)
				continue;
			read_others(returning, other->keys[i]);
			read_stack_of_other(returning, other, i);
			returning->doubt |= returns_here(returning, other, other->keys[i]);
		}
	}
}

/*
 * A CFA in a chain of return points (dispatcher/user/calls_unwind.c): the unwinder is there, and what it has read of the chain must not change before it reads the rest.
 */
static bool is_chain_cfa(const struct fay_stop *stop, uint64_t word)
{
	uint64_t address = word & ((UINT64_C(1) << 48) - 1);

	if (word >> 48 == 0 || word >> 62 || address % 8 == 0)
		return false;
	for (size_t i = 0; i < stop->count; i++)
		if (address - stop->threads[i].registers.rsp < NEAR_STACK)
			return true;
	return false;
}

/*
 * Another session's unwind information: while the unwinder works out where the frame of a return point leads, in two expressions or after it has called the personality routine, it has
 * pointers to them. It may be a word that it has left on the stack: then the session stays mapped at worst.
 */
static bool is_unwind_information(const struct returning *returning, uint64_t word)
{
	for (size_t i = 0; i < returning->other_count; i++) {
		uint64_t at = word - returning->others[i].stacks;

		if (at / FAY_CALLS_STRIDE < returning->others[i].used &&
		    at % FAY_CALLS_STRIDE - offsetof(struct fay_call_stack, unwind) < sizeof(((struct fay_call_stack *)0)->unwind))
			return true;
	}
	return false;
}

static bool is_of_unwinder(const struct returning *returning, uint64_t word)
{
	return is_chain_cfa(returning->stop, word) || is_unwind_information(returning, word);
}

/* The unwinder's, or of a signal handler that will go on where no thread may stand (stands_in_code). Whose stack it is does not matter: it is rare. */
static bool is_amid_chain(void *context, uint64_t word)
{
	struct returning *returning = context;
	uint64_t rip = fay_stop_interrupted_at(returning->before, word);

	return (rip && is_watching_code(returning->zones, rip)) || is_of_unwinder(returning, word);
}

static bool somebody_is_amid_chain(struct returning *returning)
{
	struct fay_stop *stop = returning->stop;

	for (size_t i = 0; i < stop->count; i++) {
		uint64_t words[sizeof(stop->threads[i].registers) / 8];

		memcpy(words, &stop->threads[i].registers, sizeof(words));
		for (size_t k = 0; !stop->threads[i].gone && k < sizeof(words) / sizeof(*words); k++)
			if (is_of_unwinder(returning, words[k]))
				return true;
	}
	return fay_stop_visit_words(stop, is_amid_chain, returning);
}

/*
 * Live threads first: what an ended one left behind may name places on stacks that are in use again; and later, for the same reason, calls that a longjmp seems to have left, which may be
 * under way on stacks that are switched by longjmp. Last those whose return address is 0. None but the first if a place was passed over: the others might be put there, and a return point that
 * no other call has to do with must be theirs, not that of a call which one that is being begun follows as a tail call.
 */
static void return_all(struct returning *returning)
{
	uint64_t used = stacks_used(returning->stop, returning->header);

	for (uint64_t i = 0; i < 2 * ROUNDS * used && spend(returning, 3 * READ_STEPS + returning->stop->count); i++) {
		uint64_t at = returning->header->calls + i % used * FAY_CALLS_STRIDE;
		struct fay_call_stack stack;
		enum round round = (enum round)(i / used / 2);
		bool ended = i / used % 2 == 1;

		if ((round == WITHOUT_ADDRESS || ended) && returning->doubt)
			return;
		if (!read_stack(returning->stop, at, &stack) || is_live_thread(returning->stop, stack.key) == ended)
			continue;
		read_calls(returning->stop, at, &stack, &returning->own);
		read_others(returning, stack.key);
		return_calls(returning, stack.key, round);
	}
}

int fay_calls_return(struct fay_stop *stop, const struct fay_zones *zones, const struct fay_zone_header *header, bool *doubt, struct fay_error *error)
{
	struct returning returning = { .stop = stop, .zones = zones, .header = header, .steps = STEPS_MOST };
	bool enough = begin(&returning);

	if (enough && !returning.doubt) {
		returning.waits = returning.other_count && somebody_is_amid_chain(&returning);
		return_all(&returning);
		look_for_rest(&returning);
	}
	*doubt = returning.doubt;
	end(&returning);
	return enough ? 0 : fay_error_set(error, FAY_E_LIMIT, "out of memory");
}
