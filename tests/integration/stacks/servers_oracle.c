/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into a server: while $NOTES.PID.go exists, each call of some functions of the C library
 * notes in $NOTES.PID, with glibc's own unwinder, from where it was called, as stacks_oracle.c
 * does; and then calls noted(), which is traced.
 */
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noclone))
#define FRAMES 16
#define NOTES_MAX 20000u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *notes;
static unsigned noted_count;
static char program[4096]; /* the link map has no name of the program itself */
static __thread int noting;

void noted(void);
KEPT void noted(void)
{
	__asm__ volatile("" ::: "memory");
}

/* Forked processes have files of their own. */
static int begins(void)
{
	static pid_t of;
	char path[PATH_MAX];
	const char *name = getenv("NOTES");
	snprintf(path, sizeof(path), "%s.%d.go", name ? name : "", (int)getpid());
	if (!name || access(path, F_OK))
		return 0;
	if (of == getpid() && notes)
		return 1;
	if (readlink("/proc/self/exe", program, sizeof(program) - 1) < 0)
		return 0;
	snprintf(path, sizeof(path), "%s.%d", name, (int)getpid());
	of = getpid();
	notes = fopen(path, "we");
	return notes != NULL;
}

/* `frames`: of the function that was called first. */
static int note(void *const *frames, int count)
{
	int did = 0;
	pthread_mutex_lock(&lock);
	if (begins() && noted_count < NOTES_MAX) {
		for (int i = 1; i < count; i++) {
			Dl_info info;
			struct link_map *map;
			if (dladdr1((char *)frames[i] - 1, &info, (void **)&map, RTLD_DL_LINKMAP))
				fprintf(notes, "%s%s %lx", i > 1 ? ";" : "",
					*map->l_name ? map->l_name : program,
					(unsigned long)frames[i] - map->l_addr);
			else
				fprintf(notes, "%s? %lx", i > 1 ? ";" : "",
					(unsigned long)frames[i]);
		}
		fputc('\n', notes);
		fflush(notes);
		noted_count++;
		did = 1;
	}
	pthread_mutex_unlock(&lock);
	return did;
}

#define OURS(type, name, number, parameters, ...)                                                  \
	type name parameters;                                                                      \
	type name parameters                                                                       \
	{                                                                                          \
		void *frames[FRAMES];                                                              \
		if (!noting) {                                                                     \
			noting = 1;                                                                \
			int count = backtrace(frames, FRAMES), did = note(frames, count);          \
			noting = 0;                                                                \
			if (did)                                                                   \
				noted();                                                           \
		}                                                                                  \
		return (type)syscall(number, __VA_ARGS__);                                         \
	}

OURS(ssize_t, read, SYS_read, (int fd, void *to, size_t size), fd, to, size)
OURS(ssize_t, write, SYS_write, (int fd, const void *from, size_t size), fd, from, size)
OURS(ssize_t, pread64, SYS_pread64, (int fd, void *to, size_t size, off_t at), fd, to, size, at)
OURS(ssize_t, pwrite64, SYS_pwrite64, (int fd, const void *from, size_t size, off_t at), fd, from,
     size, at)
OURS(ssize_t, recv, SYS_recvfrom, (int fd, void *to, size_t size, int flags), fd, to, size, flags,
     NULL, NULL)
OURS(ssize_t, send, SYS_sendto, (int fd, const void *from, size_t size, int flags), fd, from, size,
     flags, NULL, 0)
