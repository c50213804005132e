/* SPDX-License-Identifier: MIT */
/* Functions whose instructions' offsets are known, and which notice if anything that is live
 * between two of them changes. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

long traced_loop(long n, const char *text);
long traced_live(long a, long b, uint64_t out[20]);

/* clang-format off */
__asm__(".text\n.globl traced_loop\n.type traced_loop,@function\ntraced_loop:\n"
	/* 0 3 5 7 9 */
	"\ttest %rdi,%rdi\n\tjle 2f\n\txor %edx,%edx\n\txor %eax,%eax\n\tnopl 0x0(%rax)\n"
	/* c f 12 17 */
	"1:\tmov %rdx,%rcx\n\tand $7,%ecx\n\tmovsbq (%rsi,%rcx,1),%rcx\n\timul %rdx,%rcx\n"
	/* 1b 1e 24 26 2b */
	"\tadd %rcx,%rax\n\tcmp $0x3039,%rax\n\tjne 3f\n\tmovsbq 3(%rsi),%rax\n\txor $0x3039,%rax\n"
	/* 31 35 38 3a 3b */
	"3:\tadd $1,%rdx\n\tcmp %rdx,%rdi\n\tjne 1b\n\tret\n\tnop\n"
	"2:\txor %eax,%eax\n\tret\n.size traced_loop,.-traced_loop\n"
	/* All registers, the flags, and the red zone live across the nop at live_place. */
	".p2align 4\n.globl traced_live\n.type traced_live,@function\ntraced_live:\n"
	"\tpush %rbx\n\tpush %rbp\n\tpush %r12\n\tpush %r13\n\tpush %r14\n\tpush %r15\n"
	"\tmov %rdi,-8(%rsp)\n\tmov %rsi,-64(%rsp)\n\tmov %rdx,-128(%rsp)\n"
	"\tmov $1,%eax\n\tmov $2,%ecx\n\tmov $3,%ebx\n\tmov $4,%ebp\n\tmov $5,%r8d\n\tmov $6,%r9d\n\tmov $7,%r10d\n\tmov $8,%r11d\n"
	"\tmov $9,%r12d\n\tmov $10,%r13d\n\tmov $11,%r14d\n\tmov $12,%r15d\n\tmovq %rdi,%xmm0\n\tstd\n\tcmp %rsi,%rdi\n"
	".globl live_place\nlive_place:\n\tnopl 0(%rax,%rax,1)\n"
	"\tpushfq\n\tpopq 112(%rdx)\n\tcld\n"
	"\tmov %rax,(%rdx)\n\tmov %rcx,8(%rdx)\n\tmov %rbx,16(%rdx)\n\tmov %rbp,24(%rdx)\n\tmov %r8,32(%rdx)\n\tmov %r9,40(%rdx)\n"
	"\tmov %r10,48(%rdx)\n\tmov %r11,56(%rdx)\n\tmov %r12,64(%rdx)\n\tmov %r13,72(%rdx)\n\tmov %r14,80(%rdx)\n\tmov %r15,88(%rdx)\n"
	"\tmovq %xmm0,96(%rdx)\n\tmov -64(%rsp),%rax\n\tmov %rax,104(%rdx)\n\tmov -128(%rsp),%rax\n\tsub %rdx,%rax\n\tadd %rdi,%rax\n\tadd %rsi,%rax\n"
	"\tpop %r15\n\tpop %r14\n\tpop %r13\n\tpop %r12\n\tpop %rbp\n\tpop %rbx\n\tret\n.size traced_live,.-traced_live\n");
/* clang-format on */

static int live_is_right(long a, long b)
{
	uint64_t out[20], flags = 0;

	if (traced_live(a, b, out) != a + b)
		return 0;
	for (uint64_t i = 0; i < 12; i++)
		if (out[i] != i + 1)
			return 0;
	__asm__("cmp %2, %1\n\tpushfq\n\tpop %0" : "=r"(flags) : "r"(a), "r"(b) : "cc");
	return out[12] == (uint64_t)a && out[13] == (uint64_t)b &&
	       (out[14] & 0xcd5) == ((flags & 0x8d5) | 0x400);
}

int main(void)
{
	long total = 0;

	for (int i = 0; i < 1000; i++)
		total += traced_loop(i, "abcdefgh");
	for (int i = 0; i < 1000; i++)
		if (!live_is_right(i * 7919 % 13 - 6, i % 11 - 5)) {
			printf("round %d: something changed\n", i);
			return 1;
		}
	printf("%ld\n", total);
	return 0;
}
