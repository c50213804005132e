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
 *	- an exception passes it (the personality routine below marks it),
 *	- a longjmp goes over it (a hook at longjmp's start marks it; should that have been a switch of stacks, it may still return),
 *	- its slot no longer holds a return point of ours: something else has been written there.
 *
 * What is neither returned nor known dead (frames that a longjmp left, stacks of coroutines) stays, and costs room only. A call that returns in
 * another thread than it began in is looked for in all call stacks.
 *
 * Unwinding. The unwinder (libgcc's, which serves C++, Rust, Ada, Go's cgo and glibc's own cancellation and backtrace()) meets a return point
 * where it expects the caller. _dl_find_object(), or _Unwind_Find_FDE(), is hooked to answer for these addresses with the unwind information below, as
 * if a frame without size stood between the two: same registers, same rsp, and as return address the real one, which a DWARF expression finds in the call
 * stack. Its personality routine, called as the unwinder passes (Itanium C++ ABI: Exception Handling, 1.3 and 2.5.2), runs the exception probes.
 *
 *	CIE  "zPR", CFA = rsp - step, rsp = CFA + step, return address column 16
 *	FDE  all zones; return address at: the expression
 *
 * The step, a different one from 1 to 7 for each session in a process, makes this frame's CFA unlike its caller's: libgcc tells frames apart by
 * their CFA (uw_identify_context in unwind-dw2.c).
 *
 * Ordering guarantees: a call stack is changed by its own thread only, except that a call which returns elsewhere is marked there by a
 * compare-and-swap. Signal handlers of the thread push and pop above, between any two instructions of the trampolines and of this file: what they find
 * taken they leave, and what they take they have emptied when they return. A call is begun by its slot and complete with its address; the return point lies
 * in the slot some instructions later. Between the two the slot holds the return address itself.
 */
#include "runtime_internal.h"

#define LEFT 1u /* in fay_call.slot */

/* glibc's struct dl_find_object (dlfcn.h, since 2.35). */
struct fay_dl_object {
	uint64_t flags, map_start, map_end, link_map, eh_frame, reserved[7];
};

uint64_t fay_rt_leave(void *local, uint64_t slot, uint64_t *cycles);
void *fay_rt_full(void *local);
uint32_t fay_rt_find_object(uint64_t address, struct fay_dl_object *result);
const void *fay_rt_find_fde(uint64_t address, uint64_t bases[3]);
void fay_rt_longjmp(const uint64_t *jmp_buf, uint64_t here);
uint32_t fay_rt_personality(int version, uint32_t actions, uint64_t class, void *exception, const uint64_t *context);

static struct fay_call *first_call(struct fay_call_stack *stack)
{
	return (struct fay_call *)(stack + 1);
}

static struct fay_call_stack *stack_of_slot(uint32_t index)
{
	return (struct fay_call_stack *)(fay_config.calls + (uint64_t)index * FAY_CALLS_STRIDE);
}

/*
 * Where the taken places end. Of a thread of the process that this one was forked from nothing is left in the thread table, or something else stands
 * there: then it is the last place that is not empty.
 */
static struct fay_call *top_of(struct fay_call_stack *stack)
{
	struct fay_call *first = first_call(stack), *top = first + FAY_CALLS_MAX + FAY_CALLS_SPARE;
	uint64_t known = __atomic_load_n(&((const struct fay_thread_entry *)stack->entry)->top, __ATOMIC_RELAXED);

	if (known - (uint64_t)first <= (uint64_t)top - (uint64_t)first)
		return (struct fay_call *)known;
	while (top > first && top[-1].slot == 0)
		top--;
	return top;
}

/* By its own thread only. */
static void set_top(struct fay_call_stack *stack, struct fay_call *top)
{
	((struct fay_thread_entry *)stack->entry)->top = (uint64_t)top;
}

/* The return point at this address. */
static const struct fay_return_point *return_point(uint64_t address)
{
	for (uint64_t i = 0; i < fay_config.zone_count; i++) {
		const struct fay_runtime_zone *zone = &fay_config.zones[i];
		const struct fay_return_point *points = (const struct fay_return_point *)zone->returns;
		uint64_t low = 0, high = zone->return_count;

		if (address - zone->start >= zone->end - zone->start)
			continue;
		while (low < high) {
			uint64_t middle = low + (high - low) / 2;

			if (points[middle].address == address)
				return &points[middle];
			if (points[middle].address < address)
				low = middle + 1;
			else
				high = middle;
		}
	}
	return NULL;
}

/* Under way or being begun. */
static bool still_there(const struct fay_call *call)
{
	uint64_t word;

	if (call->slot & LEFT || call->slot == 0)
		return false;
	return call->address == 0 || (fay_rt_try_read(&word, 8, call->slot) == 0 && (word == call->address || return_point(word)));
}

/* In the order that tells what a signal handler must not take for an empty place. */
static void end_call(struct fay_call *call)
{
	__atomic_store_n(&call->address, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&call->slot, 0, __ATOMIC_RELEASE);
}

/* Ends calls from `from` up that are known to be dead. */
static void end_dead(struct fay_call_stack *stack, struct fay_call *from)
{
	for (; from < top_of(stack); from++)
		if (from->slot && !still_there(from))
			end_call(from);
}

/* Cuts empty places off the end. */
static void trim(struct fay_call_stack *stack)
{
	struct fay_call *top = top_of(stack);

	while (top > first_call(stack) && top[-1].slot == 0)
		top--;
	set_top(stack, top);
}

/* Moves calls down into empty places. Not while one is being begun: the code that a signal interrupted there will write to its place. */
static void compact(struct fay_call_stack *stack)
{
	struct fay_call *to = first_call(stack), *top = top_of(stack);

	for (struct fay_call *call = to; call < top; call++)
		if (call->slot && call->address == 0)
			return;
	for (struct fay_call *call = to; call < top; call++) {
		if (call->slot == 0)
			continue;
		if (call != to) {
			*to = *call;
			end_call(call);
		}
		to++;
	}
	trim(stack);
}

/* The newest call with this slot, its mark included. */
static struct fay_call *find_call(struct fay_call_stack *stack, uint64_t slot)
{
	for (struct fay_call *call = top_of(stack); call-- > first_call(stack);)
		if (call->slot == slot)
			return call;
	return NULL;
}

/* A call that began in another thread, or before this process was forked. */
static uint64_t leave_elsewhere(uint64_t slot, uint64_t *cycles)
{
	uint32_t used = __atomic_load_n(&control_page()->slot_next, __ATOMIC_ACQUIRE);

	if (used > fay_config.slot_max)
		used = fay_config.slot_max;
	for (uint32_t i = 0; i < used; i++) {
		struct fay_call_stack *stack = stack_of_slot(i);
		struct fay_call *call = stack->used ? find_call(stack, slot) : NULL;
		uint64_t address, expected = slot;

		if (!call)
			continue;
		address = call->address;
		*cycles = call->cycles;
		if (__atomic_compare_exchange_n(&call->slot, &expected, slot | LEFT, false, __ATOMIC_ACQ_REL,
						__ATOMIC_RELAXED))
			return address;
	}
	return 0;
}

/* The return address of the call that now returns; it is no longer watched. */
uint64_t fay_rt_leave(void *local, uint64_t slot, uint64_t *cycles)
{
	struct fay_slot_header *header = local ? slot_of(local) : NULL;
	struct fay_call_stack *stack = header ? (struct fay_call_stack *)header->calls : NULL;
	struct fay_call *call = stack ? find_call(stack, slot) : NULL;
	uint64_t address;
	uint32_t busy;

	if (!call && stack)
		call = find_call(stack, slot | LEFT);
	if (call) {
		busy = header->busy;
		header->busy = 1;
		__asm__ volatile("" : : : "memory");
		address = call->address;
		*cycles = call->cycles;
		end_call(call);
		end_dead(stack, call);
		trim(stack);
		__asm__ volatile("" : : : "memory");
		header->busy = busy;
		return address;
	}
	address = leave_elsewhere(slot, cycles);
	if (address == 0)
		__builtin_trap(); /* nobody knows where to go: the program wrote over our memory */
	return address;
}

/* The thread's entry; NULL if there is no room for a further call. */
void *fay_rt_full(void *local)
{
	struct fay_slot_header *slot = slot_of(local);
	struct fay_call_stack *stack = (struct fay_call_stack *)slot->calls;
	bool room;

	/* Looking costs a system call for each call: in a recursion that is really that deep it is done ever less often. */
	if (stack->full++ < stack->patience)
		return NULL;
	end_dead(stack, first_call(stack));
	trim(stack);
	if ((uint64_t)top_of(stack) >= slot->calls_limit)
		compact(stack);
	room = (uint64_t)top_of(stack) < slot->calls_limit;
	stack->patience = room ? 0 : 2 * stack->full + FAY_CALLS_MAX;
	stack->full = 0;
	return room ? (void *)slot->entry : NULL;
}

/* ---- unwind information --------------------------------------------------------------------------------------------- */

enum { /* DWARF 4, 7.7.1 and 7.23 */
	DW_OP_DEREF = 0x06,
	DW_OP_CONST1U = 0x08,
	DW_OP_CONST1S = 0x09,
	DW_OP_CONST8U = 0x0e,
	DW_OP_DUP = 0x12,
	DW_OP_DROP = 0x13,
	DW_OP_OVER = 0x14,
	DW_OP_AND = 0x1a,
	DW_OP_MINUS = 0x1c,
	DW_OP_PLUS = 0x22,
	DW_OP_PLUS_UCONST = 0x23,
	DW_OP_BRA = 0x28,
	DW_OP_GE = 0x2a,
	DW_OP_LT = 0x2d,
	DW_OP_NE = 0x2e,
	DW_OP_SKIP = 0x2f,
	DW_CFA_EXPRESSION = 0x10,
	DW_CFA_DEF_CFA_SF = 0x12,
	DW_CFA_VAL_OFFSET_SF = 0x15,
	DW_EH_PE_ABSPTR = 0x00,
	DW_EH_PE_OMIT = 0xff,
	COLUMN_RSP = 7,
	COLUMN_RETURN = 16,
};

/* What is written; `room` is enough for FAY_RUNTIME_MAX_ZONES zones, which the loader sees to. */
struct writer {
	uint8_t *at;
};

static void put(struct writer *w, uint8_t byte)
{
	*w->at++ = byte;
}

static void put_word(struct writer *w, uint64_t word, unsigned size)
{
	memcpy(w->at, &word, size);
	w->at += size;
}

static void put_const8(struct writer *w, uint64_t value)
{
	put(w, DW_OP_CONST8U);
	put_word(w, value, 8);
}

/* A branch to `to`, or ahead to be landed. Returns the place of its offset. */
static uint8_t *put_branch(struct writer *w, uint8_t opcode, const uint8_t *to)
{
	put(w, opcode);
	put_word(w, (uint64_t)(to ? to - (w->at + 2) : 0), 2);
	return w->at - 2;
}

static void land(struct writer *w, uint8_t *offset)
{
	int16_t distance = (int16_t)(w->at - (offset + 2));

	memcpy(offset, &distance, 2);
}

/*
 * On the stack: the CFA, which is slot + 8 - step. Leaves the address of the word with the return address: that of the newest call at this slot;
 * if that is itself one of our return points (a tail call from one watched function to another), that of the call before it at the same slot; and so on.
 */
static void put_expression(struct writer *w, struct fay_call_stack *stack)
{
	uint8_t *loop, *none, *end, *tail[FAY_RUNTIME_MAX_ZONES];

	put_const8(w, stack->entry + offsetof(struct fay_thread_entry, top));
	put(w, DW_OP_DEREF); /* cfa call */
	loop = w->at;
	put(w, DW_OP_CONST1U);
	put(w, sizeof(struct fay_call));
	put(w, DW_OP_MINUS);
	put(w, DW_OP_DUP);
	put_const8(w, (uint64_t)first_call(stack));
	put(w, DW_OP_LT);
	none = put_branch(w, DW_OP_BRA, NULL);
	put(w, DW_OP_OVER);
	put(w, DW_OP_OVER);
	put(w, DW_OP_DEREF);
	put(w, DW_OP_CONST1S);
	put(w, (uint8_t)~LEFT);
	put(w, DW_OP_AND);
	put(w, DW_OP_PLUS_UCONST);
	put(w, (uint8_t)(8 - fay_config.unwind_step));
	put(w, DW_OP_NE); /* cfa call, cfa != call->slot + 8 - step */
	put_branch(w, DW_OP_BRA, loop);
	put(w, DW_OP_DUP);
	put(w, DW_OP_PLUS_UCONST);
	put(w, offsetof(struct fay_call, address));
	put(w, DW_OP_DEREF); /* cfa call address */
	for (uint64_t i = 0; i < fay_config.zone_count; i++) {
		put(w, DW_OP_DUP);
		put_const8(w, fay_config.zones[i].start);
		put(w, DW_OP_GE);
		put(w, DW_OP_OVER);
		put_const8(w, fay_config.zones[i].end);
		put(w, DW_OP_LT);
		put(w, DW_OP_AND);
		tail[i] = put_branch(w, DW_OP_BRA, NULL);
	}
	put(w, DW_OP_DROP);
	put(w, DW_OP_PLUS_UCONST);
	put(w, offsetof(struct fay_call, address));
	end = put_branch(w, DW_OP_SKIP, NULL);
	for (uint64_t i = 0; i < fay_config.zone_count; i++)
		land(w, tail[i]);
	put(w, DW_OP_DROP);
	put_branch(w, DW_OP_SKIP, loop);
	land(w, none);
	put_const8(w, (uint64_t)&stack->zero); /* return address 0: the end of the stack */
	land(w, end);
}

/* Ends the length field at `length` and what it covers, padded by DW_CFA_nop. */
static void end_record(struct writer *w, uint8_t *length)
{
	uint32_t size;

	while ((w->at - length) % 8 != 4)
		put(w, 0);
	size = (uint32_t)(w->at - (length + 4));
	memcpy(length, &size, 4);
}

static void write_cie(struct writer *w)
{
	static const char augmentation[] = "zPR";
	uint8_t *length = w->at;

	put_word(w, 0, 4);
	put_word(w, 0, 4); /* a CIE */
	put(w, 1);	   /* version */
	for (unsigned i = 0; i < sizeof(augmentation); i++)
		put(w, (uint8_t)augmentation[i]);
	put(w, 1);    /* code alignment */
	put(w, 0x7f); /* data alignment -1 */
	put(w, COLUMN_RETURN);
	put(w, 10); /* bytes of augmentation */
	put(w, DW_EH_PE_ABSPTR);
	put_word(w, (uint64_t)fay_rt_personality, 8);
	put(w, DW_EH_PE_ABSPTR);
	put(w, DW_CFA_DEF_CFA_SF);
	put(w, COLUMN_RSP);
	put(w, (uint8_t)fay_config.unwind_step); /* times -1 */
	put(w, DW_CFA_VAL_OFFSET_SF);
	put(w, COLUMN_RSP);
	put(w, 0x80 - (uint8_t)fay_config.unwind_step); /* -step as a one-byte SLEB128, times -1 */
	end_record(w, length);
}

static void write_fde(struct writer *w, struct fay_call_stack *stack, const uint8_t *cie)
{
	uint8_t *length = w->at, *expression;
	uint64_t low = ~0ull, high = 0;
	uint32_t size;

	for (uint64_t i = 0; i < fay_config.zone_count; i++) {
		low = fay_config.zones[i].start < low ? fay_config.zones[i].start : low;
		high = fay_config.zones[i].end > high ? fay_config.zones[i].end : high;
	}
	put_word(w, 0, 4);
	put_word(w, (uint64_t)(w->at - cie), 4);
	put_word(w, low, 8);
	put_word(w, high - low, 8);
	put(w, 0); /* no augmentation data */
	put(w, DW_CFA_EXPRESSION);
	put(w, COLUMN_RETURN);
	put_word(w, 0, 2); /* the expression's size, a two-byte ULEB128 */
	expression = w->at;
	put_expression(w, stack);
	size = (uint32_t)(w->at - expression);
	expression[-2] = (uint8_t)(size | 0x80);
	expression[-1] = (uint8_t)(size >> 7);
	end_record(w, length);
	put_word(w, 0, 4); /* end of the table */
}

#define HDR_BYTES 16u
#define CIE_AT HDR_BYTES
#define CIE_BYTES 36u /* with its length field */

/* .eh_frame_hdr without a search table (Linux Standard Base, .eh_frame_hdr), then the CIE and the FDE. */
static void write_unwind(struct fay_call_stack *stack)
{
	struct writer w = { stack->unwind };

	put(&w, 1);
	put(&w, DW_EH_PE_ABSPTR);
	put(&w, DW_EH_PE_OMIT);
	put(&w, DW_EH_PE_OMIT);
	put_word(&w, (uint64_t)(stack->unwind + CIE_AT), 8);
	w.at = stack->unwind + CIE_AT;
	write_cie(&w);
	w.at = stack->unwind + CIE_AT + CIE_BYTES;
	write_fde(&w, stack, stack->unwind + CIE_AT);
}

/* The calls of the thread that forked this process are those of its only thread now. */
static void inherit_calls(struct fay_call_stack *stack, uint32_t index, uint64_t key)
{
	uint32_t pid = (uint32_t)system_call(SYS_GETPID, 0, 0, 0, 0, 0, 0);

	for (uint32_t i = 0; i < index; i++) {
		struct fay_call_stack *other = stack_of_slot(i);
		struct fay_slot_header *slot =
			(struct fay_slot_header *)(fay_config.slots + i * fay_config.slot_stride);
		struct fay_call *first = first_call(other);
		uint64_t size;

		if (!other->used || other->key != key || slot->pid == pid)
			continue;
		size = (uint64_t)top_of(other) - (uint64_t)first;
		memcpy(first_call(stack), first, size);
		set_top(stack, first_call(stack) + size / sizeof(*first));
		memset(first, 0, size);
	}
}

void fay_rt_calls_init(struct fay_slot_header *slot, uint32_t index, struct fay_thread_entry *entry, uint64_t key)
{
	struct fay_call_stack *stack = stack_of_slot(index);

	slot->calls = (uint64_t)stack;
	slot->calls_limit = (uint64_t)(first_call(stack) + FAY_CALLS_MAX);
	stack->used = 1;
	stack->entry = (uint64_t)entry;
	set_top(stack, first_call(stack));
	stack->before = (struct fay_call){ .slot = LEFT, .address = 1 };
	stack->key = key;
	write_unwind(stack);
	inherit_calls(stack, index, key);
}

static void *own_local(void)
{
	uint64_t base;

	__asm__ volatile("rdfsbase %0" : "=r"(base));
	return (void *)fay_rt_acquire(base + 1);
}

static struct fay_call_stack *own_calls(void)
{
	void *local = own_local();

	return local ? (struct fay_call_stack *)slot_of(local)->calls : NULL;
}

/* 1 if `address`, which the unwinder has made one less than a return address, is ours and the result was filled. */
uint32_t fay_rt_find_object(uint64_t address, struct fay_dl_object *result)
{
	struct fay_call_stack *stack = return_point(address + 1) ? own_calls() : NULL;

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
	struct fay_call_stack *stack = return_point(address + 1) ? own_calls() : NULL;

	if (!stack)
		return NULL;
	bases[0] = bases[1] = 0;
	bases[2] = address; /* the FDE's instructions apply from here on */
	return stack->unwind + CIE_AT + CIE_BYTES;
}

/* ---- exceptions ----------------------------------------------------------------------------------------------------- */

#define CLEANUP_PHASE 2u
#define CONTINUE_UNWIND 8u
#define CONTEXT_FIRST 17u /* words of libgcc's struct _Unwind_Context that are searched: { reg[18], cfa, ra, ... } */
#define CONTEXT_LAST 24u

/* The slot of the frame that the unwinder is at: the context holds its CFA followed by the return point. 0: not found. */
static uint64_t slot_of_context(const uint64_t *context)
{
	for (unsigned i = CONTEXT_FIRST; i < CONTEXT_LAST; i++) {
		uint64_t word;

		if (return_point(context[i + 1]) && fay_rt_try_read(&word, 8, context[i] - 8) == 0 &&
		    word == context[i + 1])
			return context[i] - 8;
	}
	return 0;
}

static void leave_call(struct fay_call *call, const struct fay_return_point *point, void *local)
{
	uint64_t slot = call->slot;

	call->slot |= LEFT;
	if (point->exception)
		((void (*)(uint64_t, void *, uint64_t))point->exception)(call->cycles, local, slot);
}

/*
 * Called for each frame in turn as it is left. `slot` may stand for several calls, each a tail call of the one before; the newest is left first.
 */
uint32_t fay_rt_personality(int version, uint32_t actions, uint64_t class, void *exception, const uint64_t *context)
{
	void *local = actions & CLEANUP_PHASE ? own_local() : NULL;
	uint64_t slot = local ? slot_of_context(context) : 0;
	struct fay_call_stack *stack = slot ? (struct fay_call_stack *)slot_of(local)->calls : NULL;
	const struct fay_return_point *point = NULL;

	if (slot)
		point = return_point(*(const uint64_t *)slot);
	while (point) {
		struct fay_call *call = find_call(stack, slot);

		if (!call)
			break;
		leave_call(call, point, local);
		point = return_point(call->address);
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
	void *local = own_local();
	struct fay_call_stack *stack = local ? (struct fay_call_stack *)slot_of(local)->calls : NULL;
	uint64_t to = jmp_buf[JMP_BUF_RSP];

	if (to - here > JUMP_MAX)
		to = demangled(to);
	if (!stack || to - here > JUMP_MAX)
		return;
	for (struct fay_call *call = top_of(stack); call-- > first_call(stack);) {
		const struct fay_return_point *point;

		if (call->slot & LEFT || call->slot - here >= to - here)
			continue;
		/* What a tail call left: the newer call at this slot returns to it. */
		point = return_point(*(const uint64_t *)call->slot);
		for (struct fay_call *newer = call + 1; newer < top_of(stack); newer++)
			if (newer->slot == (call->slot | LEFT))
				point = return_point(newer->address);
		if (point)
			leave_call(call, point, local);
		else if (call->address == 0 || call->address == *(const uint64_t *)call->slot)
			call->slot |= LEFT; /* by the handler of a signal that came while the call was being begun */
	}
}
