/* SPDX-License-Identifier: MIT */
/*
 * Stacks that are none: frames that lead back to themselves, and frame pointers into nowhere, as
 * unwind tables say where they are. Each way calls reached() `rounds` times; what it has computed
 * is said at the end. Without "broken" it only goes through chains of calls whose tables are right.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define FRAMES 256u
#define CALLED __attribute__((noinline, noclone))

uint64_t reached(uint64_t x);
CALLED uint64_t reached(uint64_t x)
{
	__asm__ volatile("" : "+r"(x));
	return x + 1;
}

/* A frame that is its own caller's, and returns to where it was called. */
uint64_t cyclic(uint64_t x);
__asm__(".globl cyclic\n"
	".type cyclic, @function\n"
	"cyclic:\n"
	"	.cfi_startproc\n"
	"	push %rbx\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	sub $16, %rsp\n"
	"	.cfi_adjust_cfa_offset 16\n"
	"	mov %rbp, %rbx\n"
	"	mov %rsp, %rbp\n"
	"	mov %rbp, (%rbp)\n"
	"	lea 1f(%rip), %rax\n"
	"	mov %rax, 8(%rbp)\n"
	"	.cfi_def_cfa rbp, 16\n"
	"	.cfi_offset rbp, -16\n"
	"	call reached\n"
	"1:	mov %rbx, %rbp\n"
	"	.cfi_def_cfa rsp, 32\n"
	"	.cfi_restore rbp\n"
	"	add $16, %rsp\n"
	"	.cfi_adjust_cfa_offset -16\n"
	"	pop %rbx\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size cyclic, . - cyclic\n");

/* The frame is where the second argument says. */
uint64_t astray(uint64_t x, uint64_t frame);
extern const char astray_goes_on[];
__asm__(".globl astray\n"
	".type astray, @function\n"
	"astray:\n"
	"	.cfi_startproc\n"
	"	push %rbx\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	mov %rbp, %rbx\n"
	"	mov %rsi, %rbp\n"
	"	.cfi_def_cfa rbp, 16\n"
	"	.cfi_offset rbp, -16\n"
	"	call reached\n"
	"astray_goes_on:\n"
	"	mov %rbx, %rbp\n"
	"	.cfi_def_cfa rsp, 16\n"
	"	.cfi_restore rbp\n"
	"	pop %rbx\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size astray, . - astray\n");

CALLED static uint64_t deeper(uint64_t x, unsigned depth)
{
	uint64_t sum = depth ? deeper(x, depth - 1) : reached(x);

	__asm__ volatile("" : "+r"(sum));
	return sum;
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
	uint8_t *pages =
		mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t there = (uint64_t)pages, here = (uint64_t)__builtin_frame_address(0), sum = 0;
	const uint64_t frames[] = {
		0,
		8,
		UINT64_MAX - 15,
		UINT64_MAX - 7,
		0x7ffffffff000 - 8,
		0x800000000000,
		0x8000000000000000,
		0xffff888000000000,
		0xffffffffff600000, /* vsyscall: executable only */
		there + 4096 - 8,   /* one word can be read */
		there + 4096,       /* not any more */
		there + 2 * 4096,
		there + 3,
		here & ~4095ull,
		here + (64u << 20), /* above the stack */
		here - (64u << 20),
		(uint64_t)&reached,
	};
	size_t count = sizeof(frames) / sizeof(*frames);
	volatile uint64_t chain[FRAMES][2];

	if (pages == MAP_FAILED || mprotect(pages + 4096, 4096, PROT_NONE))
		return 2;
	/* each leads to the next higher one, the last back to the first */
	for (size_t i = 0; i < FRAMES; i++) {
		chain[i][0] = (uint64_t)chain[(i + 1) % FRAMES];
		chain[i][1] = (uint64_t)astray_goes_on;
	}
	for (unsigned i = 0; i < rounds; i++) {
		sum += deeper(i, i % 20);
		if (argc < 3 || strcmp(argv[2], "broken"))
			continue;
		sum += cyclic(i) + astray(i, (uint64_t)chain);
		for (size_t k = 0; k < count; k++)
			sum += astray(i, frames[k]);
	}
	printf("did %" PRIu64 "\n", sum);
	return 0;
}
