/* SPDX-License-Identifier: MIT */
/* Says what it does and waits for a line, three times: before and after a call that leaves its return address on the stack, and when that is gone. */
#include <stdio.h>

__attribute__((noinline, noclone)) void leave(void *volatile *there);
void leave(void *volatile *there)
{
	*there = __builtin_return_address(0);
}

static int say_and_wait(const char *what)
{
	puts(what);
	fflush(stdout);
	return getchar() == EOF;
}

int main(void)
{
	void *volatile there = NULL;
	if (say_and_wait("ready"))
		return 1;
	leave(&there);
	if (say_and_wait("called"))
		return 1;
	there = NULL;
	return say_and_wait("gone");
}
