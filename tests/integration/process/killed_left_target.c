/* SPDX-License-Identifier: MIT */
/*
 * Says what it does and waits for a line, three times: before and after its stack has what a
 * thread's has that a signal interrupted in a trace's code, and when that is gone.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

__attribute__((noinline, noclone)) int leave(int n);
int leave(int n)
{
	static volatile int calls;

	calls += n;
	return calls;
}

/* Where a trace's code begins; 0: there is none. */
static uint64_t trace_code(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long start = 0;
	char line[512];

	while (maps && !start && fgets(line, sizeof(line), maps))
		if (strstr(line, " r-xs ") && strstr(line, "memfd:fay-code"))
			sscanf(line, "%lx", &start);
	if (maps)
		fclose(maps);
	return start;
}

static int say_and_wait(const char *what)
{
	puts(what);
	fflush(stdout);
	return getchar() == EOF;
}

int main(void)
{
	/* rip, flags, segment selectors (Linux, struct sigcontext) */
	volatile uint64_t frame[3] = { 0 };

	if (say_and_wait("ready"))
		return 1;
	frame[0] = trace_code() + (uint64_t)leave(63);
	frame[1] = 0x202;
	frame[2] = 0x33;
	if (say_and_wait("called"))
		return 1;
	frame[0] = frame[2] = 0;
	return say_and_wait("gone");
}
