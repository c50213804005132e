/* SPDX-License-Identifier: MIT */
/*
 * `fay list`: the functions that a pattern names, in a process, a file or the running kernel, one a
 * line:
 *
 *     ADDRESS SIZE MODULE!FUNCTION        hexadecimal address, decimal bytes (0: unknown)
 *
 * with --usdt the USDT markers instead, their arguments behind the name; with --lines or --inlined
 * the places of a line of the source, or of the copies of inlined functions; with --syscalls the
 * system calls, with their numbers and as they are declared in C; or with --json one object a line
 * (docs/internals/symbols.md). For a process this shows exactly what `fay trace` would find.
 * Of the kernel, tracefs's list says which functions have a hotpatch point; where it cannot be read
 * /proc/kallsyms names all functions, and that is said.
 */
#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/options/options.h"
#include "cli/output/output.h"
#include "fay/query.h"
#include "loader/suggest/suggest.h"
#include "process/process.h"

#include "commands.h"

struct list_options {
	pid_t pid;
	const char *comm;
	bool kernel, json, usdt, syscalls, tracepoints, examples;
	const char *places; /* "line" or "inlined": places that debug information tells */
	const char *file, *pattern;
};

static void print_usage(FILE *out)
{
	fprintf(out,
		"usage: fay list [--json] [--usdt | --lines | --inlined]\n"
		"                [-p PID | --comm NAME | --kernel | --syscalls | --tracepoints |\n"
		"                 FILE] ['module!glob']\n"
		"       fay list --examples [WORD...]\n"
		"  fay list -p 1234 'libc!*read*'      functions of a process's modules\n"
		"  fay list /usr/bin/redis-server 'call*'\n"
		"  fay list --usdt -p 1234 'postgres!postgresql:query*'   USDT probes\n"
		"  fay list --lines -p 1234 'shop!cart.c:123'   where a line's code begins\n"
		"  fay list --inlined -p 1234 'shop!add'   copies of an inlined function\n"
		"  fay list --kernel 'kernel!vfs_*'\n"
		"  fay list --syscalls 'open*'         system calls and their arguments\n"
		"  fay list --tracepoints 'sched_*'    tracepoints and their arguments\n");
}

static void print_function(const struct list_options *options, const struct fay_function *function)
{
	const struct fay_marker *marker = function->marker;

	if (!options->json) {
		char buffer[1024];
		const char *readable =
			fay_readable_signature(function->name, buffer, sizeof(buffer));
		printf("%016" PRIx64 " %6" PRIu64 " ", function->address, function->size);
		fay_printable_put(stdout, function->module);
		putchar('!');
		fay_printable_put(stdout, function->name);
		if (readable != function->name) {
			fputs("  ", stdout);
			fay_printable_put(stdout, readable);
		}
		if (marker && *marker->arguments) {
			putchar(' ');
			fay_printable_put(stdout, marker->arguments);
		}
		puts(marker && marker->semaphore ? " (semaphore)" : "");
		return;
	}
	bool usdt = marker && !marker->function;
	printf("{\"type\":\"%s\",\"module\":", usdt ? "marker" : marker ? "place" : "function");
	fay_json_string(stdout, function->module, strlen(function->module));
	printf(",\"%s\":", usdt ? "marker" : "function");
	fay_json_string(stdout, function->name, strlen(function->name));
	fay_json_text(stdout, ",\"path\":", function->path);
	if (usdt) {
		fay_json_text(stdout, ",\"arguments\":", marker->arguments);
		printf(",\"semaphore\":%s", marker->semaphore ? "true" : "false");
	}
	/* As text: a JSON number loses bits of an address above 2^53. */
	printf(",\"address\":\"0x%" PRIx64 "\",\"size\":%" PRIu64 "}\n", function->address,
	       function->size);
}

static int finish_output(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return FAY_OK;
	fprintf(stderr, "fay list: cannot write the list: %s\n", strerror(errno));
	return FAY_E_INTERNAL;
}

/* "module!text" as the pattern of places that debug information tells. */
static int places_pattern(const struct list_options *options, char pattern[600],
			  struct fay_error *error)
{
	char module[256], text[256];
	int code = fay_pattern_split(options->pattern, module, text, error);
	if (!code)
		snprintf(pattern, 600, "%s!@%s %s", module, options->places, text);
	return code;
}

static int list_target(const struct list_options *options)
{
	struct fay_target *target;
	struct fay_function_list list;
	struct fay_error error;
	char places[600];
	if (options->places && places_pattern(options, places, &error))
		return fay_cli_fail(&error);
	int code = options->pid ? fay_target_open_pid(options->pid, &target, &error)
				: fay_target_open_file(options->file, &target, &error);
	if (code)
		return fay_cli_fail(&error);
	code = options->usdt     ? fay_target_find_markers(target, options->pattern, &list, &error)
	       : options->places ? fay_target_find_markers(target, places, &list, &error)
				 : fay_target_find(target, options->pattern, &list, &error);
	if (code) {
		fay_suggest(target, &error);
		fay_target_close(target);
		return fay_cli_fail(&error);
	}
	for (size_t i = 0; i < list.count; i++)
		print_function(options, &list.items[i]);
	fay_function_list_deinit(&list);
	fay_target_close(target);
	return finish_output();
}

