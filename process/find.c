/* SPDX-License-Identifier: MIT */
/* Processes by name, and what /proc says of them. */
#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "process.h"

/* The line of /proc/PID/status that begins with `key`. */
static bool status_line(pid_t pid, const char *key, char line[128])
{
	char path[64];
	bool found = false;
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	FILE *file = fopen(path, "re");
	while (file && !found && fgets(line, 128, file))
		found = !strncmp(line, key, strlen(key));
	if (file)
		fclose(file);
	return found;
}

static bool has_ended(pid_t pid)
{
	char line[128], state;
	return !status_line(pid, "State:", line) || sscanf(line, "State: %c", &state) != 1 ||
	       state == 'Z' || state == 'X';
}

size_t fay_process_find_comm(const char *comm, pid_t *pids, size_t max)
{
	size_t count = 0;
	DIR *proc = opendir("/proc");
	if (!proc)
		return 0;
	struct dirent *entry;
	while ((entry = readdir(proc))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		char path[300], name[64] = "";
		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		FILE *file = fopen(path, "re");
		if (!file)
			continue;
		if (fgets(name, sizeof(name), file))
			name[strcspn(name, "\n")] = 0;
		fclose(file);
		/* The kernel keeps 15 characters of a name. */
		if (strncmp(name, comm, FAY_COMM_SIZE - 1) || atoi(entry->d_name) == getpid() ||
		    has_ended(atoi(entry->d_name)))
			continue;
		if (count < max)
			pids[count] = atoi(entry->d_name);
		count++;
	}
	closedir(proc);
	return count;
}

pid_t fay_process_of_thread(pid_t tid)
{
	char line[128];
	pid_t pid = 0;
	return status_line(tid, "Tgid:", line) && sscanf(line, "Tgid: %d", &pid) == 1 ? pid : 0;
}

pid_t fay_process_tracer(pid_t pid)
{
	char line[128];
	pid_t tracer = 0;
	return status_line(pid, "TracerPid:", line) && sscanf(line, "TracerPid: %d", &tracer) == 1
		       ? tracer
		       : 0;
}
