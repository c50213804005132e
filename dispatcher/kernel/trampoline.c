// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A trampoline is called at a function's first instruction, so [rsp] is where the function goes on,
 * 5 bytes behind its start, and [rsp+8] its caller. rax, r10, r11 and the flags are dead there.
 * Entry probes run like this:
 *
 *	push rdi rsi rdx rcx r8 r9             of these, what is changed below or by a probe
 *	push rbx
 *	mov  rsp, rbx
 *	incl %gs:preempt_count                 no other CPU, no other task
 *	mov  %gs:preempt_count, eax
 *	mov  %gs:contexts, r11
 *	test $NMI|HARDIRQ|SOFTIRQ, eax
 *	jne  other                             -> add $n*384, r11; back
 *	cmpl $0, busy(r11)
 *	jne  lost                              -> mov lost(r11), rax; incq (rax); to out
 *	movl $1, busy(r11)
 *	and  $-16, rsp                         the kernel keeps rsp a multiple of 8 only
 *	push r11; push r11
 *	mov  rdi, event.arg[0](r11) ...        what is read
 *	mov  r11, rdi; mov $fields, esi; call fill; mov (rsp), r11       if there is more
 *	lea  event(r11), rdi; mov local(r11), rsi; mov global(r11), rdx of these, what a probe reads
 *	call probe                             and for each further one: mov (rsp), r11 and these
 *					       four again
 *	mov  (rsp), r11
 *	movl $0, busy(r11)
 * out:	mov  rbx, rsp
 *	pop  rbx
 *	decl %gs:preempt_count
 *	je   resched -> push the registers that were not; call resched; pop; back
 *	pop  r9 r8 rcx rdx rsi rdi
 *	ret
 *
 * An interrupt between the look at `busy` and its setting leaves it as it found it, so both need
 * not be one step.
 *
 * As ftrace's callback it is an ordinary function of (rdi: the traced function's address, rcx: its
 * registers), whose caller has saved everything: nothing is pushed before rbx, and arguments come
 * from rcx.
 *
 * With return probes the `ret` is instead
 *
 *	push rbp
 *	mov  rsp, rbp 8(rbp): where the function goes on, 16(rbp): its caller
 *	incq %gs:begun
 *	sub  $8, rsp -8(rbp): the time stamp counter, if the duration is read
 *	push 24+8*i(rbp) ...                   stack arguments
 *	call *8(rbp)
 *	lea  -8(rbp), rsp
 *	push rax; push rdx
 *	(as above from `push rbx`: retval with its type's width, retval2, duration ... instead of
 *	  arguments)
 *	pop  rdx; pop rax
 *	incq %gs:ended
 *	leave
 *	add  $8, rsp
 *	ret
 */
#ifdef __KERNEL__
#include <linux/string.h>
#else
#include <stdbool.h>
#include <string.h>
#endif

#include "emit_private.h"
#include "trampoline.h"

#define CONTEXT_BITS 0x00ff0100u /* preempt_count(): NMI_MASK | HARDIRQ_MASK | SOFTIRQ_OFFSET */
#define NMI_BITS 0x00f00000u
#define HARDIRQ_BITS 0x000f0000u
#define CONTEXT(member) ((int)__builtin_offsetof(struct fay_kernel_context, member))
#define EVENT(member) (CONTEXT(event) + (int)__builtin_offsetof(struct fay_event, member))

/* What is written behind the main path, and where it comes back. */
struct aside {
	uint32_t other, back, lost, out, resched, resumed;
};

static void enter(struct writer *w, const struct fay_kernel_places *places, struct aside *aside)
{
	push(w, RBX);
	bytes(w, 3, 0x4889e3);                        /* mov rsp, rbx */
	per_cpu(w, 2, 0xff04, places->preempt_count); /* incl */
	per_cpu(w, 2, 0x8b04, places->preempt_count); /* mov , eax */
	per_cpu(w, 3, 0x4c8b1c, places->contexts);    /* mov , r11 */
	byte(w, 0xa9);                                /* test imm32, eax */
	imm32(w, CONTEXT_BITS);
	aside->other = jump_ahead(w, 2, 0x0f85);
	aside->back = w->size;
	bytes(w, 4, 0x41833b00); /* cmpl $0, (r11) */
	aside->lost = jump_ahead(w, 2, 0x0f85);
	bytes(w, 3, 0x41c703); /* movl $1, (r11) */
	imm32(w, 1);
	bytes(w, 4, 0x4883e4f0); /* and $-16, rsp */
	push(w, R11);
	push(w, R11);
}

