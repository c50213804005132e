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
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cli/options/options.h"
#include "cli/output/output.h"
#include "process/process.h"

#include "doctor_parts.h"

/* --- small readers --- */

/* --- what traces left in processes --- */

static struct fay_leftovers leftovers; /* check_zones(): each is shown behind its line */

static void check_zones(struct finding *finding)
{
	fay_leftovers_find(&leftovers);
	const struct fay_leftovers *all = &leftovers;
	if (all->abandoned)
		fay_doctor_found(finding, false,
				 "a killed fay left %zu session%s in PID%s%s: `fay doctor --clean` "
				 "removes them",
				 all->abandoned, all->abandoned == 1 ? "" : "s", all->abandoned_in,
				 all->traced ? " (others are being traced now)" : "");
	else if (all->unknown)
		fay_doctor_found(finding, false,
				 "the fay that made %zu session%s in PID%s ran in another PID "
				 "namespace, so it cannot be told whether it still runs: `fay "
				 "doctor --clean-unknown PID` removes them",
				 all->unknown, all->unknown == 1 ? "" : "s", all->unknown_in);
	else if (all->traced)
		fay_doctor_found(finding, true, "%zu session%s of running traces, none left behind",
				 all->traced, all->traced == 1 ? "" : "s");
	else
		fay_doctor_found(finding, true,
				 "no process that can be inspected contains code of fay");
}

/* --- the command --- */

#define USAGE "usage: fay doctor [--json] [--clean] [--clean-unknown PID]\n"

static const struct check {
	const char *name, *what;
	bool essential; /* for tracing user processes */
	void (*run)(struct finding *finding);
} checks[] = {
	{ "fsgsbase", "find a thread's state inline", true, fay_doctor_fsgsbase },
	{ "tsc", "invariant time stamp counter", false, fay_doctor_tsc },
	{ "seccomp", "unfiltered system calls", false, fay_doctor_seccomp },
	{ "ptrace", "attach to processes", true, fay_doctor_ptrace },
	{ "memfd", "sealed, executable memory", true, fay_doctor_memfd },
	{ "map-files", "read the very file that is mapped", false, fay_doctor_map_files },
	{ "zones", "no leftovers in processes", false, check_zones },
	{ "kernel-modules", "native kernel probes (fay.ko)", false, fay_doctor_modules },
	{ "ftrace", "kernel hotpatch points", false, fay_doctor_ftrace },
	{ "kallsyms", "kernel symbols", false, fay_doctor_kallsyms },
	{ "btf", "kernel types", false, fay_doctor_btf },
	{ "bpf", "kernel queries through BPF: system calls and tracepoints", false,
	  fay_doctor_bpf },
	{ "fentry", "BPF at kernel function entries", false, fay_doctor_fentry },
	{ "kprobe-multi", "BPF at many kernel functions at once", false, fay_doctor_kprobe_multi },
	{ "perf", "hardware counters", false, fay_doctor_perf },
	{ "uprobes", "kernel uprobes", false, fay_doctor_uprobes },
	{ "clang", "fay cc", false, fay_doctor_clang },
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
			fay_doctor_leftovers(&leftovers, json);
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
		fprintf(stderr, "fay doctor: --clean-unknown: '%s' is not a process ID\n", number);
		return FAY_E_USAGE;
	}
	if (fay_installed_sessions((pid_t)pid, &list, &error))
		return fay_cli_fail(&error);
	fay_installed_sessions_deinit(&list);
	return fay_leftovers_clean_pid((pid_t)pid, true, stderr, &error) ? fay_cli_fail(&error)
									 : FAY_OK;
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
			printf(USAGE "  --clean              also remove the sessions that killed "
				     "fay processes left,\n"
				     "                       in all processes\n"
				     "  --clean-unknown PID  also remove the sessions in PID whose "
				     "fay may or may not\n"
				     "                       still be running\n");
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
		fprintf(stderr, "fay doctor: takes no arguments\n" USAGE);
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
