/* SPDX-License-Identifier: MIT */
/*
 * Watched calls: what the trampolines' fast paths (trampoline_call.c) leave over.
 *
 * A thread's call stack has a place (struct fay_call) for each call under way, newest last. A call's `slot` is the place on the program's stack where
 * its return address was; while the call is under way a return point of ours lies there. Places of calls that have ended are empty (all zero); they are
 * taken again, or cut off the end. Calls are left in other ways than by returning, and stacks are switched, so a call is never taken for dead because of its
 * address alone, but when
 *
 *	- it returns,
 *	- an exception passes it (the personality routine marks it: calls_left.c),
 *	- a longjmp goes over it (a hook at longjmp's start marks it, there, too; should that have been a switch of stacks, it may still return),
 *	- its slot no longer holds a return point, ours or another session's: something else has been written there,
 *	- a newer call began at its slot, and not as a tail call: looked at where the call was marked, or there is no room.
 *
 * What is neither returned nor known dead (frames that a longjmp left, stacks of coroutines) stays, and costs room only. A call that returns in
 * another thread than it began in is looked for in all call stacks; what an exception comes to there is taken over into the thread's own.
 *
 * How the unwinder finds its way past return points is in calls_unwind.c.
 *
 * Ordering guarantees: a call stack is changed by its own thread only, except that a call which returns or is unwound elsewhere is marked there by a
 * compare-and-swap. Of calls at one slot the newer has the higher place. Signal handlers of the thread push and pop above, between any two instructions of
 * the trampolines and of this file: what they find taken they leave, and what they take they have emptied when they return, unless it was left by unwinding
 * (or they have switched stacks: docs/dispatcher.md, Limits). The top may then be another than before: whoever has read it goes on with what it was, and
 * changes it by one instruction. So a call may come to lie behind the top: entries pass over its place, and when it returns it is looked for there too. A
 * call is begun by its slot and complete with its address; the return point lies in the slot some instructions later. Between the two the slot holds the
 * return address itself. That of the first call on a stack made by hand may be 0: such a call looks like one that is being begun, but for the return point in its slot.
 */
#include "runtime_internal.h"

/* glibc's struct dl_find_object (dlfcn.h, since 2.35). */
struct fay_dl_object {
	uint64_t flags, map_start, map_end, link_map, eh_frame, reserved[7];
};

uint64_t fay_rt_leave(void *local, uint64_t slot, uint64_t *cycles);
void *fay_rt_full(void *local, uint64_t here);
uint32_t fay_rt_find_object(uint64_t address, struct fay_dl_object *result);
const void *fay_rt_find_fde(uint64_t address, uint64_t bases[3]);

struct fay_call_stack *fay_rt_call_stack(uint32_t index)
{
	return (struct fay_call_stack *)(fay_config.calls + (uint64_t)index * FAY_CALLS_STRIDE);
}

bool fay_rt_calls_used(uint32_t index)
{
	return fay_config.calls && fay_rt_call_stack(index)->used;
}

/* Written by its own thread only. */
uint64_t *fay_rt_calls_known_top(struct fay_call_stack *stack)
{
	return &((struct fay_thread_entry *)stack->entry)->top;
}

/*
 * Where the taken places end. Of a thread of the process that this one was forked from nothing is left in the thread table, or something else stands
 * there: then it is the last place that is not empty.
 */
struct fay_call *fay_rt_calls_top(struct fay_call_stack *stack)
{
	struct fay_call *first = fay_first_call(stack), *top = first + FAY_CALLS_MAX + FAY_CALLS_SPARE;
	uint64_t known = __atomic_load_n(fay_rt_calls_known_top(stack), __ATOMIC_RELAXED);

	if (known - (uint64_t)first <= (uint64_t)top - (uint64_t)first)
		return (struct fay_call *)known;
	while (top > first && top[-1].slot == 0)
		top--;
	return top;
}