/* --- the kernel --- */

struct kernel_source {
	const char *path;
	/* lines "name [module]"; else kallsyms' "address type name [module]" */
	bool traceable_only;
};

static const struct kernel_source kernel_sources[] = {
	{ "/sys/kernel/tracing/available_filter_functions", true },
	{ "/sys/kernel/debug/tracing/available_filter_functions", true },
	{ "/proc/kallsyms", false },
};

/* False for what is not a function. */
static bool parse_kernel_line(bool traceable_only, char *line, uint64_t *address, char name[512],
			      char module[256])
{
	char type = 'T', in[256] = "";
	int got;
	*address = 0;
	if (traceable_only)
		got = sscanf(line, "%511s [%255[^]]", name, in) >= 1;
	else
		got = sscanf(line, "%" SCNx64 " %c %511s [%255[^]]", address, &type, name, in) >= 3;
	snprintf(module, 256, "%s", in[0] ? in : "kernel");
	return got && strchr("tTwW", type);
}

static bool kernel_module_matches(const char *pattern, const char *module)
{
	return !fnmatch(pattern, module, 0) ||
	       (!strcmp(module, "kernel") && !fnmatch(pattern, "vmlinux", 0));
}

static int list_kernel_from(const struct list_options *options, const struct kernel_source *source,
			    FILE *file, const char *module_pattern, const char *function_pattern)
{
	char *line = NULL, name[512], module[256];
	size_t room = 0, functions = 0, matches = 0;
	uint64_t address, addresses = 0;
	while (getline(&line, &room, file) > 0) {
		if (!parse_kernel_line(source->traceable_only, line, &address, name, module))
			continue;
		functions++;
		addresses |= address;
		if (!kernel_module_matches(module_pattern, module) ||
		    fnmatch(function_pattern, name, 0))
			continue;
		struct fay_function function = {
			.module = module, .name = name, .path = source->path, .address = address
		};
		print_function(options, &function);
		matches++;
	}
	free(line);
	if (!source->traceable_only && functions && !addresses)
		fprintf(stderr, "fay list: addresses are hidden (kernel.kptr_restrict, or "
				"CAP_SYSLOG is missing)\n");
	if (matches)
		return finish_output();
	fprintf(stderr, "fay: no kernel function matches `%s` among the %zu of %s; try '*%s*'\n",
		options->pattern, functions, source->path, function_pattern);
	return functions ? FAY_E_USAGE : FAY_E_REFUSED;
}

static int list_kernel(const struct list_options *options)
{
	char module[256], function[256];
	struct fay_error error;
	int why = 0;
	if (fay_pattern_split(options->pattern, module, function, &error))
		return fay_cli_fail(&error);
	for (size_t i = 0; i < sizeof(kernel_sources) / sizeof(kernel_sources[0]); i++) {
		const struct kernel_source *source = &kernel_sources[i];
		FILE *file = fopen(source->path, "re");
		if (!file) {
			why = why ? why : errno;
			continue;
		}
		if (!source->traceable_only)
			fprintf(stderr,
				"fay list: %s: %s; using /proc/kallsyms instead, which does not "
				"say which functions can be traced\n",
				kernel_sources[0].path, strerror(why));
		int code = list_kernel_from(options, source, file, module, function);
		fclose(file);
		return code;
	}
	fprintf(stderr,
		"fay: the kernel's functions cannot be listed: neither tracefs (mount -t tracefs "
		"tracefs /sys/kernel/tracing) nor "
		"/proc/kallsyms is readable: %s\n",
		strerror(why));
	return FAY_E_REFUSED;
}

/* --- system calls --- */

static void print_syscall(const struct list_options *options, const struct fay_syscall *call)
{
	const char *arguments = fay_syscall_arguments(call->name);
	if (!options->json) {
		printf("%4u %s(%s)\n", call->number, call->name, arguments ? arguments : "...");
		return;
	}
	printf("{\"type\":\"syscall\",\"syscall\":\"%s\",\"number\":%u,\"arguments\":", call->name,
	       call->number);
	if (arguments)
		fay_json_string(stdout, arguments, strlen(arguments));
	else
		fputs("null", stdout);
	puts("}");
}

static int list_syscalls(const struct list_options *options)
{
	size_t count, matches = 0;
	const struct fay_syscall *calls = fay_syscalls(&count);
	for (size_t i = 0; i < count; i++) {
		if (fnmatch(options->pattern, calls[i].name, 0))
			continue;
		print_syscall(options, &calls[i]);
		matches++;
	}
	if (matches)
		return finish_output();
	fprintf(stderr, "fay: no system call matches `%s`; try '*%s*'\n", options->pattern,
		options->pattern);
	return FAY_E_USAGE;
}