static void leave(struct writer *w, const struct fay_kernel_places *places, struct aside *aside)
{
	bytes(w, 4, 0x4c8b1c24); /* mov (rsp), r11 */
	bytes(w, 3, 0x41c703);   /* movl $0, (r11) */
	imm32(w, 0);
	aside->out = w->size;
	bytes(w, 3, 0x4889dc); /* mov rbx, rsp */
	pop(w, RBX);
	per_cpu(w, 2, 0xff0c, places->preempt_count); /* decl */
	aside->resched = jump_ahead(w, 2, 0x0f84);
	aside->resumed = w->size;
}

/* Of the argument registers those in `mask`, by encoding. */
static void push_arguments(struct writer *w, unsigned int mask)
{
	for (unsigned int i = 0; i < 6; i++)
		if (mask >> argument_registers[i] & 1)
			push(w, argument_registers[i]);
}

static void pop_arguments(struct writer *w, unsigned int mask)
{
	for (unsigned int i = 6; i-- > 0;)
		if (mask >> argument_registers[i] & 1)
			pop(w, argument_registers[i]);
}

static void add_context(struct writer *w, unsigned int level)
{
	bytes(w, 3, 0x4981c3); /* add imm32, r11 */
	imm32(w, level * (uint32_t)sizeof(struct fay_kernel_context));
}

/* `live`: mask of argument registers that resched() must not change. */
static void write_aside(struct writer *w, struct fay_kernel_trampoline *t,
			const struct aside *aside, unsigned int live)
{
	uint32_t not_softirq, nmi;

	patch(w, aside->other, w->size);
	byte(w, 0xa9);
	imm32(w, NMI_BITS | HARDIRQ_BITS);
	not_softirq = jump_ahead(w, 2, 0x0f85);
	add_context(w, 1);
	jump_back(w, aside->back);
	patch(w, not_softirq, w->size);
	byte(w, 0xa9);
	imm32(w, NMI_BITS);
	nmi = jump_ahead(w, 2, 0x0f85);
	add_context(w, 2);
	jump_back(w, aside->back);
	patch(w, nmi, w->size);
	add_context(w, 3);
	jump_back(w, aside->back);

	patch(w, aside->lost, w->size);
	load(w, RAX, R11, CONTEXT(lost));
	bytes(w, 3, 0x48ff00); /* incq (rax) */
	jump_back(w, aside->out);

	patch(w, aside->resched, w->size);
	push_arguments(w, live);
	call_out(w, t, t->places->resched);
	pop_arguments(w, live);
	jump_back(w, aside->resumed);
}

/* The probes of one kind that the set has, behind fill(). */
static void run_probes(struct writer *w, struct fay_kernel_trampoline *t, bool returns,
		       uint32_t fields)
{
	bool first = true;

	if (fields & ~(uint32_t)FAY_KERNEL_FIELDS_INLINE) {
		bytes(w, 3, 0x4c89df); /* mov r11, rdi */
		byte(w, 0xbe);         /* mov imm32, esi */
		imm32(w, fields & ~(uint32_t)FAY_KERNEL_FIELDS_INLINE);
		call_out(w, t, t->places->fill);
		first = false;
	}
	for (unsigned int i = 0; i < FAY_KERNEL_PROBES_MAX; i++) {
		if (!(t->set >> i & 1) || (t->probes[i].kind == FAY_PROBE_RETURN) != returns)
			continue;
		if (!first)
			bytes(w, 4, 0x4c8b1c24); /* mov (rsp), r11 */
		first = false;
		if (t->probes[i].arguments >> RDI & 1)
			lea(w, RDI, R11, CONTEXT(event));
		if (t->probes[i].arguments >> RSI & 1)
			load(w, RSI, R11, CONTEXT(local));
		if (t->probes[i].arguments >> RDX & 1)
			load(w, RDX, R11, CONTEXT(global));
		call(w, t->layout + t->probes[i].code_offset);
	}
}

