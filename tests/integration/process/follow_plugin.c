/* SPDX-License-Identifier: MIT */
/* The module that follow_target loads. */
long plugin_work(long number);

__attribute__((noinline)) long plugin_work(long number)
{
	__asm__ volatile("" ::: "memory");
	return number + 5;
}
