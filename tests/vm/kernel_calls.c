/* SPDX-License-Identifier: MIT */
/* A program whose system calls are known exactly: kernel_calls WHAT COUNT [WHAT COUNT ...]. Static, so that nothing else is called meanwhile. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static unsigned long long rdtsc(void)
{
	unsigned low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (unsigned long long)high << 32 | low;
}

static void repeat(const char *what, long count)
{
	char buffer[64];
	int zero = open("/dev/zero", O_RDWR);

	if (!strcmp(what, "cost")) { /* time stamp counter units per getppid */
		unsigned long long from = rdtsc();

		for (long i = 0; i < count; i++)
			syscall(SYS_getppid);
		printf("%llu\n", (rdtsc() - from) / (unsigned long long)count);
		return;
	}
	for (long i = 0; i < count; i++) {
		if (!strcmp(what, "getppid"))
			syscall(SYS_getppid);
		else if (!strcmp(what, "getpgid"))
			syscall(SYS_getpgid, -1); /* -ESRCH: -3 */
		else if (!strcmp(what, "badclose"))
			syscall(SYS_close, -1);
		else if (!strcmp(what, "read")) /* 1 to 64 bytes, in turn */
			syscall(SYS_read, zero, buffer, (size_t)(i % 64 + 1));
		else if (!strcmp(what, "access"))
			syscall(SYS_access, "/known/path", 0);
		else if (!strcmp(what, "sleep"))
			nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
		else if (!strcmp(what, "fork")) {
			pid_t child = fork();

			if (!child)
				_exit(0);
			waitpid(child, NULL, 0);
		} else
			exit(2);
	}
	close(zero);
}

int main(int argc, char **argv)
{
	for (int i = 1; i + 1 < argc; i += 2)
		repeat(argv[i], atol(argv[i + 1]));
	return 0;
}
