/* SPDX-License-Identifier: MIT */
/* Processes by name, and what /proc says of them. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "process.h"

bool fay_process_status(pid_t pid, const char *key, char line[128])
{
	char path[64];
	bool found = false;
	snprintf(path, sizeof(path), pid ? "/proc/%d/status" : "/proc/self/status", pid);
	FILE *file = fopen(path, "re");
	while (file && !found && fgets(line, 128, file))
		found = !strncmp(line, key, strlen(key));
	if (file)
		fclose(file);
	return found;
}

bool fay_process_has_ended(pid_t pid)
{
	char line[128], state;
	return !fay_process_status(pid, "State:", line) || sscanf(line, "State: %c", &state) != 1 ||
	       state == 'Z' || state == 'X';
}

bool fay_process_next(DIR *proc, pid_t *pid)
{
	struct dirent *entry;
	while (proc && (entry = readdir(proc)))
		if (isdigit((unsigned char)entry->d_name[0])) {
			*pid = (pid_t)strtol(entry->d_name, NULL, 10);
			return true;
		}
	return false;
}

bool fay_process_name(pid_t pid, char comm[FAY_COMM_SIZE])
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	FILE *file = fopen(path, "re");
	bool is = file && fgets(comm, FAY_COMM_SIZE, file);
	if (file)
		fclose(file);
	if (is)
		comm[strcspn(comm, "\n")] = 0;
	return is;
}

size_t fay_process_find(bool (*fits)(const void *context, pid_t pid), const void *context,
			pid_t *pids, size_t max)
{
	size_t count = 0;
	pid_t pid;
	DIR *proc = opendir("/proc");
	while (fay_process_next(proc, &pid)) {
		if (!fits(context, pid) || fay_process_has_ended(pid))
			continue;
		if (count < max)
			pids[count] = pid;
		count++;
	}
	if (proc)
		closedir(proc);
	return count;
}

static bool is_child(const void *parent, pid_t pid)
{
	char line[128];
	return fay_process_status(pid, "PPid:", line) &&
	       strtol(line + 5, NULL, 10) == *(const pid_t *)parent && pid != getpid();
}

size_t fay_process_children(pid_t parent)
{
	return fay_process_find(is_child, &parent, NULL, 0);
}

/* The kernel keeps 15 characters of a name. */
static bool is_called(const void *comm, pid_t pid)
{
	char name[FAY_COMM_SIZE];
	return fay_process_name(pid, name) && !strncmp(name, comm, FAY_COMM_SIZE - 1) &&
	       pid != getpid();
}

size_t fay_process_find_comm(const char *comm, pid_t *pids, size_t max)
{
	return fay_process_find(is_called, comm, pids, max);
}

pid_t fay_process_of_thread(pid_t tid)
{
	char line[128];
	pid_t pid = 0;
	return fay_process_status(tid, "Tgid:", line) && sscanf(line, "Tgid: %d", &pid) == 1 ? pid
											     : 0;
}

pid_t fay_process_tracer(pid_t pid)
{
	char line[128];
	pid_t tracer = 0;
	return fay_process_status(pid, "TracerPid:", line) &&
			       sscanf(line, "TracerPid: %d", &tracer) == 1
		       ? tracer
		       : 0;
}
