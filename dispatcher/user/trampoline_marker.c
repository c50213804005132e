/* SPDX-License-Identifier: MIT */
/*
 * A marker's arguments: from where its note says they are into event.arg[]. All general registers
 * lie in the trampoline's frame, so every register is free here.
 *
 * A memory operand is only a claim: a compiler may leave `8(%rax)` in the note of a marker that is
 * reached with rax = 0, since nothing reads it in the untraced program. So memory is read directly
 * only where that cannot fault, in the page of the stack pointer or at an address that the loader
 * saw mapped, and otherwise through the kernel (runtime.c, fay_rt_try_read): what cannot be read is
 * 0.
 *
 *	lea  disp(base, index, scale), %rdx
 *	lea  rsp as the program has it, %rax; lea size-1(%rdx), %rcx
 *	xor  %rax, %rcx; xor %rdx, %rax; or %rcx, %rax; shr $12, %rax; jnz asks
 *	movzx (%rdx), %rax; jmp have
 *   asks:
 *	lea  event.arg[i], %rdi; mov $size, %esi; call try_read; movzx event.arg[i], %rax
 *   have:
 *	mov  %rax, event.arg[i]
 */
#include "fay/image.h"
#include "trampoline_private.h"

#define EVENT_ARG(i) ((int32_t)(offsetof(struct fay_event, arg) + 8 * (i)))

/* movzx or movsx disp(base), %rax, or mov, by the operand's size. */
static void load_sized(struct fay_emitter *e, const struct fay_operand *operand, unsigned base,
		       int32_t disp)
{
	switch (operand->size) {
	case 1:
	case 2: /* 0f b6, b7: zero-extended; be, bf: sign-extended */
		fay_emit_byte(e, 0x48 | (base >= 8 ? 1 : 0));
		fay_emit_byte(e, 0x0f);
		fay_emit_byte(e, (operand->is_signed ? 0xbe : 0xb6) + (operand->size == 2));
		fay_emit_address(e, FAY_RAX, base, disp);
		break;
	case 4:
		fay_emit_memory(e, operand->is_signed, operand->is_signed ? 0x63 : 0x8b, FAY_RAX,
				base, disp);
		break;
	default: fay_emit_load64(e, FAY_RAX, base, disp); break;
	}
}

static uint64_t cut(const struct fay_operand *operand)
{
	unsigned unused = 64 - 8 * operand->size;
	uint64_t value = (uint64_t)operand->value << unused;

	return operand->is_signed ? (uint64_t)((int64_t)value >> unused) : value >> unused;
}

/* A register's value as the program has it, to `to`. */
static void load_register(struct fay_emitter *e, unsigned to, unsigned reg)
{
	if (reg == FAY_RSP)
		fay_emit_lea(e, to, FAY_RBP, fay_offset_saved(reg));
	else
		fay_emit_load64(e, to, FAY_RBP, fay_offset_saved(reg));
}

/* rdx = the operand's address; clobbers rax. */
static void load_address(struct fay_emitter *e, const struct fay_operand *operand)
{
	unsigned shift = (unsigned)__builtin_ctz(operand->scale | 16u);

	fay_emit_movabs(e, FAY_RDX, (uint64_t)operand->value);
	if (operand->base != FAY_OPERAND_NO_REGISTER) {
		load_register(e, FAY_RAX, operand->base);
		fay_emit_bytes(e, "\x48\x01\xc2", 3); /* add %rax, %rdx */
	}
	if (operand->index != FAY_OPERAND_NO_REGISTER) {
		load_register(e, FAY_RAX, operand->index);
		fay_emit_bytes(e, "\x48\xc1\xe0", 3); /* shl $shift, %rax */
		fay_emit_byte(e, shift);
		fay_emit_bytes(e, "\x48\x01\xc2", 3);
	}
}

static void load_memory(struct fay_emitter *e, const struct fay_trampoline_spec *spec,
			const struct fay_operand *operand, unsigned i)
{
	static const uint8_t both_pages[] = { 0x48, 0x31, 0xc1, 0x48, 0x31, 0xd0, 0x48,
					      0x09, 0xc8, 0x48, 0xc1, 0xe8, 0x0c };
	const struct fay_runtime_header *runtime = (const void *)fay_runtime_blob;
	size_t asks, have;

	load_address(e, operand);
	if (operand->readable) {
		load_sized(e, operand, FAY_RDX, 0);
		return;
	}
	fay_emit_lea(e, FAY_RAX, FAY_RBP, fay_offset_saved(FAY_RSP));
	fay_emit_lea(e, FAY_RCX, FAY_RDX, operand->size - 1);
	fay_emit_bytes(e, both_pages, sizeof(both_pages));
	asks = fay_emit_jump_if(e, FAY_IF_NOT_EQUAL);
	load_sized(e, operand, FAY_RDX, 0);
	have = fay_emit_jump_ahead(e);
	fay_emit_land(e, asks);
	fay_emit_lea(e, FAY_RDI, FAY_RSP, EVENT_ARG(i));
	fay_emit_byte(e, 0xbe); /* mov $size, %esi */
	fay_emit_imm32(e, operand->size);
	fay_emit_call(e, spec->runtime + runtime->helper[FAY_HELPER_TRY_READ]);
	load_sized(e, operand, FAY_RSP, EVENT_ARG(i));
	fay_emit_land(e, have);
}

void fay_marker_arguments(struct fay_emitter *e, const struct fay_trampoline_spec *spec,
			  uint32_t fields)
{
	for (unsigned i = 0; i < spec->operand_count; i++) {
		const struct fay_operand *operand = &spec->operands[i];

		if (!(fields & FAY_FIELD_ARG0 << i))
			continue;
		switch (operand->form) {
		case FAY_OPERAND_CONSTANT: fay_emit_movabs(e, FAY_RAX, cut(operand)); break;
		case FAY_OPERAND_REGISTER:
			if (operand->base == FAY_RSP)
				load_register(e, FAY_RAX, FAY_RSP);
			else
				load_sized(e, operand, FAY_RBP,
					   fay_offset_saved(operand->base) + operand->high_byte);
			break;
		case FAY_OPERAND_MEMORY: load_memory(e, spec, operand, i); break;
		case FAY_OPERAND_ADDRESS:
			load_address(e, operand);
			fay_emit_bytes(e, "\x48\x89\xd0", 3); /* mov %rdx, %rax */
			break;
		default: e->failed = true; break;
		}
		fay_emit_store64(e, FAY_RSP, EVENT_ARG(i), FAY_RAX);
	}
}
