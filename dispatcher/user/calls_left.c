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

/* Which return point the unwinder is at. */
struct frame {
	uint64_t slot;
	uint64_t visits; /* how often it has been at one of this session at this slot before */
	const struct fay_return_point *point;
};

/*
 * A context holds the CFA of what the unwinder has passed, followed by the return point. It has passed the function, whose CFA is that behind the slot, or another session's
 * return point at the same slot, whose CFA is less by up to 7 and holds the visits (calls_unwind.c).
 */
static bool frame_at(const uint64_t *words, struct frame *frame)
{
	frame->point = fay_rt_return_point(words[1]);
	frame->slot = ((words[0] & FAY_UNWIND_ADDRESS) - 1) & ~UINT64_C(7);
	frame->visits = words[0] >> FAY_UNWIND_VISITS_AT(fay_config.unwind_step) & FAY_UNWIND_VISITS;
	return frame->point != NULL;
}

static bool frame_of_context(const uint64_t *context, struct frame *frame)
{
	uint64_t word;

	for (unsigned i = CONTEXT_FIRST; i < CONTEXT_LAST; i++)
		if (frame_at(context + i, frame) && fay_rt_try_read(&word, 8, frame->slot) == 0 &&
		    (context[i] % 8 == 0 ? word == context[i + 1] : fay_rt_is_return_point(word)))
			return true;
	return false;
}

/* Whether the thread itself has begun a call at the frame that the unwinder is at, as it seems: without the system call that makes sure of the slot. */
static bool seems_own(struct fay_call_stack *stack, const uint64_t *context)
{
	struct frame frame;

	for (unsigned i = CONTEXT_FIRST; i < CONTEXT_LAST; i++)
		if (frame_at(context + i, &frame) && fay_rt_find_call(stack, frame.slot))
			return true;
	return false;
}

/* `point` NULL: of which function it is is not known. */
static void leave_call(struct fay_call *call, uint64_t mark, const struct fay_return_point *point, void *local)
{
	uint64_t slot = call->slot;

	call->slot |= mark;
	if (!point)
		slot_of(local)->lost_calls += fay_config.sees_exceptions;
	else if (point->exception)
		((void (*)(uint64_t, void *, uint64_t))point->exception)(call->cycles, local, slot);
}

/*
 * Marks the calls that the frame stands for, newest first: one, or several if each was a tail call of the one before. With other sessions' return points between them the unwinder
 * comes to each at a frame of its own; but at the last visit all that are left are marked (calls_unwind.c).
 */
static void leave_frame(struct fay_call_stack *stack, const struct frame *frame, void *local)
{
	const struct fay_return_point *point = frame->point;
	struct fay_call *call = fay_rt_find_call(stack, frame->slot);
	bool last = frame->visits == FAY_UNWIND_LAST_VISIT;

	while (call) {
		uint64_t address = call->address;

		leave_call(call, FAY_CALL_GONE, point, local);
		if (last ? !fay_rt_is_return_point(address) : !fay_rt_return_point(address))
			return;
		point = fay_rt_point_of(address);
		call = fay_rt_find_call(stack, frame->slot);
	}
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

/* Takes over those of another stack's calls that have this slot. Oldest first, so that they keep their order. */
static void take_from(struct fay_call_stack *own, struct fay_call_stack *stack, uint64_t slot)
{
	struct fay_call *end = fay_rt_calls_top(stack);

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

/* Calls with this slot that began in another thread: the unwinder, which finds those of its own thread only, has come to them here. */
static void take_over(struct fay_call_stack *own, uint64_t slot)
{
	fay_rt_move_begin(own);
	for (uint32_t i = 0; i < slots_used(); i++) {
		struct fay_call_stack *stack = fay_rt_call_stack(i);
		uint64_t moves = 1;

		for (unsigned tries = 0; stack->used && stack != own && tries < FAY_MOVED_TRIES && fay_rt_moved(stack, moves); tries++) {
			moves = __atomic_load_n(&stack->moves, __ATOMIC_ACQUIRE);
			take_from(own, stack, slot);
		}
	}
	fay_rt_move_end(own);
}

/* Called for each frame in turn, first when a handler is searched, then as it is left. */
uint32_t fay_rt_personality(int version, uint32_t actions, uint64_t class, void *exception, const uint64_t *context)
{
	void *local = fay_rt_own_local();
	struct fay_call_stack *stack = local ? (struct fay_call_stack *)slot_of(local)->calls : NULL;
	bool leaving = actions & CLEANUP_PHASE;
	struct frame frame;

	if (!stack || (!leaving && seems_own(stack, context)) || !frame_of_context(context, &frame))
		return CONTINUE_UNWIND;
	if (!fay_rt_find_call(stack, frame.slot) && !fay_rt_find_call(stack, frame.slot | FAY_CALL_LEFT))
		take_over(stack, frame.slot);
	if (leaving)
		leave_frame(stack, &frame, local);
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
		for (struct fay_call *newer = call + 1; newer < top && newer <= call + FAY_CALLS_NEWER; newer++)
			if (newer->slot == (call->slot | FAY_CALL_LEFT)) {
				word = newer->address;
				break;
			}
		point = fay_rt_point_of(word);
		if (point || (call->address != word && fay_rt_is_return_point(word)))
			leave_call(call, FAY_CALL_LEFT, point, local);
		else if (call->address == 0 || call->address == word)
			call->slot |= FAY_CALL_LEFT; /* by the handler of a signal that came while the call was being begun */
	}
}