/* Address and stack pointer from the place `base`+`disp` that holds where the function goes on. */
static void fill_place(struct writer *w, uint32_t fields, unsigned int base, int disp)
{
	/* fill() finds the function by its address */
	if (fields & (FAY_FIELD_ADDRESS | FAY_FIELD_FUNCTION | FAY_FIELD_MODULE)) {
		load(w, RAX, base, disp);
		bytes(w, 4, 0x4883e805); /* sub $5, rax */
		store(w, R11, EVENT(address), RAX);
	}
	if (fields & FAY_FIELD_STACK_POINTER) {
		lea(w, RAX, base, disp + 8);
		store(w, R11, EVENT(stack_pointer), RAX);
	}
}

#define ALL_ARGUMENTS (1u << RDI | 1u << RSI | 1u << RDX | 1u << RCX | 1u << R8 | 1u << R9)

static unsigned int count_bits(unsigned int mask)
{
	unsigned int count = 0;

	for (; mask; mask &= mask - 1)
		count++;
	return count;
}

/* Argument registers that the entry probes or what is around them change. */
static unsigned int changed_arguments(const struct fay_kernel_trampoline *t, uint32_t fields)
{
	unsigned int changed = fields & ~(uint32_t)FAY_KERNEL_FIELDS_INLINE ? ALL_ARGUMENTS : 0;

	for (unsigned int i = 0; i < FAY_KERNEL_PROBES_MAX; i++)
		if (t->set >> i & 1 && t->probes[i].kind != FAY_PROBE_RETURN)
			changed |= t->probes[i].clobbers | t->probes[i].arguments;
	return changed & ALL_ARGUMENTS;
}

/* Offsets in struct pt_regs, the beginning of struct ftrace_regs: of the arguments, and of rsp. */
static const uint8_t saved_arguments[6] = { 112, 104, 96, 88, 72, 64 };
#define SAVED_RSP 152

static void write_callback(struct writer *w, struct fay_kernel_trampoline *t, uint32_t fields,
			   struct aside *aside)
{
	enter(w, t->places, aside);
	for (unsigned int i = 0; i < 6; i++) {
		if (!(fields >> i & FAY_FIELD_ARG0))
			continue;
		load(w, RAX, RCX, saved_arguments[i]);
		store(w, R11, EVENT(arg) + 8 * (int)i, RAX);
	}
	if (fields & (FAY_FIELD_ADDRESS | FAY_FIELD_FUNCTION | FAY_FIELD_MODULE))
		store(w, R11, EVENT(address), RDI);
	if (fields & FAY_FIELD_STACK_POINTER) {
		load(w, RAX, RCX, SAVED_RSP);
		store(w, R11, EVENT(stack_pointer), RAX);
	}
	run_probes(w, t, false, fields);
	leave(w, t->places, aside);
}

static void write_entry(struct writer *w, struct fay_kernel_trampoline *t, uint32_t fields,
			struct aside *aside)
{
	unsigned int saved = changed_arguments(t, fields);

	push_arguments(w, saved);
	enter(w, t->places, aside);
	for (unsigned int i = 0; i < 6; i++)
		if (fields >> i & FAY_FIELD_ARG0)
			store(w, R11, EVENT(arg) + 8 * (int)i, argument_registers[i]);
	fill_place(w, fields, RBX, 8 + 8 * (int)count_bits(saved));
	run_probes(w, t, false, fields);
	leave(w, t->places, aside);
	pop_arguments(w, saved);
}

/* rax becomes the time stamp counter; rdx is kept in r11. */
static void read_clock(struct writer *w)
{
	bytes(w, 3, 0x4989d3);   /* mov rdx, r11 */
	bytes(w, 2, 0x0f31);     /* rdtsc */
	bytes(w, 4, 0x48c1e220); /* shl $32, rdx */
	bytes(w, 3, 0x4809d0);   /* or rdx, rax */
	bytes(w, 3, 0x4c89da);   /* mov r11, rdx */
}

