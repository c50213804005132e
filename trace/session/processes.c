/* SPDX-License-Identifier: MIT */
/* Which processes and threads a trace is asked about, and what its budget is. */
#include <stdlib.h>
#include <string.h>

#include "loader/process/process.h"

#include "session.h"

int fay_trace_read_budget(const char *text, double *share)
{
	char *end;
	double percent = strtod(text, &end);
	*share = 0;
	if (!strcmp(text, "none"))
		return FAY_OK;
	if (*end == '%')
		end++;
	if (*end || end == text || !(percent > 0 && percent <= 100))
		return FAY_E_USAGE;
	*share = percent / 100;
	return FAY_OK;
}

int fay_trace_set_budget(struct trace *trace, const char *text)
{
	int code = fay_trace_read_budget(text, &trace->budget);
	trace->unbounded = !code && trace->budget <= 0;
	return code;
}

static int find_threads(struct trace *trace, struct fay_error *error)
{
	for (size_t i = 0; i < trace->tid_count; i++) {
		pid_t pid = fay_process_of_thread(trace->tids[i]);
		if (!pid)
			return fay_error_set(error, FAY_E_REFUSED, "there is no thread %d",
					     (int)trace->tids[i]);
		if (fay_trace_names(trace, pid))
			continue;
		if (trace->pid_count == FAY_TARGETS_MAX)
			return fay_error_set(error, FAY_E_LIMIT, "more than %u processes",
					     FAY_TARGETS_MAX);
		trace->pids[trace->pid_count++] = pid;
	}
	return FAY_OK;
}

static int find_comm(struct trace *trace, const char *comm, struct fay_error *error)
{
	size_t room = FAY_TARGETS_MAX - trace->pid_count;
	size_t found = fay_process_find_comm(comm, trace->pids + trace->pid_count, room);
	if (!found && !trace->wait) {
		char name[FAY_COMM_SIZE];
		const char *nearest = fay_nearest_comm(comm, name);
		bool number = fay_is_number(comm) && fay_process_of_thread(atoi(comm));
		return fay_error_set(error, FAY_E_REFUSED, "no process is named '%s'%s%s%s", comm,
				     number    ? "; -p "
				     : nearest ? "; did you mean '"
					       : "; with --wait one is waited for",
				     number    ? comm
				     : nearest ? nearest
					       : "",
				     number    ? " traces a process by its ID"
				     : nearest ? "'?"
					       : "");
	}
	if (found > room)
		return fay_error_set(error, FAY_E_LIMIT, "more than %u processes", FAY_TARGETS_MAX);
	trace->pid_count += found;
	return FAY_OK;
}

/* Each process once, whatever ways it was named, and by its own number: what looks like a process
 * of a thread's number is one whose events all seem another's. */
static int check_numbers(struct trace *trace, struct fay_error *error)
{
	size_t count = trace->pid_count;
	trace->pid_count = 0;
	for (size_t i = 0; i < count; i++) {
		pid_t pid = trace->pids[i], process = fay_process_of_thread(pid);
		if (process && process != pid)
			return fay_error_set(error, FAY_E_REFUSED,
					     "%d is a thread of process %d: -p %d traces the "
					     "process, --tid %d that thread alone",
					     (int)pid, (int)process, (int)process, (int)pid);
		if (!fay_trace_names(trace, pid))
			trace->pids[trace->pid_count++] = pid;
	}
	return FAY_OK;
}

/* The kernel is asked for numbers and names, whoever has them: a number that nobody has is a
 * mistake, a name may come. */
static int check_kernel(struct trace *trace, struct fay_error *error)
{
	pid_t none;
	char name[FAY_COMM_SIZE];
	const char *nearest;
	for (size_t i = 0; i < trace->tid_count; i++)
		if (!fay_process_of_thread(trace->tids[i]))
			return fay_error_set(error, FAY_E_REFUSED, "there is no thread %d",
					     (int)trace->tids[i]);
	for (size_t i = 0; i < trace->comm_count; i++)
		if (!fay_process_find_comm(trace->comms[i], &none, 0)) {
			nearest = fay_nearest_comm(trace->comms[i], name);
			fprintf(trace->messages,
				"fay: no process is named '%s' yet; processes that have, or get, "
				"that name are traced, threads of others are not%s%s%s\n",
				trace->comms[i], nearest ? "; did you mean '" : "",
				nearest ? nearest : "", nearest ? "'?" : "");
		}
	return check_numbers(trace, error);
}

/* Those in which nothing runs, so that their silence is no riddle. */
static void report_states(const struct trace *trace)
{
	for (size_t i = 0; i < trace->pid_count; i++) {
		int pid = (int)trace->pids[i];
		switch (fay_thread_state(pid, pid)) {
		case 'T':
			fprintf(trace->messages,
				"fay: process %d is stopped by a signal: it does nothing until "
				"`kill -CONT %d`\n",
				pid, pid);
			break;
		case 't':
			fprintf(trace->messages,
				"fay: process %d is stopped by a debugger: it does nothing until "
				"that lets it go on\n",
				pid);
			break;
		case 'Z':
			if (!fay_process_thread(pid))
				fprintf(trace->messages,
					"fay: process %d has exited and waits for its parent (a "
					"zombie): it does nothing any more\n",
					pid);
			break;
		}
	}
}

static int find_processes(struct trace *trace, struct fay_error *error)
{
	int result;
	if (trace->budget &&
	    (fay_trace_is_kernel(trace) || trace->native || fay_trace_is_file(trace)))
		return fay_error_set(error, FAY_E_USAGE, "--budget is for queries about processes");
	if (trace->remote.bus.url) /* agents look for processes themselves */
		return FAY_OK;
	if (fay_trace_is_kernel(trace) && trace->comm_count && trace->follow)
		return fay_error_set(
			error, FAY_E_USAGE,
			"in a query about the kernel, --follow goes with -p or a command: --comm "
			"means all processes of that name, whatever their parent, and no others");
	if (fay_trace_is_kernel(trace)) /* the probe itself compares names */
		return check_kernel(trace, error);
	if (fay_trace_is_file(trace)) {
		if (!trace->command && !trace->pid_count && !trace->comm_count && !trace->follow)
			return FAY_OK;
		return fay_error_set(error, FAY_E_USAGE,
				     "a saved trace needs no process: leave out -p, --comm, "
				     "--follow and the command");
	}
	if ((result = check_numbers(trace, error)))
		return result;
	trace->pid_named = trace->pid_count - trace->selected;
	for (size_t i = 0; i < trace->comm_count; i++)
		if ((result = find_comm(trace, trace->comms[i], error)))
			return result;
	if ((result = check_numbers(trace, error)) || trace->native)
		return result;
	if ((result = find_threads(trace, error)))
		return result;
	if (!trace->command && !trace->pid_count && !(trace->wait && fay_trace_is_by_name(trace)))
		return fay_error_set(error, FAY_E_USAGE,
				     "which process? Give -p PID, --comm NAME, or -- COMMAND");
	return FAY_OK;
}

int fay_trace_find_processes(struct trace *trace, struct fay_error *error)
{
	int result = find_processes(trace, error);
	if (!result && !trace->remote.bus.url)
		report_states(trace);
	return result;
}
