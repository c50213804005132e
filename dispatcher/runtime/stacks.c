/* SPDX-License-Identifier: MIT */
/*
 * The stack that the thread runs on, which can be read without a system call: from here up to the
 * stack's end nothing can be missing while the thread runs. docs/decisions/0024-own-stack.md says
 * why, and what is left to the kernel. Nothing is kept from one event to the next: a thread's stack
 * is what its own control block says at that moment.
 */
#include "runtime_private.h"

#define PAGE 4096u

/* What glibc notes of a thread's stack in its control block (struct pthread). */
struct noted_stack {
	uint64_t block, size, guard; /* address; bytes, with those of the guard at its beginning */
};

static uint64_t thread_word(uint64_t offset)
{
	uint64_t word;

	__asm__ volatile("mov %%fs:(%1), %0" : "=r"(word) : "r"(offset));
	return word;
}

/*
 * The end of the stack if it is glibc's, with a guard, and `here` is in it; else 0. Only the page
 * of fs:0 is looked at, from which the trampoline has read. What was found there would have to lie
 * by chance if it were something else: a block that ends with that page.
 */
static uint64_t end_in_block(uint64_t here)
{
	uint64_t self, end, at = fay_config.stack_noted;
	struct noted_stack noted;

	if (!at)
		return 0;
	self = thread_word(0);
	end = (self | (PAGE - 1)) + 1;
	if (end - self < 2 * sizeof(self) || end - self < sizeof(noted) ||
	    at > end - self - sizeof(noted) || thread_word(2 * sizeof(self)) != self)
		return 0;
	noted.block = thread_word(at);
	noted.size = thread_word(at + offsetof(struct noted_stack, size));
	noted.guard = thread_word(at + offsetof(struct noted_stack, guard));
	if (noted.block % PAGE || noted.guard % PAGE || noted.guard == 0 || noted.block >= self ||
	    noted.size != end - noted.block || noted.guard >= noted.size)
		return 0;
	return here >= noted.block + noted.guard && here < self ? self : 0;
}

bool fay_rt_on_own_stack(uint64_t address, uint64_t size)
{
	uint64_t here = (uint64_t)__builtin_frame_address(0), end = fay_config.main_stack_end;

	/* in a forked child parts may be missing (MADV_DONTFORK) */
	if (fay_config.hosted_pid ||
	    *(const volatile uint32_t *)(fay_config.thread_table + FAY_PROCESS_AT) !=
		    FAY_PROCESS_TRACED)
		return false;
	if (here < fay_config.main_stack || here >= end)
		end = end_in_block(here);
	return address >= here && address < end && size <= end - address;
}
