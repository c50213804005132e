/* SPDX-License-Identifier: MIT */
/*
 * Code that saves and restores vector registers, and what this CPU has.
 *
 *	movups %xmmN, d(%rsp)     0F 11 /r            16 bytes
 *	vmovups %ymmN, d(%rsp)    VEX.256.0F 11 /r    32
 *	vmovups %zmmN, d(%rsp)    EVEX.512.0F 11 /r 64, where the kernel has enabled AVX-512 state
 *				  (XCR0 bits 5 to 7)
 *	stmxcsr d(%rsp)           0F AE /3
 *	movl $0x1f80, d(%rsp); ldmxcsr d(%rsp)        the default: all exceptions masked, round to
 *						      nearest
 *
 * Unaligned moves: nothing is assumed of the traced program's stack.
 */
#include "vectors_private.h"

#include "trampoline.h"

#include <cpuid.h>

#define MXCSR_DEFAULT 0x1f80u
enum { STORE = 0x11, LOAD = 0x10 };

/* XCR0 (Intel SDM volume 1, 13.3); 0 without XSAVE. */
static uint64_t enabled_states(void)
{
	uint32_t a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
		return 0;
	__asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
	return (uint64_t)d << 32 | a;
}

uint32_t fay_cpu_features(void)
{
	uint32_t a, b, c = 0, d, b7 = 0, c7, features = 0;
	bool avx = (enabled_states() & 6) == 6;

	if (!__get_cpuid(1, &a, &b, &c, &d))
		return 0;
	if (!__get_cpuid_count(7, 0, &a, &b7, &c7, &d))
		b7 = 0;
	features |= c & bit_SSE3 ? FAY_CPU_SSE3 : 0;
	features |= c & bit_SSSE3 ? FAY_CPU_SSSE3 : 0;
	features |= c & bit_SSE4_1 ? FAY_CPU_SSE41 : 0;
	features |= c & bit_SSE4_2 ? FAY_CPU_SSE42 : 0;
	features |= c & bit_POPCNT ? FAY_CPU_POPCNT : 0;
	features |= c & bit_MOVBE ? FAY_CPU_MOVBE : 0;
	features |= b7 & bit_BMI ? FAY_CPU_BMI1 : 0;
	features |= b7 & bit_BMI2 ? FAY_CPU_BMI2 : 0;
	if (__get_cpuid(0x80000001, &a, &b, &c7, &d))
		features |= c7 & bit_LZCNT ? FAY_CPU_LZCNT : 0;
	features |= avx && c & bit_AVX ? FAY_CPU_AVX : 0;
	features |= avx && c & bit_FMA ? FAY_CPU_FMA : 0;
	features |= avx && b7 & bit_AVX2 ? FAY_CPU_AVX2 : 0;
	return features;
}

/* Bytes of a vector register that instructions of this machine can reach. */
static unsigned register_bytes(void)
{
	uint64_t states = enabled_states();

	return (states & 0xe6) == 0xe6 ? 64 : (states & 6) == 6 ? 32 : 16;
}

void fay_vectors_add(struct fay_vectors *plan, const struct fay_probe_facts *facts)
{
	plan->registers |= facts->clobbered_vectors & 0xffff;
	plan->whole |= facts->clobbers_upper;
	plan->mxcsr |= facts->uses_mxcsr;
}

static unsigned width_of(const struct fay_vectors *plan)
{
	return plan->whole ? register_bytes() : 16;
}

int32_t fay_vectors_size(const struct fay_vectors *plan)
{
	return (int32_t)(width_of(plan) * (unsigned)__builtin_popcount(plan->registers)) +
	       (plan->mxcsr ? 16 : 0);
}

/* op d(%rsp) with `reg` in the ModRM reg field. */
static void stack_operand(struct fay_emitter *e, unsigned opcode, unsigned reg, int32_t disp)
{
	fay_emit_byte(e, opcode);
	fay_emit_byte(e, 0x84 | (reg & 7) << 3);
	fay_emit_byte(e, 0x24);
	fay_emit_imm32(e, (uint32_t)disp);
}

static void move(struct fay_emitter *e, unsigned width, unsigned opcode, unsigned reg, int32_t disp)
{
	bool high = reg >= 8;

	if (width == 16) {
		if (high)
			fay_emit_byte(e, 0x44);
		fay_emit_byte(e, 0x0f);
	} else if (width == 32) {
		fay_emit_byte(e, 0xc5);
		fay_emit_byte(e, high ? 0x7c : 0xfc);
	} else {
		fay_emit_byte(e, 0x62);
		fay_emit_byte(e, high ? 0x71 : 0xf1);
		fay_emit_byte(e, 0x7c);
		fay_emit_byte(e, 0x48);
	}
	stack_operand(e, opcode, reg, disp);
}

static void move_all(struct fay_emitter *e, const struct fay_vectors *plan, unsigned opcode,
		     int32_t at)
{
	unsigned width = width_of(plan);

	for (unsigned reg = 0; reg < 16; reg++) {
		if (!(plan->registers >> reg & 1))
			continue;
		move(e, width, opcode, reg, at);
		at += (int32_t)width;
	}
}

static void mxcsr(struct fay_emitter *e, unsigned digit, int32_t disp)
{
	fay_emit_byte(e, 0x0f);
	stack_operand(e, 0xae, digit, disp);
}

void fay_vectors_save(struct fay_emitter *e, const struct fay_vectors *plan, int32_t at)
{
	if (plan->mxcsr) {
		mxcsr(e, 3, at);
		fay_emit_memory(e, false, 0xc7, 0, 4 /* rsp */, at + 4);
		fay_emit_imm32(e, MXCSR_DEFAULT);
		mxcsr(e, 2, at + 4);
		at += 16;
	}
	move_all(e, plan, STORE, at);
}

void fay_vectors_restore(struct fay_emitter *e, const struct fay_vectors *plan, int32_t at)
{
	move_all(e, plan, LOAD, at + (plan->mxcsr ? 16 : 0));
	if (plan->mxcsr)
		mxcsr(e, 2, at);
}
