/* SPDX-License-Identifier: MIT */
/*
 * `fay doctor`: what this machine can and cannot do, and why. Wherever possible the thing itself is tried, in a child or on ourselves,
 * because what a kernel allows is decided in many places (capabilities, Yama, lockdown, seccomp, sysctls) and only the attempt
 * knows the sum; the places are then named to say why.
 *
 * Exit code 0 if user processes can be traced natively, 1 if not. Each line: yes or no, what for, why.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <linux/btf.h>
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

#include "cli.h"

struct finding {
	bool ok;
	char why[512];
};

static void __attribute__((format(printf, 3, 4))) found(struct finding *finding, bool ok, const char *format, ...)
{
	va_list args;
	finding->ok = ok;
	va_start(args, format);
	vsnprintf(finding->why, sizeof(finding->why), format, args);
	va_end(args);
}

/* --- small readers ------------------------------------------------------------------------------------------------- */

/* First line of a file; NULL if it cannot be read. */
static const char *first_line(const char *path, char *buffer, size_t size)
{
	FILE *file = fopen(path, "re");
	if (!file)
		return NULL;
	char *line = fgets(buffer, (int)size, file);
	fclose(file);
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

static bool have_capability(unsigned capability)
{
	return status_value("CapEff", 16) >> capability & 1;
}

/* --- the processor and this process -------------------------------------------------------------------------------- */

static void check_fsgsbase(struct finding *finding)
{
	if (getauxval(AT_HWCAP2) & 2 /* HWCAP2_FSGSBASE */)
		found(finding, true, "rdfsbase works in user mode: a thread finds its state without a system call");
	else
		found(finding, false, "the processor or kernel does not enable it (Linux 5.9 and later do, unless booted with nofsgsbase)");
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
		found(finding, true, "constant_tsc and nonstop_tsc: event.cycles is comparable between processors");
	else
		found(finding, false, "constant_tsc or nonstop_tsc is missing in /proc/cpuinfo: event.cycles may run at varying speed");
}

static void check_seccomp(struct finding *finding)
{
	uint64_t mode = status_value("Seccomp", 10);
	if (!mode)
		found(finding, true, "no system-call filter on this process");
	else
		found(finding, false, "this process runs under a seccomp filter (mode %" PRIu64 "), e.g. a container's: system calls that "
				      "tracing needs may be refused", mode);
}

/* --- user processes ------------------------------------------------------------------------------------------------ */

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
	const char *yama = first_line("/proc/sys/kernel/yama/ptrace_scope", line, sizeof(line));
	int scope = yama ? atoi(yama) : 0, code = try_ptrace();
	bool capable = have_capability(CAP_SYS_PTRACE);
	if (code)
		found(finding, false, "attaching even to a child is refused: %s%s", strerror(code),
		      scope == 3 ? " (kernel.yama.ptrace_scope is 3: nobody may, until reboot)" : "");
	else if (capable)
		found(finding, true, "CAP_SYS_PTRACE: any process that is not in a more privileged user namespace");
	else if (scope >= 1)
		found(finding, false, "without CAP_SYS_PTRACE and with kernel.yama.ptrace_scope %d only processes started by fay itself "
				      "(fay trace ... -- COMMAND)", scope);
	else
		found(finding, true, "without CAP_SYS_PTRACE: only your own, unprivileged processes");
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
		found(finding, true, "/proc/PID/map_files can be opened: symbols of deleted and upgraded files, too");
	} else {
		found(finding, false, "/proc/PID/map_files: %s (needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE): programs whose file was "
				      "replaced since they started cannot be traced", strerror(code));
	}
}

