/* SPDX-License-Identifier: MIT */
/*
 * Filling the event, which lies at rsp while probes run. Only fields that some probe of the part
 * may read are filled.
 *
 * time is the time stamp counter scaled by the session's calibration; tid is read from glibc's
 * thread control block where the loader found it right in every thread, else asked of the kernel;
 * cpu is the limit of the per-CPU segment, as the vDSO reads it; comm is kept in the
 * thread's slot for some milliseconds, since threads rename themselves.
 */
#include "trampoline_private.h"

#define EVENT(field) ((int32_t)offsetof(struct fay_event, field))

void fay_fields_rdtsc(struct fay_emitter *e)
{
	static const uint8_t rdtsc_to_rax[] = {
		0x0f, 0x31, 0x48, 0xc1, 0xe2, 0x20, 0x48, 0x09, 0xd0
	};

	fay_emit_bytes(e, rdtsc_to_rax, sizeof(rdtsc_to_rax));
}

static const struct {
	uint32_t field;
	/* where it goes, and where it lies, from the address that the stub's call leaves */
	int32_t event, stub;
} names[] = {
	{ FAY_FIELD_FUNCTION, EVENT(function), -FAY_STUB_CALL - FAY_STUB_NAMES },
	{ FAY_FIELD_MODULE, EVENT(module), -FAY_STUB_CALL - FAY_STUB_NAMES + 8 },
	{ FAY_FIELD_ADDRESS, EVENT(address), -FAY_STUB_CALL - FAY_STUB_NAMES + 16 },
};

void fay_fields_names(struct fay_emitter *e, const struct fay_part *part, unsigned stub)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (part->fields & names[i].field) {
			fay_emit_load64(e, part->temporary, stub, names[i].stub);
			fay_emit_store64(e, FAY_RSP, names[i].event, part->temporary);
		}
}

/* The stub's address is what its call pushed. */
static void emit_stub_names(struct fay_emitter *e, const struct fay_part *part)
{
	if (!(part->fields & (FAY_FIELD_FUNCTION | FAY_FIELD_MODULE | FAY_FIELD_ADDRESS)))
		return;
	fay_emit_load64(e, FAY_RSI, FAY_RSP, part->frame - part->pushed);
	fay_fields_names(e, part, FAY_RSI);
}

unsigned fay_argument_register(const struct fay_trampoline_spec *spec, unsigned index)
{
	/* System V ABI 3.2.3; Go's ABIInternal since 1.17 (src/cmd/compile/abi-internal.md) */
	static const uint8_t registers[2][6] = {
		{ FAY_RDI, FAY_RSI, FAY_RDX, FAY_RCX, FAY_R8, FAY_R9 },
		{ FAY_RAX, FAY_RBX, FAY_RCX, FAY_RDI, FAY_RSI, FAY_R8 }
	};

	return registers[spec->go][index];
}

/* Arguments and return values, before anything changes the registers; and what is behind rsi in a
 * stub. */
void fay_fields_early(struct fay_emitter *e, const struct fay_part *part)
{
	/* movq %xmm0, disp32(%rsp) */
	static const uint8_t movq_xmm0_rsp[] = { 0x66, 0x0f, 0xd6, 0x84, 0x24 };

	for (unsigned i = 0; i < 6 && part->spec->role == FAY_ROLE_ENTRY; i++)
		if (part->fields & FAY_FIELD_ARG0 << i)
			fay_emit_store64(e, FAY_RSP, EVENT(arg) + 8 * (int32_t)i,
					 fay_argument_register(part->spec, i));
	if (part->fields & FAY_FIELD_RETVAL)
		fay_emit_store64(e, FAY_RSP, EVENT(retval), FAY_RAX);
	if (part->fields & FAY_FIELD_RETVAL2)
		fay_emit_store64(e, FAY_RSP, EVENT(retval2),
				 part->spec->role == FAY_ROLE_ENTRY ? FAY_RBP : FAY_RDX);
	if (part->fields & FAY_FIELD_RETVAL_FLOAT) {
		fay_emit_bytes(e, movq_xmm0_rsp, sizeof(movq_xmm0_rsp));
		fay_emit_imm32(e, EVENT(retval_float));
	}
	if (part->spec->shared)
		emit_stub_names(e, part);
}

