/* SPDX-License-Identifier: MIT */
/*
 * Trampolines for a place where everything may be live, inside a function, or at the entry or an
 * exit of what is perhaps none:
 *
 *	lea -128(%rsp), %rsp                  the red zone (System V ABI, 3.2.2)
 *	pushfq; andb $~1, 1(%rsp); push rbp; push ...   all general registers; the flags without a
 *							debugger's trap flag
 *	mov %rsp, %rbp; and $-16, %rsp; lea -area(%rsp), %rsp; cld
 *	registers -> event; [a marker's operands -> event: trampoline_marker.c]; rsi = LOCAL, busy,
 *	  other fields, probes: as at an entry
 *	flags: [std]; add $0x7f, %al; sahf
 *	mov %rbp, %rsp; pop ...; pop rbp
 *	lea 136(%rsp), %rsp
 *   displaced:
 */
#include "trampoline_private.h"

#define RED_ZONE 128
#define EVENT(field) ((int32_t)offsetof(struct fay_event, field))

/* In the order in which they are pushed; rbp is pushed before them. */
static const uint8_t pushed[] = { FAY_RAX, FAY_RCX, FAY_RDX, FAY_RBX, FAY_RSI, FAY_RDI, FAY_R8,
				  FAY_R9,  FAY_R10, FAY_R11, FAY_R12, FAY_R13, FAY_R14, FAY_R15 };
enum {
	PUSHED = sizeof(pushed),
	/* From rbp. */
	AT_RBP = 8 * PUSHED,
	AT_FLAGS = AT_RBP + 8,
	AT_RSP = AT_FLAGS + 8 + RED_ZONE,
};

static void open_all(struct fay_emitter *e, int32_t area)
{
	fay_emit_lea(e, FAY_RSP, FAY_RSP, -RED_ZONE);
	fay_emit_byte(e, 0x9c); /* pushfq */
	/* andb $~1, 1(%rsp): the trap flag is a debugger's */
	fay_emit_bytes(e, "\x80\x64\x24\x01\xfe", 5);
	fay_emit_push(e, FAY_RBP);
	for (unsigned i = 0; i < PUSHED; i++)
		fay_emit_push(e, pushed[i]);
	fay_emit_bytes(e, "\x48\x89\xe5\x48\x83\xe4\xf0", 7); /* mov %rsp, %rbp; and $-16, %rsp */
	if (area)
		fay_emit_lea(e, FAY_RSP, FAY_RSP, -area);
	fay_emit_byte(e, 0xfc); /* cld */
}

/*
 * Not by popfq: Linux takes the trap flag of a debugger that steps over one for the program's own,
 * and the program is killed when the debugger has gone (arch/x86/kernel/step.c). Those that no
 * instruction of ours changes need not be restored. rax, rcx are free.
 */
static void restore_flags(struct fay_emitter *e)
{
	static const uint8_t flags[] = {
		0x0f, 0xba, 0xe0, 10, /* bt $10, %eax: direction */
		0x73, 1,    0xfd,     /* jae 1f; std; 1: */
		0x89, 0xc1,           /* mov %eax, %ecx */
		0xc1, 0xe0, 8,        /* shl $8, %eax: the lowest byte is what sahf takes */
		0xc1, 0xe9, 11,       /* shr $11, %ecx: overflow */
		0x80, 0xe1, 1,        /* and $1, %cl */
		0x88, 0xc8,           /* mov %cl, %al */
		0x04, 0x7f,           /* add $0x7f, %al: overflows if it is 1 */
		0x9e,                 /* sahf: all others */
	};

	fay_emit_load64(e, FAY_RAX, FAY_RBP, AT_FLAGS);
	fay_emit_bytes(e, flags, sizeof(flags));
}

static void close_all(struct fay_emitter *e)
{
	restore_flags(e);
	fay_emit_bytes(e, "\x48\x89\xec", 3); /* mov %rbp, %rsp */
	for (unsigned i = PUSHED; i-- > 0;)
		fay_emit_pop(e, pushed[i]);
	fay_emit_pop(e, FAY_RBP);
	fay_emit_lea(e, FAY_RSP, FAY_RSP, 8 + RED_ZONE);
}