static void check_memfd(struct finding *finding)
{
	int fd = (int)syscall(SYS_memfd_create, "fay-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING), code = errno;
	void *map = MAP_FAILED;
	if (fd < 0) {
		found(finding, false, "memfd_create: %s", strerror(code));
		return;
	}
	/* Written, sealed, then mapped executable: as the loader does it. */
	bool sealed = write(fd, "\xc3", 1) == 1 && !fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	if (sealed)
		map = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	code = errno;
	if (map != MAP_FAILED) {
		munmap(map, 4096);
		found(finding, true, "sealed memory can be mapped executable");
	} else {
		found(finding, false, "sealed memory cannot be %s: %s (sysctl vm.memfd_noexec? an LSM's execmem rule?)",
		      sealed ? "mapped executable" : "made", strerror(code));
	}
	close(fd);
}

static void check_zones(struct finding *finding)
{
	struct fay_cli_leftovers all;
	fay_cli_leftovers_count(&all);
	if (all.abandoned)
		found(finding, false, "a fay that was killed left %zu session%s in PID%s%s: `fay doctor --clean` removes them", all.abandoned,
		      all.abandoned == 1 ? "" : "s", all.abandoned_in, all.traced ? " (others are traced at this moment)" : "");
	else if (all.traced)
		found(finding, true, "%zu session%s of a fay that runs now, none left behind", all.traced, all.traced == 1 ? "" : "s");
	else
		found(finding, true, "no process that can be looked into carries fay's code");
}

/* --- the kernel, native -------------------------------------------------------------------------------------------- */

static void check_modules(struct finding *finding)
{
	char line[64], lockdown[128];
	const char *disabled = first_line("/proc/sys/kernel/modules_disabled", line, sizeof(line));
	const char *mode = first_line("/sys/kernel/security/lockdown", lockdown, sizeof(lockdown));
	if (access("/proc/modules", F_OK))
		found(finding, false, "this kernel was built without loadable modules (no /proc/modules)");
	else if (disabled && atoi(disabled))
		found(finding, false, "sysctl kernel.modules_disabled is 1, until reboot");
	else if (!have_capability(CAP_SYS_MODULE))
		found(finding, false, "CAP_SYS_MODULE is missing");
	else if (mode && !strstr(mode, "[none]"))
		found(finding, false, "kernel lockdown %s: only signed modules", mode);
	else if (first_line("/sys/module/module/parameters/sig_enforce", line, sizeof(line)) && line[0] == 'Y')
		found(finding, false, "module.sig_enforce is set: only signed modules");
	else
		found(finding, true, "modules can be loaded");
}

static void check_ftrace(struct finding *finding)
{
	static const char *const paths[] = { "/sys/kernel/tracing/available_filter_functions",
					     "/sys/kernel/debug/tracing/available_filter_functions" };
	char line[256];
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (first_line(paths[i], line, sizeof(line))) {
			found(finding, true, "%s lists the hotpatch points", paths[i]);
			return;
		}
	int code = errno;
	if (access("/sys/kernel/tracing", F_OK))
		found(finding, false, "this kernel has no tracefs (CONFIG_FTRACE)");
	else if (access("/sys/kernel/tracing/trace", F_OK))
		found(finding, false, "tracefs is not mounted (mount -t tracefs tracefs /sys/kernel/tracing)");
	else
		found(finding, false, "%s: %s (CONFIG_DYNAMIC_FTRACE is not set?)", paths[0], strerror(code));
}

static void check_kallsyms(struct finding *finding)
{
	char line[256];
	if (!first_line("/proc/kallsyms", line, sizeof(line)))
		found(finding, false, "/proc/kallsyms: %s", strerror(errno));
	else if (!strtoull(line, NULL, 16))
		found(finding, false, "addresses are hidden (kernel.kptr_restrict, or CAP_SYSLOG is missing)");
	else
		found(finding, true, "/proc/kallsyms shows names and addresses");
}

/* --- BPF ----------------------------------------------------------------------------------------------------------- */

static int bpf(int command, union bpf_attr *attributes)
{
	return (int)syscall(SYS_bpf, command, attributes, sizeof(*attributes));
}

/* Loads "return 0". Returns the program's descriptor or -errno. */
static int load_program(uint32_t type, uint32_t expected_attach, uint32_t btf_id)
{
	static const struct bpf_insn code[] = { { .code = BPF_ALU64 | BPF_MOV | BPF_K }, { .code = BPF_JMP | BPF_EXIT } };
	union bpf_attr attributes;
	memset(&attributes, 0, sizeof(attributes));
	attributes.prog_type = type;
	attributes.insns = (uintptr_t)code;
	attributes.insn_cnt = 2;
	attributes.license = (uintptr_t) "Dual MIT/GPL";
	attributes.expected_attach_type = expected_attach;
	attributes.attach_btf_id = btf_id;
	int fd = bpf(BPF_PROG_LOAD, &attributes);
	return fd >= 0 ? fd : -errno;
}

static void check_bpf(struct finding *finding)
{
	char line[32];
	const char *unprivileged = first_line("/proc/sys/kernel/unprivileged_bpf_disabled", line, sizeof(line));
	int fd = load_program(BPF_PROG_TYPE_RAW_TRACEPOINT, 0, 0);
	if (fd >= 0) {
		close(fd);
		found(finding, true, "raw tracepoint programs load");
	} else {
		found(finding, false, "loading a raw tracepoint program: %s (CAP_BPF and CAP_PERFMON: %s; "
				      "kernel.unprivileged_bpf_disabled: %s)",
		      strerror(-fd), have_capability(CAP_BPF) && have_capability(CAP_PERFMON) ? "held" : "missing",
		      unprivileged ? unprivileged : "absent");
	}
}

#define VMLINUX_BTF "/sys/kernel/btf/vmlinux"

static void check_btf(struct finding *finding)
{
	struct stat status;
	if (access(VMLINUX_BTF, R_OK) || stat(VMLINUX_BTF, &status))
		found(finding, false, VMLINUX_BTF ": %s (CONFIG_DEBUG_INFO_BTF)", strerror(errno));
	else
		found(finding, true, VMLINUX_BTF ", %ld KiB: the kernel's types are known", (long)status.st_size / 1024);
}

/* Bytes that follow a BTF type's header. */
static size_t btf_extra(uint32_t info)
{
	uint32_t count = BTF_INFO_VLEN(info);
	switch (BTF_INFO_KIND(info)) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return 4;
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
	case BTF_KIND_DATASEC:
	case BTF_KIND_ENUM64:
		return 12ul * count;
	case BTF_KIND_ENUM:
	case BTF_KIND_FUNC_PROTO:
		return 8ul * count;
	default:
		return 0;
	}
}

