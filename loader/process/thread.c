/* SPDX-License-Identifier: MIT */
/* What /proc says of a thread. */
#include "process.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* stat's fields (proc(5)), and what the flags say (the kernel's linux/sched.h). */
#define STAT_FLAGS 9
#define STAT_START 22
#define STAT_STACK 28
#define STAT_HEAP 47
#define AUXILIARY_MAX 64u      /* entries of auxv, of which Linux has some 25 */
#define PF_IO_WORKER 0x10u     /* Linux 5.12 */
#define PF_USER_WORKER 0x4000u /* Linux 6.4 */

long fay_thread_field(pid_t pid, pid_t tid, const char *name)
{
	char path[80], line[256];
	long value = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)tid);
	file = fopen(path, "re");
	if (!file)
		return -1;
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, name, strlen(name))) {
			value = strtol(line + strlen(name), NULL, 10);
			break;
		}
	fclose(file);
	return value;
}

size_t fay_proc_read(pid_t pid, const char *name, char *buffer, size_t size)
{
	char path[80];
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	got = fd >= 0 ? read(fd, buffer, size - 1) : -1;
	if (fd >= 0)
		close(fd);
	buffer[got > 0 ? got : 0] = 0;
	return got > 0 ? (size_t)got : 0;
}

/* The ") " behind the name, which may hold anything, and so the state two bytes on; NULL: gone. */
static const char *behind_name(const char *stat)
{
	const char *at = strrchr(stat, ')');

	return at && at[1] && at[2] ? at : NULL;
}

/* The number that is this field of stat (proc(5); behind the name); 0: not there. */
static uint64_t number_of(const char *stat, int number)
{
	const char *at = behind_name(stat);

	for (int field = 2; field < number && at; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}

static void read_stat(pid_t pid, pid_t tid, char *text, size_t size)
{
	char name[32];

	snprintf(name, sizeof(name), "task/%d/stat", (int)tid);
	fay_proc_read(pid, name, text, size);
}

char fay_thread_state(pid_t pid, pid_t tid)
{
	char text[1024];
	const char *at;

	read_stat(pid, tid, text, sizeof(text));
	at = behind_name(text);
	return at ? at[2] : 0;
}

/* By flag and name: the flags are the kernel's own, and had other meanings before Linux 5.12 and
 * 5.17; a name alone may be any thread's. */
bool fay_thread_is_worker(pid_t pid, pid_t tid)
{
	static const char *const names[] = { "(iou-", "(vhost-", "(kvm-nx-lpage" };
	char text[1024];
	const char *name;

	if (tid == pid)
		return false;
	read_stat(pid, tid, text, sizeof(text));
	name = strchr(text, '(');
	if (!name || !(number_of(text, STAT_FLAGS) & (PF_IO_WORKER | PF_USER_WORKER)))
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(name, names[i], strlen(names[i])))
			return true;
	return false;
}

/* Whether the thread has its memory still, or that may not be asked. */
static bool has_memory(pid_t pid, pid_t tid)
{
	char path[80], byte;
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/maps", (int)pid, (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno != ENOENT && errno != ESRCH;
	got = read(fd, &byte, 1);
	close(fd);
	return got > 0 || (got < 0 && errno != ESRCH);
}

pid_t fay_process_thread(pid_t pid)
{
	struct dirent *entry;
	pid_t found = 0;
	char path[64];
	DIR *tasks;

	if (has_memory(pid, pid))
		return pid;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	while (tasks && !found && (entry = readdir(tasks))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid > 0 && tid != pid && has_memory(pid, tid))
			found = tid;
	}
	if (tasks)
		closedir(tasks);
	return found;
}

/* Of a process whose first thread has ended: whether other threads go on. */
static bool has_others(pid_t pid)
{
	pid_t thread = fay_process_thread(pid);

	return thread && thread != pid;
}

uint64_t fay_process_start(pid_t pid)
{
	char text[1024];
	const char *at;

	fay_proc_read(pid, "stat", text, sizeof(text));
	at = behind_name(text);
	if (!at || ((at[2] == 'Z' || at[2] == 'X') && !has_others(pid)))
		return 0;
	return number_of(text, STAT_START);
}

uint64_t fay_process_stack_begin(pid_t pid)
{
	char text[1024];

	fay_proc_read(pid, "stat", text, sizeof(text));
	return number_of(text, STAT_STACK);
}

uint64_t fay_process_heap(pid_t pid)
{
	char text[1024];

	fay_proc_read(pid, "stat", text, sizeof(text));
	return number_of(text, STAT_HEAP);
}

uint64_t fay_ticks_now(void)
{
	uint64_t rate = (uint64_t)sysconf(_SC_CLK_TCK);
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * rate + (uint64_t)now.tv_nsec * rate / 1000000000u;
}

bool fay_process_gone(pid_t pid)
{
	return fay_process_thread(pid) == 0;
}

static int open_memory(pid_t pid, pid_t tid, int flags)
{
	char path[80];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/mem", (int)pid, (int)tid);
	return open(path, flags | O_CLOEXEC);
}

/* Of a thread that has no memory any more a read answers 0; of one that has, EIO, where nothing is
 * mapped. */
int fay_process_memory(pid_t pid, int flags)
{
	int memory = open_memory(pid, pid, flags);
	pid_t other;
	char byte;

	if (memory >= 0 ? pread(memory, &byte, 1, 0) != 0 : errno == EACCES || errno == EPERM)
		return memory;
	other = fay_process_thread(pid);
	if (memory >= 0 && (!other || other == pid))
		return memory;
	if (memory >= 0)
		close(memory);
	return open_memory(pid, other ? other : pid, flags);
}

void fay_process_comm(pid_t pid, char comm[64])
{
	if (!fay_proc_read(pid, "comm", comm, 64))
		snprintf(comm, 64, "?");
	comm[strcspn(comm, "\n")] = 0;
}

/* The process id as the target itself sees it: the last of NSpid. */
pid_t fay_inner_id(pid_t pid, pid_t tid)
{
	char path[80], line[256];
	long id = tid;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)tid);
	file = fopen(path, "re");
	if (!file)
		return tid;
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, "NSpid:", 6)) {
			char *last = strrchr(line, '\t');

			if (last)
				id = strtol(last, NULL, 10);
			break;
		}
	fclose(file);
	return (pid_t)id;
}

bool fay_process_auxiliary(pid_t pid, const uint64_t *types, uint64_t *values, size_t count)
{
	Elf64_auxv_t entries[AUXILIARY_MAX + 1];
	size_t there =
		fay_proc_read(pid, "auxv", (char *)entries, sizeof(entries)) / sizeof(entries[0]);

	memset(values, 0, count * sizeof(*values));
	for (size_t i = 0; i < there && entries[i].a_type != AT_NULL; i++)
		for (size_t k = 0; k < count; k++)
			if (entries[i].a_type == types[k])
				values[k] = entries[i].a_un.a_val;
	return there && entries[0].a_type != AT_NULL;
}
