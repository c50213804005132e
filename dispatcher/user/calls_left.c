/* SPDX-License-Identifier: MIT */
/*
 * How watched calls (calls.c) are left other than by returning: by exceptions, whose unwinder calls the personality routine for each (calls_unwind.c), and by longjmp, at whose start
 * there is a hook.
 */
#include "runtime_internal.h"

void fay_rt_longjmp(const uint64_t *jmp_buf, uint64_t here);

#define CLEANUP_PHASE 2u
#define CONTINUE_UNWIND 8u
#define CONTEXT_FIRST 17u /* words of libgcc's struct _Unwind_Context that are searched: { reg[18], cfa, ra, ... } */
#define CONTEXT_LAST 24u

/* The slot of the frame that the unwinder is at: the context holds its CFA followed by the return point. 0: not found. */
static uint64_t slot_of_context(const uint64_t *context)
{
	for (unsigned i = CONTEXT_FIRST; i < CONTEXT_LAST; i++) {
		uint64_t word;

		if (fay_rt_return_point(context[i + 1]) && fay_rt_try_read(&word, 8, context[i] - 8) == 0 &&
		    word == context[i + 1])
			return context[i] - 8;
	}
	return 0;
}

/* Whether the thread itself has begun a call at the frame that the unwinder is at, as it seems: without the system call that makes sure of the slot. */
static bool seems_own(struct fay_call_stack *stack, const uint64_t *context)
{
	for (unsigned i = CONTEXT_FIRST; i < CONTEXT_LAST; i++)
		if (fay_rt_return_point(context[i + 1]) && fay_rt_find_call(stack, context[i] - 8))
			return true;
	return false;
}

static void leave_call(struct fay_call *call, uint64_t mark, const struct fay_return_point *point, void *local)
{
	uint64_t slot = call->slot;

	call->slot |= mark;
	if (point->exception)
		((void (*)(uint64_t, void *, uint64_t))point->exception)(call->cycles, local, slot);
}

/* Takes a place on the thread's own stack, marked by `slot`, as a call that is being begun; NULL if there is none. */
static struct fay_call *take_place(struct fay_call_stack *stack, uint64_t slot)
{
	const struct fay_call *end = fay_first_call(stack) + FAY_CALLS_MAX + FAY_CALLS_SPARE;

	while (fay_rt_calls_top(stack) < end) {
		struct fay_call *place = (struct fay_call *)__atomic_fetch_add(fay_rt_calls_known_top(stack), sizeof(*place), __ATOMIC_RELAXED);

		if (place < end && place->slot == 0) {
			__atomic_store_n(&place->slot, slot, __ATOMIC_RELEASE);
			return place;
		}
	}
	return NULL;
}

/*
 * Calls with this slot that began in another thread: the unwinder, which finds those of its own thread only, has come to them here. Oldest first, so that they keep their order.
 */
static void take_over(struct fay_call_stack *own, uint64_t slot)
{
	for (uint32_t i = 0; i < slots_used(); i++) {
		struct fay_call_stack *stack = fay_rt_call_stack(i);
		struct fay_call *end = stack->used && stack != own ? fay_rt_calls_top(stack) : fay_first_call(stack);

		for (struct fay_call *call = fay_first_call(stack); call < end; call++) {
			struct fay_call taken = *call, *place = taken.slot == slot && taken.address ? take_place(own, slot) : NULL;

			if (!place)
				continue;
			place->cycles = taken.cycles;
			__atomic_store_n(&place->address, taken.address, __ATOMIC_RELEASE);
			if (!__atomic_compare_exchange_n(&call->slot, &taken.slot, slot | FAY_CALL_GONE, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
				fay_rt_end_call(place);
		}
	}
}

/*
 * Called for each frame in turn, first when a handler is searched, then as it is left. `slot` may stand for several calls, each a tail call of the one before; the newest is left first.
 */
uint32_t fay_rt_personality(int version, uint32_t actions, uint64_t class, void *exception, const uint64_t *context)
{
	void *local = fay_rt_own_local();
	struct fay_call_stack *stack = local ? (struct fay_call_stack *)slot_of(local)->calls : NULL;
	bool leaving = actions & CLEANUP_PHASE;
	uint64_t slot = stack && (leaving || !seems_own(stack, context)) ? slot_of_context(context) : 0;
	const struct fay_return_point *point = NULL;

	if (slot && !fay_rt_find_call(stack, slot) && !fay_rt_find_call(stack, slot | FAY_CALL_LEFT))
		take_over(stack, slot);
	if (slot && leaving)
		point = fay_rt_return_point(*(const uint64_t *)slot);
	while (point) {
		struct fay_call *call = fay_rt_find_call(stack, slot);

		if (!call)
			break;
		leave_call(call, FAY_CALL_GONE, point, local);
		point = fay_rt_return_point(call->address);
	}
	return CONTINUE_UNWIND;
}

#define JUMP_MAX (64u << 20)	/* a jump over more bytes than this is one between stacks */
#define JMP_BUF_RSP 6u		/* in glibc's and musl's jmp_buf */
#define POINTER_GUARD_ROTATE 17 /* glibc, sysdeps/unix/sysv/linux/x86_64/pointer_guard.h */

static uint64_t demangled(uint64_t pointer)
{
	uint64_t guard;

	__asm__ volatile("mov %%fs:0x30, %0" : "=r"(guard));
	return (pointer >> POINTER_GUARD_ROTATE | pointer << (64 - POINTER_GUARD_ROTATE)) ^ guard;
}

/* Calls whose return addresses lie between here and where the jump leads are left. */
void fay_rt_longjmp(const uint64_t *jmp_buf, uint64_t here)
{
	void *local = fay_rt_own_local();
	struct fay_call_stack *stack = local ? (struct fay_call_stack *)slot_of(local)->calls : NULL;
	struct fay_call *top;
	uint64_t to = jmp_buf[JMP_BUF_RSP], word;

	if (to - here > JUMP_MAX)
		to = demangled(to);
	if (stack && to < here)
		stack->switches = 1;
	if (!stack || to - here > JUMP_MAX)
		return;
	top = fay_rt_calls_top(stack);
	for (struct fay_call *call = top; call-- > fay_first_call(stack);) {
		const struct fay_return_point *point;

		if (call->slot & FAY_CALL_MARKS || call->slot - here >= to - here)
			continue;
		if (fay_rt_try_read(&word, sizeof(word), call->slot))
			word = 0; /* on a stack that is gone */
		/* What a tail call left: the newer call at this slot returns to it. */
		point = fay_rt_return_point(word);
		for (struct fay_call *newer = call + 1; newer < top && newer <= call + FAY_CALLS_NEWER; newer++)
			if (newer->slot == (call->slot | FAY_CALL_LEFT)) {
				point = fay_rt_return_point(newer->address);
				break;
			}
		if (point)
			leave_call(call, FAY_CALL_LEFT, point, local);
		else if (call->address == 0 || call->address == word)
			call->slot |= FAY_CALL_LEFT; /* by the handler of a signal that came while the call was being begun */
	}
}
