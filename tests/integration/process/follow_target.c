/* SPDX-License-Identifier: MIT */
/*
 * A program that forks, executes itself and loads a module. Its arguments are done in order:
 *
 *	calls N       calls work() N times
 *	fork K N      forks K children, one after the other, each of which calls work() N times
 *	hold K N      forks K children, one a millisecond; when a line has come each calls work()
 *		      N times
 *	orphan N      forks a child that, when this process has ended, forks one that calls work()
 *		      N times, and calls it N times
 *	sandbox N     forks a child that may do nothing but write and exit before it calls work() N
 *		      times
 *	sandbox-thread N  likewise a thread
 *	vfork N       starts itself by vfork and exec: `calls N`
 *	spawn N       starts itself by posix_spawn: `calls N`
 *	thread-exec N a thread that is not the first executes `calls N`, in the place of the whole
 *	  program; nothing after it is done
 *	load FILE     dlopen; then waits for a line on standard input
 *	plugin N      calls the module's function N times
 *	unload        dlclose; then waits for a line
 *	wait          waits for a line
 *	threads N     N threads, each calls work() once
 *	confine       installs a seccomp filter: mmap and memfd_create kill the process
 *	surround      maps, without access, all free memory that a jump could reach from its text
 */
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <spawn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
long work(long number);

__attribute__((noinline, noclone)) long work(long number)
{
	__asm__ volatile("" ::: "memory");
	return number * 3;
}

static void call(long count)
{
	for (long i = 0; i < count; i++)
		if (work(i) != i * 3)
			abort();
}

static void *one_call(void *argument)
{
	(void)argument;
	call(1);
	return NULL;
}

static void *execute(void *argument)
{
	char *command[] = { "follow_target", "calls", argument, NULL };
	execv("/proc/self/exe", command);
	abort();
}

static void start(char *count, int by_vfork)
{
	char *command[] = { "follow_target", "calls", count, NULL };
	pid_t child;
	int status;
	if (by_vfork) {
		child = vfork();
		if (child == 0) {
			execv("/proc/self/exe", command);
			_exit(127);
		}
	} else if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, command, environ)) {
		abort();
	}
	if (waitpid(child, &status, 0) != child || status)
		abort();
}

static void fork_children(long children, long count)
{
	for (long i = 0; i < children; i++) {
		int status;
		pid_t child = fork();
		if (child == 0) {
			call(count);
			_exit(0);
		}
		if (waitpid(child, &status, 0) != child || status)
			abort();
	}
}

static void say_and_wait(const char *what)
{
	printf("%s\n", what);
	fflush(stdout);
	if (getchar() == EOF)
		exit(1);
}

static void hold_children(long children, long count)
{
	int gate[2], status;
	char byte;
	if (pipe(gate))
		abort();
	for (long i = 0; i < children; i++) {
		pid_t child = fork();
		if (child == 0) {
			close(gate[1]);
			while (read(gate[0], &byte, 1) > 0)
				;
			call(count);
			_exit(0);
		}
		usleep(1000);
	}
	say_and_wait("held");
	close(gate[1]);
	for (long i = 0; i < children; i++)
		if (waitpid(-1, &status, 0) < 0 || status)
			abort();
	close(gate[0]);
}

static void fork_orphan(long count)
{
	pid_t parent = getpid();
	if (fork())
		return;
	while (getppid() == parent)
		usleep(10000);
	usleep(300000);
	fork_children(1, count);
	call(count);
	_exit(0);
}

/* From now on every system call but read, write, exit and sigreturn kills the thread. */
static void enter_sandbox(void)
{
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
		_exit(126);
}

static void fork_sandboxed(long count)
{
	int status;
	pid_t child = fork();
	if (child == 0) {
		enter_sandbox();
		call(count);
		syscall(SYS_exit, 0);
	}
	if (waitpid(child, &status, 0) != child || status)
		abort();
}

static int survived;

static void *call_sandboxed(void *count)
{
	enter_sandbox();
	call(atol(count));
	survived = 1;
	syscall(SYS_exit, 0);
	return NULL;
}

/* At most 32 at a time, with stacks of many sizes, so that their control blocks lie at ever new
 * addresses. */
static void threads(long count)
{
	pthread_t running[32];
	pthread_attr_t attributes;
	pthread_attr_init(&attributes);
	for (long i = 0; i < count + 32; i++) {
		if (i >= 32)
			pthread_join(running[i % 32], NULL);
		if (i >= count)
			continue;
		pthread_attr_setstacksize(&attributes, (size_t)(16 + i * 7919 % 509) * 4096);
		if (pthread_create(&running[i % 32], &attributes, one_call, NULL))
			abort();
	}
}

static void confine(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		abort();
}

/* Larger pieces first, so that few mappings do; down to single pages. */
static void surround(void)
{
	uintptr_t text = (uintptr_t)&work & ~(uintptr_t)0xfff, far = (uintptr_t)2 << 30;
	for (uintptr_t size = (uintptr_t)1 << 28; size >= 4096; size >>= 2)
		for (uintptr_t at = (text - far) & -size; at < text + far; at += size)
			if (mmap((void *)at, size, PROT_NONE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
				 -1, 0) == MAP_FAILED)
				continue;
}

int main(int argc, char **argv)
{
	void *module = NULL;
	long (*function)(long) = NULL;
	for (int i = 1; i < argc; i++) {
		const char *what = argv[i];
		char *next = i + 1 < argc ? argv[i + 1] : "0";
		pthread_t thread;
		if (!strcmp(what, "calls")) {
			call(atol(argv[++i]));
		} else if (!strcmp(what, "fork") && i + 2 < argc) {
			fork_children(atol(next), atol(argv[i + 2]));
			i += 2;
		} else if (!strcmp(what, "hold") && i + 2 < argc) {
			hold_children(atol(next), atol(argv[i + 2]));
			i += 2;
		} else if (!strcmp(what, "orphan")) {
			fork_orphan(atol(argv[++i]));
		} else if (!strcmp(what, "sandbox")) {
			fork_sandboxed(atol(argv[++i]));
		} else if (!strcmp(what, "sandbox-thread")) {
			if (pthread_create(&thread, NULL, call_sandboxed, argv[++i]) ||
			    pthread_join(thread, NULL) || !survived)
				return 5;
		} else if (!strcmp(what, "vfork") || !strcmp(what, "spawn")) {
			start(argv[++i], what[0] == 'v');
		} else if (!strcmp(what, "thread-exec")) {
			if (!pthread_create(&thread, NULL, execute, next))
				pthread_join(thread, NULL);
			return 3;
		} else if (!strcmp(what, "load")) {
			module = dlopen(argv[++i], RTLD_NOW);
			if (!module || !(function = (long (*)(long))dlsym(module, "plugin_work")))
				return 4;
			say_and_wait("loaded");
		} else if (!strcmp(what, "plugin") && function) {
			for (long k = 0, count = atol(argv[++i]); k < count; k++)
				if (function(k) != k + 5)
					abort();
		} else if (!strcmp(what, "unload") && module) {
			dlclose(module);
			say_and_wait("unloaded");
		} else if (!strcmp(what, "wait")) {
			say_and_wait("waiting");
		} else if (!strcmp(what, "confine")) {
			confine();
		} else if (!strcmp(what, "surround")) {
			surround();
		} else if (!strcmp(what, "threads")) {
			threads(atol(argv[++i]));
		} else {
			return 2;
		}
	}
	return 0;
}