void fay_fields_frame(struct fay_emitter *e, unsigned rsp, unsigned rbp)
{
	fay_emit_store64(e, FAY_RSP, EVENT(reg) + 8 * FAY_RSP, rsp);
	fay_emit_store64(e, FAY_RSP, EVENT(reg) + 8 * FAY_RBP, rbp);
	fay_emit_movabs(e, rsp, 0);
	for (int32_t i = 0; i < 16; i++)
		if (i != FAY_RSP && i != FAY_RBP)
			fay_emit_store64(e, FAY_RSP, EVENT(reg) + 8 * i, rsp);
}

/* rdx = (rax << shift) * multiplier >> 64; clobbers rax. A shift of the whole product would take
 * longer than both. */
static void emit_scale(struct fay_emitter *e, const struct fay_part *part)
{
	const struct fay_trampoline_spec *spec = part->spec;
	uint64_t config =
		spec->runtime + ((const struct fay_runtime_header *)fay_runtime_blob)->config;
	uint8_t shl_rax[] = { 0x48, 0xc1, 0xe0, spec->time_shift };

	if (spec->time_shift)
		fay_emit_bytes(e, shl_rax, sizeof(shl_rax));
	/* mul */
	fay_emit_rip_relative(e, 0xf7, 4,
			      config + offsetof(struct fay_runtime_config, time_multiplier));
}

void fay_fields_duration(struct fay_emitter *e, const struct fay_part *part, unsigned base,
			 int32_t at)
{
	fay_fields_rdtsc(e);
	if (part->fields & (FAY_FIELD_TIME | FAY_FIELD_CYCLES))
		fay_emit_store64(e, FAY_RSP, EVENT(cycles), FAY_RAX);
	fay_emit_memory(e, true, 0x2b, FAY_RAX, base, at); /* sub */
	emit_scale(e, part);
	fay_emit_store64(e, FAY_RSP, EVENT(duration), FAY_RDX);
}

static void emit_time(struct fay_emitter *e, const struct fay_part *part, uint64_t config)
{
	if (!(part->fields & (FAY_FIELD_TIME | FAY_FIELD_CYCLES)))
		return;
	if (part->fields & FAY_FIELD_DURATION)
		fay_emit_load64(e, FAY_RAX, FAY_RSP, EVENT(cycles)); /* by fay_fields_duration() */
	else
		fay_fields_rdtsc(e);
	if (part->fields & FAY_FIELD_CYCLES)
		fay_emit_store64(e, FAY_RSP, EVENT(cycles), FAY_RAX);
	if (!(part->fields & FAY_FIELD_TIME))
		return;
	emit_scale(e, part);
	fay_emit_rip_relative(e, 0x03, FAY_RDX,
			      config + offsetof(struct fay_runtime_config, time_offset));
	fay_emit_store64(e, FAY_RSP, EVENT(time), FAY_RDX);
}

/* mov %fs:offset, %reg, 4 bytes */
static void emit_load_tid(struct fay_emitter *e, const struct fay_trampoline_spec *spec,
			  unsigned reg)
{
	fay_emit_byte(e, 0x64);
	if (reg >= 8)
		fay_emit_byte(e, 0x44);
	fay_emit_byte(e, 0x8b);
	fay_emit_byte(e, 0x04 | (reg & 7) << 3);
	fay_emit_byte(e, 0x25);
	fay_emit_imm32(e, (uint32_t)spec->tid_offset);
}

static void emit_tid(struct fay_emitter *e, const struct fay_trampoline_spec *spec, unsigned t)
{
	if (spec->tid_offset >= 0) {
		emit_load_tid(e, spec, t);
	} else {
		/* mov $__NR_gettid, %eax; syscall */
		static const uint8_t gettid[] = { 0xb8, 186, 0, 0, 0, 0x0f, 0x05 };

		fay_emit_bytes(e, gettid, sizeof(gettid));
		t = FAY_RAX;
	}
	fay_emit_store32(e, FAY_RSP, EVENT(tid), t);
}

/* The per-CPU segment's limit holds the CPU number in bits 0..11: what the vDSO's getcpu reads
 * (Linux, asm/segment.h). */
