/* SPDX-License-Identifier: MIT */
/*
 * `fay doctor`: what this machine can and cannot do, and why. Wherever possible the thing itself is
 * tried, in a child or on ourselves, because what a kernel allows is decided in many places
 * (capabilities, Yama, lockdown, seccomp, sysctls) and only the attempt knows the sum; the places
 * are then named to say why.
 *
 * Exit code 0 if user processes can be traced natively, 1 if not. Each line: yes or no, what for,
 * why.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/options/options.h"
#include "cli/output/output.h"
#include "fay/bpf.h"
#include "fay/kernel.h"
#include "process/process.h"

#include "doctor.h"
#include "doctor_parts.h"

void fay_doctor_found(struct finding *finding, bool ok, const char *format, ...)
{
	va_list args;
	finding->ok = ok;
	va_start(args, format);
	vsnprintf(finding->why, sizeof(finding->why), format, args);
	va_end(args);
}

/* --- small readers
 * -------------------------------------------------------------------------------------------------
 * */

/* First line of a file; NULL if it cannot be read, errno says why (0: it is empty). */
const char *fay_doctor_first_line(const char *path, char *buffer, size_t size)
{
	FILE *file = fopen(path, "re");
	if (!file)
		return NULL;
	errno = 0;
	char *line = fgets(buffer, (int)size, file);
	int code = errno;
	fclose(file);
	errno = code;
	if (line)
		line[strcspn(line, "\n")] = 0;
	return line;
}

/* The value of "name:" in /proc/self/status. */
static uint64_t status_value(const char *name, int base)
{
	char line[256];
	uint64_t value = 0;
	FILE *file = fopen("/proc/self/status", "re");
	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, name, strlen(name)) && line[strlen(name)] == ':')
			value = strtoull(line + strlen(name) + 1, NULL, base);
	if (file)
		fclose(file);
	return value;
}

bool fay_doctor_has_capability(unsigned capability)
{
	return status_value("CapEff", 16) >> capability & 1;
}

/* --- the processor and this process
 * -------------------------------------------------------------------------------- */

static void check_fsgsbase(struct finding *finding)
{
	if (getauxval(AT_HWCAP2) & 2 /* HWCAP2_FSGSBASE */)
		fay_doctor_found(finding, true,
				 "rdfsbase works in user mode: a thread finds its state without a "
				 "system call");
	else
		fay_doctor_found(finding, false,
				 "the processor or kernel does not enable it (Linux 5.9 and later "
				 "do, unless booted with nofsgsbase)");
}

static void check_tsc(struct finding *finding)
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

static void check_seccomp(struct finding *finding)
{
	uint64_t mode = status_value("Seccomp", 10);
	if (!mode)
		fay_doctor_found(finding, true, "no system-call filter on this process");
	else
		fay_doctor_found(finding, false,
				 "this process runs under a seccomp filter (mode %" PRIu64
				 "), e.g. a container's: system calls that "
				 "tracing needs may be refused",
				 mode);
}

/* --- user processes
 * ------------------------------------------------------------------------------------------------
 * */

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

static void check_ptrace(struct finding *finding)
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

static void check_map_files(struct finding *finding)
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

static void check_memfd(struct finding *finding)
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

static struct fay_leftovers leftovers; /* check_zones(): each is shown behind its line */

static void check_zones(struct finding *finding)
{
	fay_leftovers_find(&leftovers);
	const struct fay_leftovers *all = &leftovers;
	if (all->abandoned)
		fay_doctor_found(finding, false,
				 "a fay that was killed left %zu session%s in PID%s%s: `fay doctor "
				 "--clean` removes them",
				 all->abandoned, all->abandoned == 1 ? "" : "s", all->abandoned_in,
				 all->traced ? " (others are traced at this moment)" : "");
	else if (all->unknown)
		fay_doctor_found(finding, false,
				 "whether the fay that made %zu session%s in PID%s still runs "
				 "cannot be told, it ran in another PID namespace: "
				 "`fay doctor --clean-unknown PID` removes them",
				 all->unknown, all->unknown == 1 ? "" : "s", all->unknown_in);
	else if (all->traced)
		fay_doctor_found(finding, true,
				 "%zu session%s of a fay that runs now, none left behind",
				 all->traced, all->traced == 1 ? "" : "s");
	else
		fay_doctor_found(finding, true,
				 "no process that can be looked into carries fay's code");
}

/* --- the kernel, native
 * -------------------------------------------------------------------------------------------- */

static void check_modules(struct finding *finding)
{
	const char *refused = fay_kernel_modules_refused();
	if (refused)
		fay_doctor_found(finding, false, "%s", refused);
	else if (!fay_doctor_has_capability(CAP_SYS_MODULE))
		fay_doctor_found(finding, false, "CAP_SYS_MODULE is missing");
	else if (!fay_kernel_present())
		fay_doctor_found(finding, false,
				 "modules can be loaded, but fay.ko is not there for this kernel: "
				 "scripts/kernel-module builds it");
	else
		fay_doctor_found(finding, true,
				 access("/dev/fay", F_OK) ? "fay.ko is there; `fay trace` loads it"
							  : "fay.ko is loaded");
}

