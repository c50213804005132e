/* SPDX-License-Identifier: MIT */
/*
 * The file whose debug information tells the names and types of a traced function's arguments: the
 * one that the traced process has mapped. A command that is not started yet, and `fay explain`
 * without a process, have the one that would be run.
 */
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/suggest/suggest.h"
#include "process/process.h"

#include "functions.h"

/* The first function that matches, of an open target. */
static int find_in(struct fay_function_search *functions, struct fay_target *target,
		   const char *pattern, struct fay_query_function *function,
		   struct fay_error *error)
{
	struct fay_function_list list;
	int code = fay_target_find_code(target, pattern, &list, error);
	if (code) {
		fay_suggest(target, error);
		return code;
	}
	if (!fay_target_file_of(target, &list.items[0], &functions->found.file) ||
	    (function->fd = dup(functions->found.file.fd)) < 0) {
		code = fay_error_set(error, FAY_E_INTERNAL, "cannot read the file that `%s` is in",
				     pattern);
	} else {
		snprintf(function->path, sizeof(function->path), "%s", functions->found.file.path);
		snprintf(function->name, sizeof(function->name), "%s", list.items[0].name);
		snprintf(functions->found.pattern, sizeof(functions->found.pattern), "%s", pattern);
		snprintf(functions->path, sizeof(functions->path), "%s",
			 functions->found.file.path);
		function->address = functions->found.file.address;
		function->count = list.count;
	}
	fay_function_list_deinit(&list);
	return code;
}

static int find_in_process(struct fay_function_search *functions, pid_t pid, const char *pattern,
			   struct fay_query_function *function, struct fay_error *error)
{
	struct fay_target *target;
	int code = fay_target_open_pid(pid, &target, error);
	if (code)
		return code;
	code = find_in(functions, target, pattern, function, error);
	fay_target_close(target);
	return code;
}

static int find_in_file(struct fay_function_search *functions, const char *path,
			const char *pattern, struct fay_query_function *function,
			struct fay_error *error)
{
	struct fay_target *target;
	int code = fay_target_open_file(path, &target, error);
	if (code)
		return code;
	code = find_in(functions, target, pattern, function, error);
	fay_target_close(target);
	return code;
}

static int find_known(struct fay_function_search *functions, const char *pattern,
		      struct fay_query_function *function, struct fay_error *error)
{
	const struct fay_function_search *known = functions->known;
	bool found = !find_in_file(functions, known->path, pattern, function, error);
	if (found && fay_same_build(&functions->found.file, &known->found.file))
		return FAY_OK;
	if (found)
		close(function->fd);
	function->fd = -1;
	return fay_error_set(error, FAY_E_REFUSED,
			     "the query's names come from %s as it was when the query was started, "
			     "and %s: attach on a machine that has the same build",
			     known->path,
			     found ? "this machine has another build" : "it cannot be read here");
}

/* As execvp() finds it. */
static bool find_program(const char *name, char path[4096])
{
	const char *folders = getenv("PATH");
	if (strchr(name, '/'))
		return snprintf(path, 4096, "%s", name) < 4096;
	for (folders = folders ? folders : "/bin:/usr/bin"; *folders;) {
		size_t length = strcspn(folders, ":");
		if (snprintf(path, 4096, "%.*s/%s", (int)length, length ? folders : ".", name) <
			    4096 &&
		    !access(path, X_OK))
			return true;
		folders += length + (folders[length] == ':');
	}
	return false;
}

/* A library by the name that a pattern calls it by. */
static int find_in_libraries(struct fay_function_search *functions, const char *module,
			     const char *pattern, struct fay_query_function *function,
			     struct fay_error *error)
{
	static const char *const folders[] = { "/lib/x86_64-linux-gnu", "/usr/local/lib", "/lib64",
					       "/usr/lib" };
	int code = fay_error_set(error, FAY_E_REFUSED,
				 "which file `%s` is in depends on the process: give -p PID, "
				 "--comm NAME, or -- COMMAND",
				 module);
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		char name[512];
		glob_t files;
		snprintf(name, sizeof(name), "%s/%s.so*", folders[i], module);
		if (glob(name, 0, NULL, &files))
			continue;
		struct fay_error unused;
		for (size_t k = 0; k < files.gl_pathc && code; k++)
			if (!find_in_file(functions, files.gl_pathv[k], pattern, function, &unused))
				code = FAY_OK;
		globfree(&files);
	}
	return code;
}

size_t fay_search_processes(const struct fay_function_search *functions,
			    const struct fay_query_process *process,
			    pid_t pids[FAY_SEARCH_PROCESSES_MAX])
{
	size_t count = 0;
	if (process && process->pid)
		pids[count++] = process->pid;
	if (process && process->comm) {
		count = fay_process_find_comm(process->comm, pids, FAY_SEARCH_PROCESSES_MAX);
		count = count < FAY_SEARCH_PROCESSES_MAX ? count : FAY_SEARCH_PROCESSES_MAX;
	}
	for (size_t i = 0; i < functions->pid_count && count < FAY_SEARCH_PROCESSES_MAX; i++)
		pids[count++] = functions->pids[i];
	for (size_t i = 0; i < functions->comm_count && count < FAY_SEARCH_PROCESSES_MAX; i++) {
		size_t found = fay_process_find_comm(functions->comms[i], pids + count,
						     FAY_SEARCH_PROCESSES_MAX - count);
		count = found < FAY_SEARCH_PROCESSES_MAX - count ? count + found
								 : FAY_SEARCH_PROCESSES_MAX;
	}
	return count;
}

int fay_search_function(void *context, const char *pattern, struct fay_query_function *function,
			struct fay_error *error)
{
	struct fay_function_search *functions = context;
	pid_t pids[FAY_SEARCH_PROCESSES_MAX];
	char module[256], name[256], path[4096];
	struct fay_error unused;
	if (functions->known)
		return find_known(functions, pattern, function, error);
	size_t count = fay_search_processes(functions, function->process, pids);
	for (size_t i = 0; i < count; i++)
		if (!find_in_process(functions, pids[i], pattern, function, error))
			return FAY_OK;
	if (count)
		return (int)error->code;
	if (fay_pattern_split(pattern, module, name, error))
		return error->code;
	bool program = find_program(functions->command ? functions->command[0] : module, path);
	if (program && !find_in_file(functions, path, pattern, function, error))
		return FAY_OK;
	/* If there is no such library either, what was wrong with the program is said. */
	return find_in_libraries(functions, module, pattern, function, program ? &unused : error)
		       ? (int)error->code
		       : FAY_OK;
}