/* The type number of a kernel function; 0 unknown. */
static uint32_t btf_function_id(const uint8_t *btf, size_t size, const char *name)
{
	const struct btf_header *header = (const void *)btf;
	if (size < sizeof(*header) || header->hdr_len > size || header->type_len > size - header->hdr_len ||
	    header->str_off > size - header->hdr_len || header->str_len > size - header->hdr_len - header->str_off)
		return 0;
	const uint8_t *types = btf + header->hdr_len + header->type_off;
	const char *strings = (const char *)btf + header->hdr_len + header->str_off;
	uint32_t id = 1;
	for (size_t at = 0; at + sizeof(struct btf_type) <= header->type_len; id++) {
		const struct btf_type *type = (const void *)(types + at);
		if (BTF_INFO_KIND(type->info) == BTF_KIND_FUNC && type->name_off < header->str_len &&
		    !strncmp(strings + type->name_off, name, header->str_len - type->name_off))
			return id;
		at += sizeof(*type) + btf_extra(type->info);
	}
	return 0;
}

static uint32_t kernel_function_id(const char *name)
{
	uint32_t id = 0;
	FILE *file = fopen(VMLINUX_BTF, "re");
	size_t room = 64u << 20, size;
	uint8_t *btf = file ? malloc(room) : NULL;
	if (btf) {
		size = fread(btf, 1, room, file);
		id = btf_function_id(btf, size, name);
	}
	free(btf);
	if (file)
		fclose(file);
	return id;
}

static void check_fentry(struct finding *finding)
{
	uint32_t id = kernel_function_id("vfs_read");
	if (!id) {
		found(finding, false, "no BTF for kernel functions: fentry programs have nothing to attach to");
		return;
	}
	int fd = load_program(BPF_PROG_TYPE_TRACING, BPF_TRACE_FENTRY, id);
	if (fd < 0) {
		found(finding, false, "loading an fentry program on vfs_read: %s%s", strerror(-fd),
		      fd == -EPERM && have_capability(CAP_BPF) ? " (capabilities are held: the kernel lacks hotpatch points or an LSM refuses)" : "");
		return;
	}
	union bpf_attr attributes;
	memset(&attributes, 0, sizeof(attributes));
	attributes.raw_tracepoint.prog_fd = (uint32_t)fd;
	int link = bpf(BPF_RAW_TRACEPOINT_OPEN, &attributes), code = errno;
	if (link >= 0) {
		close(link);
		found(finding, true, "an fentry program was attached to vfs_read and removed");
	} else {
		found(finding, false, "an fentry program loads, but attaching it: %s", strerror(code));
	}
	close(fd);
}

/* --- perf and programs --------------------------------------------------------------------------------------------- */

static int open_counter(uint32_t type, uint64_t config)
{
	struct perf_event_attr attributes = { .size = sizeof(attributes), .type = type, .config = config, .exclude_kernel = 1 };
	int fd = (int)syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	return fd >= 0 ? fd : -errno;
}