static void check_ftrace(struct finding *finding)
{
	static const char *const paths[] = {
		"/sys/kernel/tracing/available_filter_functions",
		"/sys/kernel/debug/tracing/available_filter_functions"
	};
	char line[256];
	int code = ENOENT;
	size_t there = 0; /* the path that says more than that nothing is there */
	if (fay_bpf_functions_off()) {
		fay_doctor_found(finding, false, "%s", fay_bpf_functions_off());
		return;
	}
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (fay_doctor_first_line(paths[i], line, sizeof(line))) {
			fay_doctor_found(finding, true, "%s lists the hotpatch points", paths[i]);
			return;
		}
		if (code == ENOENT) {
			code = errno;
			there = i;
		}
	}
	if (code != ENOENT)
		fay_doctor_found(finding, false, "%s: %s", paths[there],
				 code ? strerror(code) : "it is empty");
	else if (access("/sys/kernel/tracing", F_OK))
		fay_doctor_found(finding, false, "this kernel has no tracefs (CONFIG_FTRACE)");
	else if (access("/sys/kernel/tracing/trace", F_OK))
		fay_doctor_found(
			finding, false,
			"tracefs is not mounted (mount -t tracefs tracefs /sys/kernel/tracing)");
	else
		fay_doctor_found(finding, false, "%s: %s (CONFIG_DYNAMIC_FTRACE is not set?)",
				 paths[0], strerror(code));
}

static void check_kallsyms(struct finding *finding)
{
	char line[256];
	if (!fay_doctor_first_line("/proc/kallsyms", line, sizeof(line)))
		fay_doctor_found(finding, false, "/proc/kallsyms: %s", strerror(errno));
	else if (!strtoull(line, NULL, 16))
		fay_doctor_found(
			finding, false,
			"addresses are hidden (kernel.kptr_restrict, or CAP_SYSLOG is missing)");
	else
		fay_doctor_found(finding, true, "/proc/kallsyms shows names and addresses");
}

/* --- perf and programs
 * --------------------------------------------------------------------------------------------- */

static int open_counter(uint32_t type, uint64_t config)
{
	struct perf_event_attr attributes = {
		.size = sizeof(attributes), .type = type, .config = config, .exclude_kernel = 1
	};
	int fd = (int)syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	return fd >= 0 ? fd : -errno;
}

static void check_perf(struct finding *finding)
{
	char line[32];
	const char *paranoid =
		fay_doctor_first_line("/proc/sys/kernel/perf_event_paranoid", line, sizeof(line));
	int fd = open_counter(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);
	if (fd >= 0)
		fay_doctor_found(finding, true, "hardware counters can be opened");
	else if (fd == -ENOENT || fd == -EOPNOTSUPP || fd == -ENODEV)
		fay_doctor_found(finding, false,
				 "no hardware counters (a virtual machine without a PMU); "
				 "kernel.perf_event_paranoid is %s",
				 paranoid ? paranoid : "absent");
	else
		fay_doctor_found(finding, false,
				 "perf_event_open: %s; kernel.perf_event_paranoid is %s",
				 strerror(-fd), paranoid ? paranoid : "absent");
	if (fd >= 0)
		close(fd);
}

static void check_uprobes(struct finding *finding)
{
	char line[32];
	if (fay_doctor_first_line("/sys/bus/event_source/devices/uprobe/type", line, sizeof(line)))
		fay_doctor_found(finding, true,
				 "perf event source uprobe, type %s: for comparison only, fay does "
				 "not use it",
				 line);
	else
		fay_doctor_found(
			finding, false,
			"no uprobe event source (CONFIG_UPROBE_EVENTS); fay does not need it");
}

static void check_clang(struct finding *finding)
{
	static const char *const directories[] = { "/usr/bin", "/usr/local/bin",
						   "/usr/lib/llvm-19/bin" };
	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++) {
		char path[64];
		snprintf(path, sizeof(path), "%s/clang-19", directories[i]);
		if (!access(path, X_OK)) {
			fay_doctor_found(finding, true, "%s: probes can be written in C", path);
			return;
		}
	}
	fay_doctor_found(
		finding, false,
		"clang-19 is not installed (apt-get install clang-19); queries do not need it");
}

/* ------------------------------------------------------------------------------------------ */

#define USAGE "usage: fay doctor [--json] [--clean] [--clean-unknown PID]\n"

