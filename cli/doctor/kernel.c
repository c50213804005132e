/* SPDX-License-Identifier: MIT */
/* What there is for kernel probes, counters and the compiler. */
#include <errno.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fay/bpf.h"
#include "fay/kernel.h"

#include "doctor_parts.h"

/* --- the kernel, native --- */

void fay_doctor_modules(struct finding *finding)
{
	const char *refused = fay_kernel_modules_refused();
	struct fay_kernel_users users;
	if (fay_kernel_users_ask(&users) && users.user)
		fay_doctor_found(finding, true,
				 "fay.ko is loaded, and its policy lets you trace; `fay kernel "
				 "show` says what");
	else if (refused)
		fay_doctor_found(finding, false, "%s", refused);
	else if (!fay_doctor_has_capability(CAP_SYS_MODULE))
		fay_doctor_found(finding, false, "CAP_SYS_MODULE is missing");
	else if (!fay_kernel_present())
		fay_doctor_found(finding, false,
				 "modules can be loaded, but there is no fay.ko for this kernel: "
				 "scripts/kernel-module builds it");
	else
		fay_doctor_found(finding, true,
				 access("/dev/fay", F_OK)
					 ? "fay.ko is available; `fay trace` loads it"
					 : "fay.ko is loaded");
}

void fay_doctor_ftrace(struct finding *finding)
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

void fay_doctor_kallsyms(struct finding *finding)
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

/* --- perf and programs --- */

static int open_counter(uint32_t type, uint64_t config)
{
	struct perf_event_attr attributes = {
		.size = sizeof(attributes), .type = type, .config = config, .exclude_kernel = 1
	};
	int fd = (int)syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	return fd >= 0 ? fd : -errno;
}

void fay_doctor_perf(struct finding *finding)
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

void fay_doctor_uprobes(struct finding *finding)
{
	char line[32];
	if (fay_doctor_first_line("/sys/bus/event_source/devices/uprobe/type", line, sizeof(line)))
		fay_doctor_found(finding, true,
				 "perf event source uprobe, type %s: where no jump fits, fay has "
				 "the kernel trap",
				 line);
	else
		fay_doctor_found(
			finding, false,
			"no uprobe event source (CONFIG_UPROBE_EVENTS): where no jump fits, "
			"functions and markers are left out");
}

void fay_doctor_clang(struct finding *finding)
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
