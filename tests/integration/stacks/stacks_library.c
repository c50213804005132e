/* SPDX-License-Identifier: MIT */
/* Loaded by stacks_target.c while it is traced. */
int call_it(int (*function)(int));
int call_it(int (*function)(int))
{
	int result = function(1);
	__asm__ volatile("" ::: "memory");
	return result;
}