static const struct check {
	const char *name, *what;
	bool essential; /* for tracing user processes */
	void (*run)(struct finding *finding);
} checks[] = {
	{ "fsgsbase", "find a thread's state inline", true, check_fsgsbase },
	{ "tsc", "invariant time stamp counter", false, check_tsc },
	{ "seccomp", "unfiltered system calls", false, check_seccomp },
	{ "ptrace", "attach to processes", true, check_ptrace },
	{ "memfd", "sealed, executable memory", true, check_memfd },
	{ "map-files", "read the very file that is mapped", false, check_map_files },
	{ "zones", "no leftovers in processes", false, check_zones },
	{ "kernel-modules", "native kernel probes (fay.ko)", false, check_modules },
	{ "ftrace", "kernel hotpatch points", false, check_ftrace },
	{ "kallsyms", "kernel symbols", false, check_kallsyms },
	{ "btf", "kernel types", false, fay_doctor_btf },
	{ "bpf", "kernel queries through BPF: system calls and tracepoints", false,
	  fay_doctor_bpf },
	{ "fentry", "BPF at kernel function entries", false, fay_doctor_fentry },
	{ "kprobe-multi", "BPF at many kernel functions at once", false, fay_doctor_kprobe_multi },
	{ "perf", "hardware counters", false, check_perf },
	{ "uprobes", "kernel uprobes", false, check_uprobes },
	{ "clang", "fay cc", false, check_clang },
};

static void print_finding(const struct check *check, const struct finding *finding, bool json)
{
	if (!json) {
		printf("%-3s  %-15s %s: %s\n", finding->ok ? "yes" : "no", check->name, check->what,
		       finding->why);
		return;
	}
	printf("{\"type\":\"check\",\"name\":\"%s\",\"what\":\"%s\",\"essential\":%s,\"ok\":%s,"
	       "\"why\":",
	       check->name, check->what, check->essential ? "true" : "false",
	       finding->ok ? "true" : "false");
	fay_json_string(stdout, finding->why, strlen(finding->why));
	printf("}\n");
}

static void print_machine(bool json)
{
	struct utsname name;
	uname(&name);
	if (json)
		printf("{\"type\":\"machine\",\"kernel\":\"%s\",\"architecture\":\"%s\",\"uid\":%u}"
		       "\n",
		       name.release, name.machine, geteuid());
	else
		printf("Linux %s %s, uid %u\n", name.release, name.machine, geteuid());
}

static int run_checks(bool json)
{
	unsigned missing = 0;
	print_machine(json);
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		struct finding finding = { 0 };
		fflush(stdout); /* a check may fork */
		checks[i].run(&finding);
		print_finding(&checks[i], &finding, json);
		if (checks[i].run == check_zones) {
			fay_leftovers_print(&leftovers, json);
			fay_leftovers_deinit(&leftovers);
		}
		missing += checks[i].essential && !finding.ok;
	}
	if (!json)
		printf("%s\n", missing ? "User processes cannot be traced natively here: see the "
					 "lines above."
				       : "User processes can be traced natively here.");
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "fay doctor: cannot write: %s\n", strerror(errno));
		return FAY_E_INTERNAL;
	}
	return missing ? FAY_E_REFUSED : FAY_OK;
}

/* Removes what is left in one process, and what may be. */
static int clean_unknown(const char *number)
{
	struct fay_installed_sessions list;
	struct fay_error error;
	char *end;
	long pid = strtol(number, &end, 10);
	if (*end || pid <= 0 || pid > INT_MAX) {
		fprintf(stderr, "fay doctor: --clean-unknown: '%s' is no process number\n", number);
		return FAY_E_USAGE;
	}
	if (fay_installed_sessions((pid_t)pid, &list, &error))
		return fay_cli_fail(&error);
	fay_installed_sessions_deinit(&list);
	return fay_leftovers_clean_pid((pid_t)pid, true, &error) ? fay_cli_fail(&error) : FAY_OK;
}

int fay_doctor_main(int argc, char **argv)
{
	static const struct option long_options[] = { { "json", no_argument, NULL, 'j' },
						      { "clean", no_argument, NULL, 'c' },
						      { "clean-unknown", required_argument, NULL,
							'u' },
						      { "help", no_argument, NULL, 'h' },
						      { 0 } };
	const char *unknown = NULL;
	bool json = false, clean = false;
	int option;
	optind = 0;
	while ((option = fay_cli_getopt(argc, argv, "h", long_options)) != -1) {
		if (option == 'h') {
			printf(USAGE
			       "  --clean              also removes from all processes what fays "
			       "that were killed left there\n"
			       "  --clean-unknown PID  also removes from this process what fays "
			       "left there of which it cannot be told whether they still run\n");
			return FAY_OK;
		}
		if ((option != 'j' && option != 'c' && option != 'u') ||
		    (option == 'u' && unknown)) {
			fputs(USAGE, stderr);
			return FAY_E_USAGE;
		}
		if (option == 'u')
			unknown = optarg;
		json |= option == 'j';
		clean |= option == 'c';
	}
	if (optind < argc) {
		fprintf(stderr, "fay doctor: takes no argument\n" USAGE);
		return FAY_E_USAGE;
	}
	int code = unknown ? clean_unknown(unknown) : FAY_OK;
	if (code == FAY_E_USAGE)
		return code;
	if (clean && !code)
		code = fay_leftovers_clean();
	int checked = run_checks(json);
	return checked ? checked : code;
}