/* --- options --- */

static bool parse_pid(const char *text, pid_t *pid)
{
	char *end;
	errno = 0;
	long number = strtol(text, &end, 10);
	if (errno || *end || end == text || number <= 0 || number > INT_MAX)
		return false;
	*pid = (pid_t)number;
	return true;
}

static int usage_error(const char *message)
{
	fprintf(stderr, "fay list: %s\n", message);
	print_usage(stderr);
	return FAY_E_USAGE;
}

static int parse_operands(struct list_options *options, int count, char **operands)
{
	bool events = options->syscalls || options->tracepoints;
	if ((options->pid != 0) + (options->comm != NULL) + options->kernel + options->syscalls +
		    options->tracepoints >
	    1)
		return usage_error("-p, --comm, --kernel, --syscalls and --tracepoints are "
				   "mutually exclusive");
	if (!options->pid && !options->comm && !options->kernel && !events) {
		if (!count)
			return usage_error(
				"say where to look: -p PID, --comm NAME, --kernel or a FILE");
		if (strchr(operands[0], '!') && count == 1)
			return usage_error("that is a pattern; say where to look: -p PID, --comm "
					   "NAME, --kernel or a FILE");
		options->file = *operands++;
		if (fay_is_number(options->file) && access(options->file, F_OK) &&
		    fay_process_of_thread(atoi(options->file)))
			return usage_error("there is no file of that name; -p PID names a process");
		count--;
	}
	if (count > 1)
		return usage_error("more than one pattern");
	if ((options->kernel || events) && (options->usdt || options->places))
		return usage_error("the kernel has no USDT probes, and no lines");
	if (options->usdt && options->places)
		return usage_error("--usdt, --lines and --inlined are mutually exclusive");
	if (options->places && !count)
		return usage_error("say which: 'module!file.c:123', 'module!function'");
	options->pattern = count ? operands[0] : events ? "*" : "*!*";
	return FAY_OK;
}

static int resolve_comm(struct list_options *options)
{
	pid_t pids[1];
	size_t count = fay_process_find_comm(options->comm, pids, 1);
	if (!count) {
		char name[FAY_COMM_SIZE];
		const char *nearest = fay_nearest_comm(options->comm, name);
		fprintf(stderr, "fay: no process is named `%s`%s%s%s\n", options->comm,
			nearest ? "; did you mean `" : "", nearest ? nearest : "",
			nearest ? "`?" : "");
		return FAY_E_REFUSED;
	}
	if (count > 1)
		fprintf(stderr, "fay list: %zu processes are named `%s`; this is PID %d\n", count,
			options->comm, pids[0]);
	options->pid = pids[0];
	return FAY_OK;
}

int fay_list_main(int argc, char **argv)
{
	static const struct option long_options[] = {
		{ "json", no_argument, NULL, 'j' },        { "usdt", no_argument, NULL, 'u' },
		{ "kernel", no_argument, NULL, 'k' },      { "syscalls", no_argument, NULL, 's' },
		{ "lines", no_argument, NULL, 'l' },       { "inlined", no_argument, NULL, 'i' },
		{ "comm", required_argument, NULL, 'c' },  { "pid", required_argument, NULL, 'p' },
		{ "tracepoints", no_argument, NULL, 't' }, { "examples", no_argument, NULL, 'e' },
		{ "help", no_argument, NULL, 'h' },        { 0 }
	};
	struct list_options options = { 0 };
	int option;
	optind = 0;
	while ((option = fay_cli_getopt(argc, argv, "p:h", long_options)) != -1) {
		switch (option) {
		case 'p':
			if (!parse_pid(optarg, &options.pid))
				return usage_error("-p takes a process ID, a positive number");
			break;
		case 'c': options.comm = optarg; break;
		case 'k': options.kernel = true; break;
		case 's': options.syscalls = true; break;
		case 't': options.tracepoints = true; break;
		case 'e': options.examples = true; break;
		case 'u': options.usdt = true; break;
		case 'l': options.places = "line"; break;
		case 'i': options.places = "inlined"; break;
		case 'j': options.json = true; break;
		case 'h': print_usage(stdout); return FAY_OK;
		default: print_usage(stderr); return FAY_E_USAGE;
		}
	}
	if (options.examples) /* the same as `fay examples` with these words */
		return fay_examples_main(argc - optind + 1, argv + optind - 1);
	int code = parse_operands(&options, argc - optind, argv + optind);
	if (!code && options.comm)
		code = resolve_comm(&options);
	if (code)
		return code;
	if (options.syscalls)
		return list_syscalls(&options);
	if (options.tracepoints) {
		code = fay_list_tracepoints(options.pattern, options.json);
		return code ? code : finish_output();
	}
	return options.kernel ? list_kernel(&options) : list_target(&options);
}
