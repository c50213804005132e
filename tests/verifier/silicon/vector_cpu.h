/* SPDX-License-Identifier: MIT */
/* One instruction on the CPU with a whole machine state: vector_cpu.S. */
#ifndef FAY_TESTS_VECTOR_CPU_H
#define FAY_TESTS_VECTOR_CPU_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "tests/verifier/decoding/vector_forms.h"

struct frame {
	uint8_t vectors[16][32];
	uint64_t gpr[16], flags, mxcsr;
};
/* The code ends with a jump to vector_back; rsp is not loaded. Needs AVX. */
void vector_run(struct frame *frame, const void *code);
void vector_back(void);

/* Writes the instruction and the jump to `code`. */
static inline unsigned vector_place(const struct vector_form *form,
				    const struct vector_operands *operands, uint8_t *code)
{
	unsigned length = vector_form_encode(form, operands, code);
	uint64_t back = (uint64_t)vector_back;

	memcpy(code + length, "\xff\x25\0\0\0\0", 6); /* jmp *0(%rip) */
	memcpy(code + length + 6, &back, 8);
	return length;
}

static inline bool vector_cpu_has(uint32_t features)
{
	return (!(features & FAY_CPU_SSE3) || __builtin_cpu_supports("sse3")) &&
	       (!(features & FAY_CPU_SSSE3) || __builtin_cpu_supports("ssse3")) &&
	       (!(features & FAY_CPU_SSE41) || __builtin_cpu_supports("sse4.1")) &&
	       (!(features & FAY_CPU_SSE42) || __builtin_cpu_supports("sse4.2")) &&
	       (!(features & FAY_CPU_AVX) || __builtin_cpu_supports("avx")) &&
	       (!(features & FAY_CPU_AVX2) || __builtin_cpu_supports("avx2")) &&
	       (!(features & FAY_CPU_FMA) || __builtin_cpu_supports("fma"));
}

#endif