int32_t fay_offset_saved(unsigned reg)
{
	if (reg == FAY_RBP)
		return AT_RBP;
	for (unsigned i = 0; i < PUSHED; i++)
		if (pushed[i] == reg)
			return 8 * (int32_t)(PUSHED - 1 - i);
	return AT_RSP;
}

/* `inside`: what runs is probes of a place, not of a function's entry or exit. */
static void fill_registers(struct fay_emitter *e, uint32_t fields, bool inside, bool entry)
{
	if (fields & FAY_FIELD_REGISTERS) {
		for (unsigned i = 0; i < PUSHED; i++)
			fay_emit_store64(e, FAY_RSP, EVENT(reg) + 8 * pushed[i], pushed[i]);
		fay_emit_load64(e, FAY_RAX, FAY_RBP, AT_RBP);
		fay_emit_store64(e, FAY_RSP, EVENT(reg) + 8 * FAY_RBP, FAY_RAX);
		fay_emit_lea(e, FAY_RAX, FAY_RBP, AT_RSP);
		fay_emit_store64(e, FAY_RSP, EVENT(reg) + 8 * FAY_RSP, FAY_RAX);
	}
	if (fields & (FAY_FIELD_FLAGS | FAY_FIELD_CALLER)) {
		fay_emit_load64(e, FAY_RAX, FAY_RBP, inside ? AT_FLAGS : AT_RSP);
		fay_emit_store64(e, FAY_RSP, EVENT(flags), FAY_RAX);
	}
	if (fields & FAY_FIELD_STACK_POINTER) {
		fay_emit_lea(e, FAY_RAX, FAY_RBP, AT_RSP);
		fay_emit_store64(e, FAY_RSP, EVENT(stack_pointer), FAY_RAX);
	}
	if (entry && fields & FAY_FIELD_FRAME_POINTER) {
		fay_emit_load64(e, FAY_RAX, FAY_RBP, AT_RBP);
		fay_emit_store64(e, FAY_RSP, EVENT(frame_pointer), FAY_RAX);
	}
}

/* Ends with the hole for the displaced instructions, the offset of which is returned, and what is
 * out of line. */
size_t fay_offset_emit(struct fay_emitter *e, const struct fay_trampoline_spec *spec, size_t room)
{
	/* at an exit the runtime calls the probes */
	uint32_t kinds = spec->records && spec->role != FAY_ROLE_ENTRY ? 0 : fay_role_kinds(spec);
	struct fay_part part = fay_part_plan(spec, kinds, 0);
	uint32_t arguments = part.fields & FAY_FIELDS_ARGUMENTS;
	bool inside = fay_spec_has_kind(spec, 1u << FAY_PROBE_OFFSET | 1u << FAY_PROBE_MARKER);
	struct fay_lookup lookup;
	struct fay_run run = { 0 };
	size_t have, restore, displaced;

	open_all(e, (part.area + 15) & ~15);
	/* all registers but rsp and rbp are the program's still */
	if (spec->records && spec->role == FAY_ROLE_JUMP) {
		fay_emit_push(e, FAY_RBP);
		fay_emit_load64(e, FAY_RBP, FAY_RBP, AT_RBP);
		fay_record_load_target(e, &spec->target);
		fay_emit_pop(e, FAY_RBP);
		fay_emit_store64(e, FAY_RSP, part.target_at, FAY_RAX);
		fay_emit_load64(e, FAY_RAX, FAY_RBP, fay_offset_saved(FAY_RAX));
	}
	if (spec->marker)
		part.fields &= ~arguments;
	fay_fields_early(e, &part);
	fill_registers(e, part.fields, inside, spec->role == FAY_ROLE_ENTRY);
	if (spec->marker)
		fay_marker_arguments(e, spec, arguments);
	part.temporary = FAY_RAX;
	part.fields &= ~(uint32_t)(FAY_FIELD_STACK_POINTER | FAY_FIELD_CALLER);
	lookup = fay_part_lookup(e, &part);
	have = e->size;
	fay_part_run(e, &part, &run, true);
	if (spec->records)
		fay_record_carefully(e, spec);
	restore = e->size;
	close_all(e);
	displaced = e->size;
	for (size_t i = 0; i < room; i++)
		fay_emit_byte(e, 0xcc);
	fay_part_slow(e, &part, &lookup, have);
	fay_emit_jump(e, e->address + restore);
	fay_part_run_aside(e, &part, &run, restore);
	return displaced;
}
