/* SPDX-License-Identifier: MIT */
/* What /proc says of a thread. */
#include "thread.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

char fay_thread_state(pid_t pid, pid_t tid)
{
	char path[80], text[512], *after;
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	got = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (got <= 0)
		return 0;
	text[got] = 0;
	after = strrchr(text, ')');
	return after && after[1] ? after[2] : 0;
}

void fay_process_comm(pid_t pid, char comm[64])
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	file = fopen(path, "re");
	if (!file || !fgets(comm, 64, file))
		snprintf(comm, 64, "?");
	comm[strcspn(comm, "\n")] = 0;
	if (file)
		fclose(file);
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