static void check_perf(struct finding *finding)
{
	char line[32];
	const char *paranoid = first_line("/proc/sys/kernel/perf_event_paranoid", line, sizeof(line));
	int fd = open_counter(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);
	if (fd >= 0)
		found(finding, true, "hardware counters can be opened");
	else if (fd == -ENOENT || fd == -EOPNOTSUPP || fd == -ENODEV)
		found(finding, false, "no hardware counters (a virtual machine without a PMU); kernel.perf_event_paranoid is %s",
		      paranoid ? paranoid : "absent");
	else
		found(finding, false, "perf_event_open: %s; kernel.perf_event_paranoid is %s", strerror(-fd),
		      paranoid ? paranoid : "absent");
	if (fd >= 0)
		close(fd);
}

static void check_uprobes(struct finding *finding)
{
	char line[32];
	if (first_line("/sys/bus/event_source/devices/uprobe/type", line, sizeof(line)))
		found(finding, true, "perf event source uprobe, type %s: for comparison only, fay does not use it", line);
	else
		found(finding, false, "no uprobe event source (CONFIG_UPROBE_EVENTS); fay does not need it");
}

static void check_clang(struct finding *finding)
{
	static const char *const directories[] = { "/usr/bin", "/usr/local/bin", "/usr/lib/llvm-19/bin" };
	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++) {
		char path[64];
		snprintf(path, sizeof(path), "%s/clang-19", directories[i]);
		if (!access(path, X_OK)) {
			found(finding, true, "%s: probes can be written in C", path);
			return;
		}
	}
	found(finding, false, "clang-19 is not installed (apt-get install clang-19); queries do not need it");
}

/* ------------------------------------------------------------------------------------------------------------------- */

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
	{ "bpf", "kernel queries through BPF", false, check_bpf },
	{ "btf", "kernel types", false, check_btf },
	{ "fentry", "BPF at kernel function entries", false, check_fentry },
	{ "perf", "hardware counters", false, check_perf },
	{ "uprobes", "kernel uprobes", false, check_uprobes },
	{ "clang", "fay cc", false, check_clang },
};

static void print_finding(const struct check *check, const struct finding *finding, bool json)
{
	if (!json) {
		printf("%-3s  %-15s %s: %s\n", finding->ok ? "yes" : "no", check->name, check->what, finding->why);
		return;
	}
	printf("{\"type\":\"check\",\"name\":\"%s\",\"what\":\"%s\",\"essential\":%s,\"ok\":%s,\"why\":", check->name, check->what,
	       check->essential ? "true" : "false", finding->ok ? "true" : "false");
	fay_json_string(stdout, finding->why, strlen(finding->why));
	printf("}\n");
}

static void print_machine(bool json)
{
	struct utsname name;
	uname(&name);
	if (json)
		printf("{\"type\":\"machine\",\"kernel\":\"%s\",\"architecture\":\"%s\",\"uid\":%u}\n", name.release, name.machine, geteuid());
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
		missing += checks[i].essential && !finding.ok;
	}
	if (!json)
		printf("%s\n", missing ? "User processes cannot be traced natively here: see the lines above." :
					 "User processes can be traced natively here.");
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "fay doctor: cannot write: %s\n", strerror(errno));
		return FAY_E_INTERNAL;
	}
	return missing ? FAY_E_REFUSED : FAY_OK;
}

int fay_doctor_main(int argc, char **argv)
{
	static const struct option long_options[] = {
		{ "json", no_argument, NULL, 'j' }, { "clean", no_argument, NULL, 'c' }, { "help", no_argument, NULL, 'h' }, { 0 }
	};
	bool json = false, clean = false;
	int option;
	optind = 0;
	while ((option = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
		if (option == 'h') {
			printf("usage: fay doctor [--json] [--clean]\n"
			       "  --clean   also removes from all processes what fays that were killed left there\n");
			return FAY_OK;
		}
		if (option != 'j' && option != 'c') {
			fprintf(stderr, "usage: fay doctor [--json] [--clean]\n");
			return FAY_E_USAGE;
		}
		json |= option == 'j';
		clean |= option == 'c';
	}
	if (optind < argc) {
		fprintf(stderr, "fay doctor: takes no argument\nusage: fay doctor [--json] [--clean]\n");
		return FAY_E_USAGE;
	}
	int code = clean ? fay_cli_leftovers_clean() : FAY_OK;
	int checked = run_checks(json);
	return checked ? checked : code;
}
