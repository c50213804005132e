/* SPDX-License-Identifier: MIT */
/*
 * The program that test_vectors traces. Each line on standard input is "MXCSR OFFSET COUNT": it
 * calls vec_function COUNT times, each time with new numbers in all vector registers (as wide as
 * the CPU has them), MXCSR set, and the stack pointer OFFSET bytes off, and answers with the number
 * of calls after which anything of that was different.
 */
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct state {
	uint8_t registers[16][32];
	uint32_t mxcsr;
};

/* Loads all, calls vec_function with the stack off by `offset`, stores all. */
void vec_call(const struct state *in, struct state *out, uint64_t offset);
/* clang-format off */
__asm__(".globl vec_function\n.type vec_function, @function\nvec_function:\n"
	"	lea 1(%rdi), %rax\n	lea 2(%rsi), %rdx\n	ret\n.size vec_function, .-vec_function\n");
/* clang-format on */
#define EACH(op)                                                                                   \
	op(0) op(1) op(2) op(3) op(4) op(5) op(6) op(7) op(8) op(9) op(10) op(11) op(12) op(13)    \
		op(14) op(15)
#define LOAD(n) "	vmovups 32*" #n "(%rdi), %ymm" #n "\n"
#define STORE(n) "	vmovups %ymm" #n ", 32*" #n "(%r12)\n"
/* clang-format off */
__asm__(".globl vec_call\nvec_call:\n"
	"	push %rbp\n	push %rbx\n	push %r12\n	push %r13\n	mov %rsp, %rbp\n	mov %rsi, %r12\n	sub $64, %rsp\n	sub %rdx, %rsp\n"
	"	stmxcsr -8(%rbp)\n	ldmxcsr 512(%rdi)\n" EACH(LOAD) "	call vec_function\n" EACH(STORE)
	"	stmxcsr 512(%r12)\n	ldmxcsr -8(%rbp)\n	vzeroupper\n	mov %rbp, %rsp\n	pop %r13\n	pop %r12\n	pop %rbx\n	pop %rbp\n	ret\n");
/* clang-format on */

static uint32_t random_state = 12345;
static uint8_t next_byte(void)
{
	random_state = random_state * 1664525 + 1013904223;
	return (uint8_t)(random_state >> 24);
}

int main(void)
{
	char line[128];

	while (fgets(line, sizeof(line), stdin)) {
		unsigned mxcsr, offset, count, different = 0;
		struct state in, out;

		if (sscanf(line, "%x %u %u", &mxcsr, &offset, &count) != 3) {
			puts("0"); /* whatever asks whether we are up */
			fflush(stdout);
			continue;
		}
		for (unsigned i = 0; i < count; i++) {
			memset(&in, 0, sizeof(in));
			memset(&out, 0, sizeof(out));
			for (size_t k = 0; k < sizeof(in.registers); k++)
				in.registers[k / 32][k % 32] = next_byte();
			in.mxcsr = mxcsr;
			vec_call(&in, &out, offset);
			different += memcmp(&in, &out, sizeof(in)) != 0;
		}
		printf("%u\n", different);
		fflush(stdout);
	}
	return 0;
}
