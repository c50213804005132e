/* SPDX-License-Identifier: MIT */
/*
 * Whether a traced process has executed another program, however short that ran: a counter of the
 * process's threads that is off, and that the kernel switches on at execve (perf_event_open(2),
 * enable_on_exec), has then been on for some time. A second one of a command's children, too, tells
 * of those. Where it is not allowed, a command's name when it ends is compared with the one that it
 * had while it was traced.
 */
#include <linux/perf_event.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session.h"

static int open_counter(pid_t pid, bool children)
{
	struct perf_event_attr attributes = { .type = PERF_TYPE_SOFTWARE,
					      .size = sizeof(attributes),
					      .config = PERF_COUNT_SW_DUMMY,
					      .disabled = 1,
					      .enable_on_exec = 1,
					      .inherit = 1,
					      .inherit_thread = !children,
					      .exclude_kernel = 1,
					      .exclude_hv = 1,
					      .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED };
	return (int)syscall(SYS_perf_event_open, &attributes, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

void fay_trace_executed_watch(struct trace *trace, pid_t pid)
{
	for (size_t i = 0; i < trace->executed_count; i++)
		if (trace->executed[i].pid == pid)
			return;
	if (trace->follow || trace->executed_count == TRACE_EXECUTED_MAX)
		return;
	int children = pid == trace->child ? open_counter(pid, true) : -1;
	trace->executed[trace->executed_count++] = (struct trace_executed){
		.pid = pid, .counter = open_counter(pid, false), .children = children
	};
}

static bool was_on(int counter)
{
	uint64_t values[2]; /* count, ns that it was on */
	return counter >= 0 && read(counter, values, sizeof(values)) == sizeof(values) && values[1];
}

bool fay_trace_children_executed(const struct trace *trace)
{
	for (size_t i = 0; i < trace->executed_count; i++)
		if (was_on(trace->executed[i].children) && !was_on(trace->executed[i].counter))
			return true;
	return false;
}

/* Before the command is waited for for the last time its name can still be read. */
bool fay_trace_reap(struct trace *trace)
{
	siginfo_t ended = { 0 };
	if (!trace->child ||
	    waitid(P_PID, (id_t)trace->child, &ended, WEXITED | WNOHANG | WNOWAIT) || !ended.si_pid)
		return false;
	for (size_t i = 0; i < trace->executed_count; i++)
		if (trace->executed[i].pid == trace->child)
			fay_process_name(trace->child, trace->executed[i].last);
	return waitpid(trace->child, &trace->child_status, WNOHANG) == trace->child;
}

void fay_trace_executed_tick(struct trace *trace)
{
	char comm[FAY_COMM_SIZE];
	for (size_t i = 0; i < trace->executed_count; i++) {
		struct trace_executed *executed = &trace->executed[i];
		/* The name is the traced program's if that is still there afterwards. */
		if (executed->pid == trace->child && executed->counter < 0 &&
		    fay_process_name(executed->pid, comm) &&
		    fay_trace_is_traced(trace, executed->pid))
			memcpy(executed->traced, comm, sizeof(comm));
	}
}

const struct trace_executed *fay_trace_executed(const struct trace *trace, bool *sure)
{
	for (size_t i = 0; i < trace->executed_count; i++) {
		const struct trace_executed *executed = &trace->executed[i];
		*sure = executed->counter >= 0;
		if (*sure ? was_on(executed->counter)
			  : executed->traced[0] && executed->last[0] &&
				    strcmp(executed->traced, executed->last))
			return executed;
	}
	return NULL;
}

void fay_trace_executed_deinit(struct trace *trace)
{
	for (size_t i = 0; i < trace->executed_count; i++) {
		if (trace->executed[i].counter >= 0)
			close(trace->executed[i].counter);
		if (trace->executed[i].children >= 0)
			close(trace->executed[i].children);
	}
}
