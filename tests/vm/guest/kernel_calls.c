/* SPDX-License-Identifier: MIT */
/* A program whose system calls are known exactly: kernel_calls WHAT COUNT [WHAT COUNT ...]; `at
 * ADDRESS` names an address to the kernel. Static, so that nothing else is called meanwhile. */
#include <fcntl.h>
#include <signal.h>
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

/* Only a probe reads what lies there. */
static void name_address(const char *address)
{
	syscall(SYS_rmdir, strtoull(address, NULL, 0));
}

/* Children that end: by a signal, while they run in user mode; by exit(2) of their one thread; by
 * seccomp's strict mode, which kills for a system call. */
static void end_child(const char *how)
{
	pid_t child = fork();

	if (child < 0)
		exit(2);
	if (!child && !strcmp(how, "killed"))
		for (;;)
			;
	if (!child && !strcmp(how, "strict"))
		prctl(PR_SET_SECCOMP, 1 /* SECCOMP_MODE_STRICT */);
	if (!child && !strcmp(how, "strict"))
		syscall(SYS_getppid);
	if (!child)
		syscall(SYS_exit, 0);
	if (!strcmp(how, "killed"))
		kill(child, SIGKILL);
	waitpid(child, NULL, 0);
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

			if (child < 0)
				exit(2);
			if (!child)
				_exit(0);
			waitpid(child, NULL, 0);
		} else if (!strcmp(what, "killed") || !strcmp(what, "exit") ||
			   !strcmp(what, "strict"))
			end_child(what);
		else
			exit(2);
	}
	close(zero);
}

int main(int argc, char **argv)
{
	for (int i = 1; i + 1 < argc; i += 2)
		if (!strcmp(argv[i], "at"))
			name_address(argv[i + 1]);
		else
			repeat(argv[i], atol(argv[i + 1]));
	return 0;
}
