/* SPDX-License-Identifier: MIT */
/* A module with the names that Mono's compiler gives to what it makes ahead of time. Runs until its
 * input ends. */
#include <stdio.h>

__attribute__((visibility("default"))) int mono_aot_file_info = 1;
int plt_method(int value);
int method(int value);

__attribute__((noinline)) int method(int value)
{
	__asm__ volatile("" : "+r"(value));
	return value + mono_aot_file_info;
}

__attribute__((noinline)) int plt_method(int value)
{
	__asm__ volatile("" : "+r"(value));
	return method(value) + 1;
}

int main(void)
{
	int sum = 0;

	printf("ready\n");
	fflush(stdout);
	while (getchar() != EOF) {
		sum = plt_method(sum);
		printf("called\n");
		fflush(stdout);
	}
	printf("wrong %d\n", sum % 2);
	return 0;
}
