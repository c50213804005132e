/* SPDX-License-Identifier: MIT */
/* Small things that several subcommands need. */
#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "process.h"

bool fay_cli_duration(const char *text, uint64_t *nanoseconds)
{
	static const struct {
		const char *unit;
		double factor;
	} units[] = { { "", 1e9 }, { "s", 1e9 },      { "ms", 1e6 },   { "us", 1e3 },
		      { "ns", 1 }, { "m", 60 * 1e9 }, { "min", 60e9 }, { "h", 3600e9 } };
	char *end;
	if (!isdigit((unsigned char)text[0]) && text[0] != '.')
		return false;
	double number = strtod(text, &end);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].unit))
			continue;
		double value = number * units[i].factor;
		if (!(value >= 0 && value < 9e18))
			return false;
		*nanoseconds = (uint64_t)value;
		return true;
	}
	return false;
}

bool fay_cli_size(const char *text, uint64_t *bytes)
{
	static const struct {
		const char *unit;
		double factor;
	} units[] = { { "KB", 1e3 },   { "kB", 1e3 },      { "MB", 1e6 },        { "GB", 1e9 },
		      { "KiB", 1024 }, { "MiB", 1048576 }, { "GiB", 1073741824 } };
	char *end;
	if (!isdigit((unsigned char)text[0]))
		return false;
	double number = strtod(text, &end);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		double value = number * units[i].factor;
		if (strcmp(end, units[i].unit) || !(value >= 1 && value < 9e18))
			continue;
		*bytes = (uint64_t)value;
		return true;
	}
	return false;
}

int fay_cli_fail(const struct fay_error *error)
{
	fprintf(stderr, "fay: %s\n", error->message);
	return error->code;
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t fay_cli_monotonic(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t fay_cli_boottime(void)
{
	return clock_ns(CLOCK_BOOTTIME);
}

uint64_t fay_cli_realtime(void)
{
	return clock_ns(CLOCK_REALTIME);
}

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

size_t fay_cli_find_comm(const char *comm, pid_t *pids, size_t max)
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

pid_t fay_cli_process_of(pid_t tid)
{
	char line[128];
	pid_t pid = 0;
	return status_line(tid, "Tgid:", line) && sscanf(line, "Tgid: %d", &pid) == 1 ? pid : 0;
}

pid_t fay_cli_tracer_of(pid_t pid)
{
	char line[128];
	pid_t tracer = 0;
	return status_line(pid, "TracerPid:", line) && sscanf(line, "TracerPid: %d", &tracer) == 1
		       ? tracer
		       : 0;
}
