/* SPDX-License-Identifier: MIT */
/*
 * A program to look for functions in: prints the addresses that it sees itself, then waits. Built
 * as PIE and non-PIE.
 */
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

int fay_sym_variable = 3;
int fay_sym_global(int x);
int fay_sym_alias_long_name(int x);
int fay_sym_only_in_library(int x);
unsigned long fay_sym_own_address(void);
void fay_sym_no_size(void);
void fay_sym_after(void);
int fay_sym_indirect(int x);

__attribute__((noinline)) int fay_sym_global(int x)
{
	return x * fay_sym_variable;
}
int fay_sym_alias_long_name(int x) __attribute__((alias("fay_sym_global")));

static __attribute__((noinline, used)) int fay_sym_static(int x)
{
	return x + fay_sym_variable;
}

/* Hand-written: no size; ends where the next function begins. */
/* clang-format off */
__asm__(".text\n.p2align 4\n.globl fay_sym_no_size\n.type fay_sym_no_size,@function\nfay_sym_no_size:\n"
	".skip 24, 0x90\nret\n.skip 7, 0x90\n"
	".globl fay_sym_after\n.type fay_sym_after,@function\nfay_sym_after:\nret\n.size fay_sym_after,1\n");
/* clang-format on */

static int (*resolve(void))(int)
{
	return fay_sym_static;
}
int fay_sym_indirect(int x) __attribute__((ifunc("resolve")));

int main(void)
{
	printf("%lu %lu %lu\n", (unsigned long)(uintptr_t)fay_sym_global,
	       (unsigned long)(uintptr_t)fay_sym_static,
	       fay_sym_own_address() + 0ul * (unsigned)fay_sym_only_in_library(1));
	fflush(stdout);
	for (;;)
		pause();
}