static void write_call(struct writer *w, const struct fay_kernel_trampoline *t, uint32_t fields)
{
	push(w, RBP);
	bytes(w, 3, 0x4889e5);                     /* mov rsp, rbp */
	per_cpu(w, 3, 0x48ff04, t->places->begun); /* incq */
	if (fields & FAY_FIELD_DURATION) {
		read_clock(w);
		push(w, RAX);
	} else {
		bytes(w, 4, 0x4883ec08); /* sub $8, rsp */
	}
	for (uint32_t i = t->stack_words; i-- > 0;)
		memory(w, false, 0xff, 6, RBP, 24 + 8 * (int)i); /* push */
	memory(w, false, 0xff, 2, RBP, 8);                       /* call * */
}

/* The value that a function left in rax, as its type has it: what lies above it in the register is
 * anything. */
static void narrow(struct writer *w, uint32_t result)
{
	uint32_t above = result & ~FAY_KERNEL_RESULT_SIGNED;

	if (above == FAY_KERNEL_RESULT_NONE) {
		bytes(w, 2, 0x31c0); /* xor eax, eax */
	} else if (above) {
		bytes(w, 3, 0x48c1e0); /* shl imm8, rax */
		byte(w, above);
		bytes(w, 3, result & FAY_KERNEL_RESULT_SIGNED ? 0x48c1f8 : 0x48c1e8); /* sar, shr */
		byte(w, above);
	}
}

static void write_return(struct writer *w, struct fay_kernel_trampoline *t, uint32_t fields,
			 struct aside *aside)
{
	lea(w, RSP, RBP, -8);
	push(w, RAX);
	push(w, RDX);
	enter(w, t->places, aside);
	if (fields & FAY_FIELD_RETVAL) {
		load(w, RAX, RBP, -16);
		narrow(w, t->result);
		store(w, R11, EVENT(retval), RAX);
	}
	if (fields & FAY_FIELD_RETVAL2) {
		load(w, RAX, RBP, -24);
		store(w, R11, EVENT(retval2), RAX);
	}
	if (fields & FAY_FIELD_DURATION) {           /* in cycles; fill() makes nanoseconds of it */
		bytes(w, 2, 0x0f31);                 /* rdtsc */
		bytes(w, 4, 0x48c1e220);             /* shl $32, rdx */
		bytes(w, 3, 0x4809d0);               /* or rdx, rax */
		memory(w, true, 0x2b, RAX, RBP, -8); /* sub */
		store(w, R11, EVENT(duration), RAX);
	}
	fill_place(w, fields, RBP, 8);
	run_probes(w, t, true, fields);
	leave(w, t->places, aside);
	pop(w, RDX);
	pop(w, RAX);
	per_cpu(w, 3, 0x48ff04, t->places->ended); /* incq */
	byte(w, 0xc9);                             /* leave */
	bytes(w, 4, 0x4883c408);                   /* add $8, rsp */
}

static uint32_t fields_of(const struct fay_kernel_trampoline *t, bool returns, bool *any)
{
	uint32_t fields = 0;

	*any = false;
	for (unsigned int i = 0; i < FAY_KERNEL_PROBES_MAX; i++) {
		if (!(t->set >> i & 1) || (t->probes[i].kind == FAY_PROBE_RETURN) != returns)
			continue;
		fields |= t->probes[i].fields;
		*any = true;
	}
	return fields;
}

uint32_t fay_kernel_trampoline_write(struct fay_kernel_trampoline *t, uint8_t *code,
				     uint32_t capacity)
{
	struct writer w = { .code = code, .capacity = capacity, .address = t->address };
	struct aside at_entry, at_return;
	bool entries, returns;
	uint32_t entry_fields = fields_of(t, false, &entries);
	uint32_t return_fields = fields_of(t, true, &returns);

	if (t->callback && (returns || !entries))
		return 0;
	if (t->callback)
		write_callback(&w, t, entry_fields, &at_entry);
	else if (entries)
		write_entry(&w, t, entry_fields, &at_entry);
	if (returns) {
		write_call(&w, t, return_fields);
		write_return(&w, t, return_fields, &at_return);
	}
	byte(&w, 0xc3);
	byte(&w, 0xcc); /* nothing runs on past a ret */
	if (entries)
		write_aside(&w, t, &at_entry, ALL_ARGUMENTS & ~changed_arguments(t, entry_fields));
	if (returns)
		write_aside(&w, t, &at_return, 0);
	return w.failed ? 0 : w.size;
}