static void emit_cpu(struct fay_emitter *e, unsigned t)
{
	unsigned high = t >= 8;

	if (high)
		fay_emit_byte(e, 0x41);
	fay_emit_byte(e, 0xb8 + (t & 7)); /* mov $selector, %t */
	fay_emit_imm32(e, 0x7b);
	if (high)
		fay_emit_byte(e, 0x45);
	fay_emit_byte(e, 0x0f); /* lsl %t, %t */
	fay_emit_byte(e, 0x03);
	fay_emit_byte(e, 0xc0 | (t & 7) << 3 | (t & 7));
	if (high)
		fay_emit_byte(e, 0x41);
	fay_emit_byte(e, 0x81); /* and $0xfff, %t */
	fay_emit_byte(e, 0xe0 | (t & 7));
	fay_emit_imm32(e, 0xfff);
	fay_emit_store32(e, FAY_RSP, EVENT(cpu), t);
}

/*
 * The name in the slot is this thread's, as it was when the session's side raised `names` last, or
 * is asked for now. A thread that has taken over another's control block has another number, and so
 * has one whose number is not known. rax and rdi are changed.
 */
static void emit_name(struct fay_emitter *e, const struct fay_trampoline_spec *spec)
{
	const struct fay_runtime_header *runtime = (const void *)fay_runtime_blob;
	uint64_t control =
		spec->runtime + runtime->config + offsetof(struct fay_runtime_config, control);
	size_t known = 0;

	if (spec->tid_offset >= 0) {
		emit_load_tid(e, spec, FAY_RAX);
		fay_emit_rip_relative(e, 0x8b, FAY_RDI, control); /* mov */
		/* add, cmp */
		fay_emit_memory(e, true, 0x03, FAY_RAX, FAY_RDI,
				offsetof(struct fay_shm_control, names));
		fay_emit_memory(e, true, 0x39, FAY_RAX, FAY_RSI, FAY_AT_NAMED);
		known = fay_emit_jump_if(e, FAY_IF_EQUAL);
	}
	fay_emit_call(e, spec->runtime + runtime->name);
	if (known)
		fay_emit_land(e, known);
	for (int32_t at = 0; at < FAY_COMM_SIZE; at += 8) {
		fay_emit_load64(e, FAY_RAX, FAY_RSI, FAY_AT_NAME + at);
		fay_emit_store64(e, FAY_RSP, EVENT(comm) + at, FAY_RAX);
	}
}

static void emit_constant(struct fay_emitter *e, const struct fay_part *part, uint32_t field,
			  int32_t at, uint64_t value)
{
	if (!(part->fields & field) || part->spec->shared)
		return;
	fay_emit_movabs(e, part->temporary, value);
	fay_emit_store64(e, FAY_RSP, at, part->temporary);
}

void fay_fields_late(struct fay_emitter *e, const struct fay_part *part)
{
	const struct fay_runtime_header *runtime = (const void *)fay_runtime_blob;
	const struct fay_trampoline_spec *spec = part->spec;
	unsigned t = part->temporary;

	emit_time(e, part, spec->runtime + runtime->config);
	emit_constant(e, part, FAY_FIELD_FUNCTION, EVENT(function), spec->function);
	emit_constant(e, part, FAY_FIELD_MODULE, EVENT(module), spec->module);
	emit_constant(e, part, FAY_FIELD_ADDRESS, EVENT(address), spec->place);
	if (part->fields & FAY_FIELD_PID) {
		fay_emit_load32(e, t, FAY_RSI, FAY_AT_PID);
		fay_emit_store32(e, FAY_RSP, EVENT(pid), t);
	}
	if (part->fields & FAY_FIELD_TID)
		emit_tid(e, spec, t);
	if (part->fields & FAY_FIELD_CPU)
		emit_cpu(e, t);
	if (part->fields & FAY_FIELD_RESERVED) {
		fay_emit_memory(e, false, 0xc7, 0, FAY_RSP, EVENT(reserved));
		fay_emit_imm32(e, 0);
	}
	if (part->fields & FAY_FIELD_STACK_POINTER && part->frame) {
		fay_emit_lea(e, t, FAY_RSP, part->frame);
		fay_emit_store64(e, FAY_RSP, EVENT(stack_pointer), t);
	}
	if (part->fields & FAY_FIELD_CALLER && part->frame &&
	    !(spec->records && spec->role == FAY_ROLE_RETURN)) {
		fay_emit_load64(e, t, FAY_RSP, part->frame);
		fay_emit_store64(e, FAY_RSP, EVENT(caller), t);
	}
	if (part->fields & FAY_FIELD_COMM)
		emit_name(e, spec);
}
