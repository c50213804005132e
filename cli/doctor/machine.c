/* SPDX-License-Identifier: MIT */
/* What the processor, the kernel's settings and this process's privileges let user processes be
 * traced by. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doctor_parts.h"

/* --- the processor and this process --- */

void fay_doctor_fsgsbase(struct finding *finding)
{
	if (fay_reads_fs_base())
		fay_doctor_found(finding, true,
				 "rdfsbase works in user mode: a thread finds its state without a "
				 "system call");
	else
		fay_doctor_found(finding, false,
				 "the processor or kernel does not enable it (Linux 5.9 and later "
				 "do, unless booted with nofsgsbase)");
}

void fay_doctor_tsc(struct finding *finding)
{
	char line[8192];
	bool invariant = false;
	FILE *file = fopen("/proc/cpuinfo", "re");
	while (file && !invariant && fgets(line, sizeof(line), file))
		invariant = strstr(line, " constant_tsc") && strstr(line, " nonstop_tsc");
	if (file)
		fclose(file);
	if (invariant)
		fay_doctor_found(finding, true,
				 "constant_tsc and nonstop_tsc: event.cycles is comparable between "
				 "processors");
	else
		fay_doctor_found(finding, false,
				 "constant_tsc or nonstop_tsc is missing in /proc/cpuinfo: "
				 "event.cycles may run at varying speed");
}

void fay_doctor_seccomp(struct finding *finding)
{
	uint64_t mode = fay_doctor_status_value("Seccomp:", 10);
	if (!mode)
		fay_doctor_found(finding, true, "no system-call filter on this process");
	else
		fay_doctor_found(finding, false,
				 "this process runs under a seccomp filter (mode %" PRIu64
				 "), e.g. a container's: system calls that "
				 "tracing needs may be refused",
				 mode);
}

/* --- user processes --- */

/* Seizes, stops and lets go a child: all that attaching needs. Returns 0 or errno. */
static int try_ptrace(void)
{
	int status, code = 0;
	pid_t child = fork();
	if (child < 0)
		return errno;
	if (!child)
		for (;;)
			pause();
	if (ptrace(PTRACE_SEIZE, child, NULL, NULL) || ptrace(PTRACE_INTERRUPT, child, NULL, NULL))
		code = errno;
	else if (waitpid(child, &status, __WALL) == child)
		ptrace(PTRACE_DETACH, child, NULL, NULL);
	kill(child, SIGKILL);
	waitpid(child, &status, __WALL);
	return code;
}

void fay_doctor_ptrace(struct finding *finding)
{
	char line[32];
	const char *yama =
		fay_doctor_first_line("/proc/sys/kernel/yama/ptrace_scope", line, sizeof(line));
	int scope = yama ? atoi(yama) : 0, code = try_ptrace();
	bool capable = fay_doctor_has_capability(CAP_SYS_PTRACE);
	if (code)
		fay_doctor_found(
			finding, false, "attaching even to a child is refused: %s%s",
			strerror(code),
			scope == 3 ? " (kernel.yama.ptrace_scope is 3: nobody may, until reboot)"
				   : "");
	else if (capable)
		fay_doctor_found(finding, true,
				 "CAP_SYS_PTRACE: any process that is not in a more privileged "
				 "user namespace");
	else if (scope >= 1)
		fay_doctor_found(finding, false,
				 "without CAP_SYS_PTRACE and with kernel.yama.ptrace_scope %d only "
				 "processes started by fay itself "
				 "(fay trace ... -- COMMAND)",
				 scope);
	else
		fay_doctor_found(finding, true,
				 "without CAP_SYS_PTRACE: only your own, unprivileged processes");
}

void fay_doctor_map_files(struct finding *finding)
{
	char line[4096], path[128];
	unsigned long start, end;
	int fd = -1, code = ENOENT;
	FILE *maps = fopen("/proc/self/maps", "re");
	bool mapped = false;
	while (maps && !mapped && fgets(line, sizeof(line), maps))
		mapped = strchr(line, '/') && sscanf(line, "%lx-%lx", &start, &end) == 2;
	if (mapped) {
		snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", start, end);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		code = errno;
	}
	if (maps)
		fclose(maps);
	if (fd >= 0) {
		close(fd);
		fay_doctor_found(finding, true,
				 "/proc/PID/map_files can be opened: symbols of deleted and "
				 "upgraded files, too");
	} else {
		fay_doctor_found(finding, false,
				 "/proc/PID/map_files: %s (needs CAP_SYS_ADMIN or "
				 "CAP_CHECKPOINT_RESTORE): programs whose file was "
				 "replaced since they started cannot be traced",
				 strerror(code));
	}
}

void fay_doctor_memfd(struct finding *finding)
{
	int fd = (int)syscall(SYS_memfd_create, "fay-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING),
	    code = errno;
	void *map = MAP_FAILED;
	if (fd < 0) {
		fay_doctor_found(finding, false, "memfd_create: %s", strerror(code));
		return;
	}
	/* Written, sealed, then mapped executable: as the loader does it. */
	bool sealed =
		write(fd, "\xc3", 1) == 1 &&
		!fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	if (sealed)
		map = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	code = errno;
	if (map != MAP_FAILED) {
		munmap(map, 4096);
		fay_doctor_found(finding, true, "sealed memory can be mapped executable");
	} else {
		fay_doctor_found(finding, false,
				 "sealed memory cannot be %s: %s (sysctl vm.memfd_noexec? an LSM's "
				 "execmem rule?)",
				 sealed ? "mapped executable" : "made", strerror(code));
	}
	close(fd);
}
