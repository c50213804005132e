/* SPDX-License-Identifier: MIT */
/* A program that has loaded such a library; it answers each character of its input by a line. */
#include <stdio.h>

int __unw_init_local(void *cursor, void *context);
int waits(int c);

__attribute__((noinline)) int waits(int c)
{
	return c != EOF && __unw_init_local(&c, NULL) == 0;
}

int main(void)
{
	puts("ready");
	fflush(stdout);
	while (waits(getchar())) {
		puts("one more");
		fflush(stdout);
	}
	return 0;
}
