/* SPDX-License-Identifier: MIT */
/*
 * Running a program that was just executed to its entry point (AT_ENTRY of its auxiliary vector):
 * the dynamic loader has mapped and relocated all libraries then, and the program's own code has
 * not run. Constructors of libraries have: they run inside the dynamic loader.
 */
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "process.h"

/* The auxiliary vector of a program of 32 bits has other words. */
static bool is_32_bit(pid_t pid)
{
	char path[64];
	unsigned char head[EI_CLASS + 1] = { 0 };
	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	FILE *file = fopen(path, "re");
	bool is = file && fread(head, sizeof(head), 1, file) == 1 && head[EI_CLASS] == ELFCLASS32;
	if (file)
		fclose(file);
	return is;
}

static uint64_t read_entry(pid_t pid)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/auxv", pid);
	FILE *file = fopen(path, "re");
	if (!file)
		return 0;
	Elf64_auxv_t entry;
	uint64_t address = 0;
	while (fread(&entry, sizeof(entry), 1, file) == 1 && entry.a_type != AT_NULL) {
		if (entry.a_type == AT_ENTRY)
			address = entry.a_un.a_val;
	}
	fclose(file);
	return address;
}

/* Waits for a stop. false: the process has ended, which is left to be waited for. */
static bool wait_for_stop(pid_t pid, int *status)
{
	siginfo_t next;
	return !waitid(P_PID, (id_t)pid, &next, WEXITED | WSTOPPED | WNOWAIT | __WALL) &&
	       next.si_code != CLD_EXITED && next.si_code != CLD_KILLED &&
	       next.si_code != CLD_DUMPED && waitpid(pid, status, __WALL) == pid &&
	       WIFSTOPPED(*status);
}

/* Runs the stopped tracee to `address`. Signals on the way are delivered. */
static int run_to(pid_t pid, uint64_t address, struct fay_error *error)
{
	errno = 0;
	long word = ptrace(PTRACE_PEEKTEXT, pid, address, 0);
	if (word == -1 && errno)
		return fay_error_set(error, FAY_E_INTERNAL, "cannot read the entry point: %s",
				     strerror(errno));
	if (ptrace(PTRACE_POKETEXT, pid, address, (word & ~0xffL) | 0xcc))
		return fay_error_set(error, FAY_E_INTERNAL, "cannot set a breakpoint: %s",
				     strerror(errno));
	long signal = 0;
	for (;;) {
		int status;
		if (ptrace(PTRACE_CONT, pid, 0, signal))
			return fay_error_set(error, FAY_E_INTERNAL, "the command vanished: %s",
					     strerror(errno));
		if (!wait_for_stop(pid, &status))
			return fay_error_set(error, FAY_E_REFUSED,
					     "the command ended before its first instruction");
		struct user_regs_struct regs;
		ptrace(PTRACE_GETREGS, pid, 0, &regs);
		/* ptrace's own events are no signals */
		signal = status >> 16 ? 0 : WSTOPSIG(status);
		if (signal != SIGTRAP || regs.rip != address + 1)
			continue;
		regs.rip = address;
		if (ptrace(PTRACE_POKETEXT, pid, address, word) ||
		    ptrace(PTRACE_SETREGS, pid, 0, &regs))
			return fay_error_set(error, FAY_E_INTERNAL,
					     "cannot restore the entry point: %s", strerror(errno));
		return FAY_OK;
	}
}

int fay_process_run_to_entry(pid_t pid, struct fay_error *error)
{
	if (is_32_bit(pid))
		return fay_error_set(error, FAY_E_REFUSED,
				     "a 32-bit program; only x86-64 is supported");
	return run_to(pid, read_entry(pid), error);
}
