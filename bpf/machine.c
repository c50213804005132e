/* SPDX-License-Identifier: MIT */
/*
 * What differs from machine to machine, and a program is told when it is loaded.
 */
#include <bpf/libbpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "fay/bpf.h"

#define MAX_PROCESSORS 4096u
#define INITIAL_PID_NAMESPACE 0xEFFFFFFCu /* its inode number (PROC_PID_INIT_INO) */

static uint64_t read_number(const char *path, uint64_t otherwise)
{
	unsigned long long value;
	FILE *file = fopen(path, "re");
	bool read = file && fscanf(file, "%llu", &value) == 1;
	if (file)
		fclose(file);
	return read ? value : otherwise;
}

uint32_t fay_bpf_processors(void)
{
	/* x86's possible processors are numbered without a gap. */
	int count = libbpf_num_possible_cpus();
	uint32_t processors = (uint32_t)(count > 0 ? count : sysconf(_SC_NPROCESSORS_CONF));
	return processors < MAX_PROCESSORS ? processors : MAX_PROCESSORS;
}

uint32_t fay_bpf_threads(void)
{
	return (uint32_t)read_number("/proc/sys/kernel/pid_max", 4194304);
}

const char *fay_bpf_functions_off(void)
{
	/* Attaching would succeed all the same. */
	return read_number("/proc/sys/kernel/ftrace_enabled", 1)
		       ? NULL
		       : "sysctl kernel.ftrace_enabled is 0, so this kernel's functions call no "
			 "probes";
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void fay_bpf_machine(uint64_t values[FAY_BPF_VALUES])
{
	values[FAY_BPF_VALUE_PROCESSORS] = fay_bpf_processors();
	values[FAY_BPF_VALUE_THREADS] = fay_bpf_threads();
	values[FAY_BPF_VALUE_CLOCK] = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
	values[FAY_BPF_VALUE_BOOT] = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME);
	values[FAY_BPF_VALUE_SELF] = (uint64_t)getpid();
	values[FAY_BPF_VALUE_ENTER_CALLER] = values[FAY_BPF_VALUE_EXIT_CALLER] = 0;
}

uint64_t fay_bpf_address_of(const char *function)
{
	char line[1024], name[512];
	unsigned long long address, found = 0;
	FILE *file = fopen("/proc/kallsyms", "re");
	while (file && !found && fgets(line, sizeof(line), file))
		if (sscanf(line, "%llx %*c %511s", &address, name) == 2 && !strcmp(name, function))
			found = address;
	if (file)
		fclose(file);
	return found;
}

bool fay_bpf_knows_processes(void)
{
	struct stat status;
	return stat("/proc/self/ns/pid", &status) || status.st_ino == INITIAL_PID_NAMESPACE;
}