static const struct fay_return_point *find_point(const struct fay_return_point *points, uint32_t count, uint64_t address)
{
	uint32_t low = 0, high = count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (points[middle].address == address)
			return &points[middle];
		if (points[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

const struct fay_return_point *fay_rt_return_point(uint64_t address)
{
	for (uint64_t i = 0; i < fay_config.zone_count; i++) {
		const struct fay_runtime_zone *zone = &fay_config.zones[i];

		if (address - zone->start < zone->end - zone->start)
			return find_point((const struct fay_return_point *)zone->returns, zone->return_count, address);
	}
	return NULL;
}

const struct fay_return_point *fay_rt_point_of(uint64_t address)
{
	const struct fay_return_point *found = fay_rt_return_point(address);

	for (uint64_t i = 0; i < fay_config.zone_count && !found; i++) {
		const struct fay_runtime_zone *zone = &fay_config.zones[i];

		found = find_point((const struct fay_return_point *)zone->returns + zone->return_count, zone->alias_count, address);
	}
	return found;
}

bool fay_rt_is_return_point(uint64_t address)
{
	const struct fay_others *others = fay_others();

	if (fay_rt_return_point(address))
		return true;
	for (const struct fay_other_code *range = others->ranges; (uint64_t)range < others->end && range < others->ranges + FAY_OTHERS_MAX; range++)
		if (address - __atomic_load_n(&range->start, __ATOMIC_RELAXED) < __atomic_load_n(&range->size, __ATOMIC_RELAXED))
			return true;
	return false;
}

/*
 * Another call began at the same slot, and not by a tail call from this one: the frame is gone. Where sessions that came later watch the same calls each call returns to a return point of
 * theirs, a tail call or not: then only what may still return is not taken for gone.
 */
static bool superseded(const struct fay_call *call, const struct fay_call *top, bool may_return)
{
	bool again = false;

	for (const struct fay_call *newer = call + 1; newer < top && newer <= call + FAY_CALLS_NEWER; newer++) {
		if ((newer->slot ^ call->slot) & ~(uint64_t)FAY_CALL_MARKS)
			continue;
		if (again) /* by one with the return address 0: no tail call */
			return true;
		if (newer->address)
			return !(may_return ? fay_rt_is_return_point(newer->address) : fay_rt_return_point(newer->address) != NULL);
		again = true; /* or it is being begun */
	}
	return false;
}

/*
 * Under way or being begun. One that was left counts as there while its frame may be: the unwinder still reads the return address of a call whose frame it has just passed, and a longjmp
 * may have been a switch of stacks. `here` is where the thread's stack ends: what lies below it is gone, unless it is another stack.
 */
static bool still_there(const struct fay_call_stack *stack, const struct fay_call *call, const struct fay_call *top, uint64_t here)
{
	uint64_t slot = call->slot & ~(uint64_t)FAY_CALL_MARKS, left = call->slot & FAY_CALL_MARKS, word;
	bool may_return = left == FAY_CALL_LEFT && stack->switches;

	if (call->slot == 0)
		return false;
	if (call->address == 0 && left)
		return false;
	if (left && slot < here && !may_return)
		return false;
	if ((left || call->address == 0) && superseded(call, top, may_return || !left))
		return false;
	if (fay_rt_try_read(&word, 8, slot))
		return fay_rt_try_read(&word, 8, (uint64_t)stack); /* gone with its stack; but where a sandbox lets nothing be read, nothing is known to be dead */
	return call->address == 0 || fay_rt_is_return_point(word) || (!left && word == call->address);
}

/* In the order that tells what a signal handler must not take for an empty place. */
void fay_rt_end_call(struct fay_call *call)
{
	__atomic_store_n(&call->address, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&call->slot, 0, __ATOMIC_RELEASE);
}

void fay_rt_move_begin(struct fay_call_stack *stack)
{
	__atomic_store_n(&stack->moves, stack->moves | 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void fay_rt_move_end(struct fay_call_stack *stack)
{
	__atomic_store_n(&stack->moves, (stack->moves | 1) + 1, __ATOMIC_RELEASE);
}

bool fay_rt_moved(const struct fay_call_stack *stack, uint64_t before)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return before % 2 || __atomic_load_n(&stack->moves, __ATOMIC_RELAXED) != before;
}

/*
 * Ends the calls that are known to be dead; `here` is where the thread's stack ends. A call that nothing has marked is among them if another began at its slot: its frame was left by a jump
 * that is not hooked, or with its stack.
 */
static void end_dead(struct fay_call_stack *stack, uint64_t here)
{
	const struct fay_call *top = fay_rt_calls_top(stack);

	for (struct fay_call *call = fay_first_call(stack); call < top; call++)
		if (call->slot && (superseded(call, top, true) || !still_there(stack, call, top, here)))
			fay_rt_end_call(call);
}

/* From the newest down to `least` ends those known to be dead, until one is still there: looking costs a system call, and where stacks are switched many calls may lie above one that returns. */
static void end_newest_dead(struct fay_call_stack *stack, struct fay_call *least, uint64_t here)
{
	struct fay_call *top = fay_rt_calls_top(stack);

	for (struct fay_call *call = top; call-- > least && (!call->slot || !still_there(stack, call, top, here));)
		if (call->slot)
			fay_rt_end_call(call);
}

/*
 * Cuts empty places off the end, down to `least`. What a signal handler's calls leave there by unwinding meanwhile must not come to lie behind the top, where it would pass for newer than
 * what begins below it.
 */
static void trim(struct fay_call_stack *stack, const struct fay_call *least)
{
	struct fay_call *top = fay_rt_calls_top(stack), *low = top;
	uint64_t found = (uint64_t)top;

	while (low > least && low[-1].slot == 0)
		low--;
	if (!__atomic_compare_exchange_n(fay_rt_calls_known_top(stack), &found, (uint64_t)low, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return;
	for (; low < top; low++)
		while (low->slot && fay_rt_calls_top(stack) <= low)
			__atomic_fetch_add(fay_rt_calls_known_top(stack), sizeof(*low), __ATOMIC_RELAXED);
}

/*
 * Of a call without an address, in doubt true. If it is complete its return address is 0 (the end of a stack made by hand), and our return point is in its slot, where it does not belong to
 * an older call, which this one follows as a tail call.
 */
static bool is_being_begun(struct fay_call_stack *stack, const struct fay_call *call)
{
	uint64_t word;

	if (fay_rt_try_read(&word, sizeof(word), call->slot & ~(uint64_t)FAY_CALL_MARKS) || !fay_rt_return_point(word))
		return true;
	for (const struct fay_call *older = call; older-- > fay_first_call(stack);)
		if (older->address && ((older->slot ^ call->slot) & ~(uint64_t)FAY_CALL_MARKS) == 0)
			return true;
	return false;
}

/* Moves calls down into empty places. One that is being begun stays: the code that a signal interrupted there will write to its place. */
static void compact(struct fay_call_stack *stack)
{
	struct fay_call *to = fay_first_call(stack), *top = fay_rt_calls_top(stack);

	for (struct fay_call *call = to; call < top; call++) {
		if (call->slot == 0)
			continue;
		if (call->address == 0 && is_being_begun(stack, call))
			to = call;
		if (call != to) {
			fay_rt_move_begin(stack);
			*to = *call;
			fay_rt_end_call(call);
			fay_rt_move_end(stack);
		}
		to++;
	}
	trim(stack, fay_first_call(stack));
}

/* The newest call below `end` with this slot, its mark included. */
static struct fay_call *find_below(struct fay_call_stack *stack, struct fay_call *end, uint64_t slot)
{
	for (struct fay_call *call = end; call-- > fay_first_call(stack);)
		if (call->slot == slot)
			return call;
	return NULL;
}

struct fay_call *fay_rt_find_call(struct fay_call_stack *stack, uint64_t slot)
{
	return find_below(stack, fay_rt_calls_top(stack), slot);
}

/* One of the thread's own that returns although it was marked as left: that was a switch of stacks. Or a signal handler's, which lies behind the top. */
static struct fay_call *find_hidden(struct fay_call_stack *stack, uint64_t slot)
{
	struct fay_call *end = fay_first_call(stack) + FAY_CALLS_MAX + FAY_CALLS_SPARE, *call = fay_rt_find_call(stack, slot | FAY_CALL_LEFT);

	if (!call)
		call = find_below(stack, end, slot);
	return call ? call : find_below(stack, end, slot | FAY_CALL_LEFT);
}

/* The address of the newest call with this slot, its mark included, on another thread's stack, which is marked as gone; 0: there is none. */
static uint64_t leave_on(struct fay_call_stack *stack, uint64_t slot, uint64_t *cycles)
{
	for (unsigned tries = 0; tries < FAY_MOVED_TRIES; tries++) {
		uint64_t moves = __atomic_load_n(&stack->moves, __ATOMIC_ACQUIRE), expected = slot, address;
		struct fay_call *call = fay_rt_find_call(stack, slot);

		if (!call && !fay_rt_moved(stack, moves))
			return 0;
		if (!call)
			continue;
		address = call->address;
		*cycles = call->cycles;
		if (__atomic_compare_exchange_n(&call->slot, &expected, slot | FAY_CALL_GONE, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return address;
	}
	return 0;
}

/* A call with this slot, its mark included, that began in another thread, or before this process was forked. */
static uint64_t leave_elsewhere(uint64_t slot, uint64_t *cycles)
{
	uint32_t used = slots_used();
	uint64_t address = 0;

	for (uint32_t i = 0; i < used && !address; i++) {
		struct fay_call_stack *stack = fay_rt_call_stack(i);

		if (stack->used)
			address = leave_on(stack, slot, cycles);
	}
	return address;
}

/*
 * Ends the call, and returns its address. The top stays above the call's place: if a signal handler made the call, what it interrupted may be about to take that
 * place, or has taken the top for it.
 */
static uint64_t leave_own(struct fay_slot_header *header, struct fay_call_stack *stack, struct fay_call *call, uint64_t *cycles)
{
	uint64_t address = call->address, busy = header->busy, slot = call->slot & ~(uint64_t)FAY_CALL_MARKS;

	header->busy = (uint64_t)&busy;
	__asm__ volatile("" : : : "memory");
	*cycles = call->cycles;
	fay_rt_end_call(call);
	end_newest_dead(stack, call + 1, slot);
	trim(stack, call + 1);
	__asm__ volatile("" : : : "memory");
	header->busy = busy;
	return address;
}

/* The return address of the call that now returns; it is no longer watched. */
uint64_t fay_rt_leave(void *local, uint64_t slot, uint64_t *cycles)
{
	struct fay_slot_header *header = local ? slot_of(local) : NULL;
	struct fay_call_stack *stack = header ? (struct fay_call_stack *)header->calls : NULL;
	struct fay_call *call = stack ? fay_rt_find_call(stack, slot) : NULL;
	uint64_t address;

	/* One that is under way elsewhere before one here that was left: what was left at this slot may be older. */
	if (!call) {
		address = leave_elsewhere(slot, cycles);
		if (address)
			return address;
		call = stack ? find_hidden(stack, slot) : NULL;
	}
	if (call)
		return leave_own(header, stack, call, cycles);
	address = leave_elsewhere(slot | FAY_CALL_LEFT, cycles);
	if (!address)
		__builtin_trap(); /* nobody knows where to go: the program wrote over our memory */
	return address;
}

#define HANDLER_PATIENCE 63u

/*
 * The thread's entry; NULL if there is no room for a further call. A signal handler makes none: the code that it interrupted, a trampoline at a return or the unwinder, may be about
 * to read a place.
 */
void *fay_rt_full(void *local, uint64_t here)
{
	struct fay_slot_header *slot = slot_of(local);
	struct fay_call_stack *stack = (struct fay_call_stack *)slot->calls;
	bool room;

	/* Looking costs a system call for each call: in a recursion that is really that deep it is done ever less often. */
	if (stack->full++ < stack->patience)
		return NULL;
	if (fay_rt_in_handler(here)) {
		/* Looking takes many system calls where the stack only looks like a handler's: not at each call. */
		stack->patience = stack->patience < HANDLER_PATIENCE ? 2 * stack->patience + 1 : stack->patience;
		stack->full = 0;
		return NULL;
	}
	end_dead(stack, here);
	trim(stack, fay_first_call(stack));
	if ((uint64_t)fay_rt_calls_top(stack) >= slot->calls_limit)
		compact(stack);
	room = (uint64_t)fay_rt_calls_top(stack) < slot->calls_limit;
	stack->patience = room ? 0 : 2 * stack->full + FAY_CALLS_MAX;
	stack->full = 0;
	return room ? (void *)slot->entry : NULL;
}

/* The calls of the thread that forked this process are those of its only thread now. */
static void inherit_calls(struct fay_call_stack *stack, uint32_t index, uint64_t key)
{
	uint32_t process = fay_rt_process();

	for (uint32_t i = 0; i < slots_used(); i++) {
		struct fay_call_stack *other = fay_rt_call_stack(i);
		struct fay_slot_header *slot = slot_at(i);
		struct fay_call *first = fay_first_call(other);
		uint64_t size;

		if (i == index || !other->used || other->key != key || slot->process == process)
			continue;
		size = (uint64_t)fay_rt_calls_top(other) - (uint64_t)first;
		fay_rt_move_begin(stack);
		memcpy(fay_first_call(stack), first, size);
		*fay_rt_calls_known_top(stack) = (uint64_t)fay_first_call(stack) + size;
		memset(first, 0, size);
		fay_rt_move_end(stack);
	}
}

void fay_rt_calls_init(struct fay_slot_header *slot, uint32_t index, struct fay_thread_entry *entry, uint64_t key)
{
	struct fay_call_stack *stack = fay_rt_call_stack(index);

	slot->calls = (uint64_t)stack;
	slot->calls_limit = (uint64_t)(fay_first_call(stack) + FAY_CALLS_MAX);
	stack->used = 1;
	stack->entry = (uint64_t)entry;
	*fay_rt_calls_known_top(stack) = (uint64_t)fay_first_call(stack);
	stack->before = (struct fay_call){ .slot = FAY_CALL_LEFT, .address = 1 };
	stack->key = key;
	fay_rt_unwind_write(stack);
	inherit_calls(stack, index, key);
}

void *fay_rt_own_local(void)
{
	uint64_t base;

	__asm__ volatile("rdfsbase %0" : "=r"(base));
	return (void *)fay_rt_acquire(base + fay_config.key_step);
}

static struct fay_call_stack *own_calls(void)
{
	void *local = fay_rt_own_local();

	return local ? (struct fay_call_stack *)slot_of(local)->calls : NULL;
}

/* 1 if `address`, which the unwinder has made one less than a return address, is ours and the result was filled. */
uint32_t fay_rt_find_object(uint64_t address, struct fay_dl_object *result)
{
	struct fay_call_stack *stack = fay_rt_return_point(address + 1) ? own_calls() : NULL;

	if (!stack)
		return 0;
	result->flags = 0;
	result->map_start = fay_config.zones[0].start;
	result->map_end = fay_config.zones[0].end;
	result->link_map = 0;
	result->eh_frame = (uint64_t)stack->unwind;
	return 1;
}

/* Likewise _Unwind_Find_FDE(): its FDE, and struct dwarf_eh_bases { tbase, dbase, func } filled. */
const void *fay_rt_find_fde(uint64_t address, uint64_t bases[3])
{
	struct fay_call_stack *stack = fay_rt_return_point(address + 1) ? own_calls() : NULL;

	if (!stack)
		return NULL;
	bases[0] = bases[1] = 0;
	bases[2] = address; /* the FDE's instructions apply from here on */
	return stack->unwind + FAY_UNWIND_FDE_AT;
}
