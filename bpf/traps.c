/* SPDX-License-Identifier: MIT */
/*
 * A session's traps in programs: perf events of the kernel's uprobe PMU, one for each process and
 * place, that run a program of the session's. The kernel puts an int3 into that process alone, and
 * takes it away when the event is closed, also if fay is killed. What the process
 * executes later is told apart by the cookie: where its stack begins. A forked child, which has the
 * int3 at first, is not counted: the kernel takes it away when the child comes to it.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "session.h"

#define INT3 0xccu
#define SEMAPHORE_SHIFT 32 /* in perf_event_attr.config: format/ref_ctr_offset of the PMU */

/* The PMU's number; negative: the kernel has none. */
static int uprobe_type(void)
{
	int type = -1;
	FILE *file = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
	if (file && fscanf(file, "%d", &type) != 1)
		type = -1;
	if (file)
		fclose(file);
	return type;
}

/* The kernel may have put it off until the code is mapped, as it would be by another name. */
static bool is_set(pid_t pid, const struct fay_trap *trap)
{
	char path[32];
	uint8_t byte = 0;
	uint16_t semaphore = 1;
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	int memory = open(path, O_RDONLY | O_CLOEXEC);
	if (memory < 0)
		return false;
	bool set = pread(memory, &byte, 1, (off_t)trap->address) == 1 && byte == INT3;
	if (set && trap->semaphore)
		set = pread(memory, &semaphore, sizeof(semaphore),
			    (off_t)trap->semaphore_address) == sizeof(semaphore) &&
		      semaphore;
	close(memory);
	return set;
}

/* The descriptor of what holds event and program together, or -errno. */
static int set_trap(pid_t pid, const struct fay_trap *trap, int program)
{
	char path[32];
	struct perf_event_attr attributes = { .size = sizeof(attributes),
					      .type = (uint32_t)uprobe_type(),
					      .config = trap->semaphore << SEMAPHORE_SHIFT,
					      .uprobe_path = (uintptr_t)path,
					      .probe_offset = trap->offset };
	LIBBPF_OPTS(bpf_link_create_opts, options, .perf_event.bpf_cookie = trap->stack);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", trap->file);
	int event =
		(int)syscall(SYS_perf_event_open, &attributes, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (event < 0)
		return -errno;
	int link = bpf_link_create(program, event, BPF_PERF_EVENT, &options);
	close(event); /* the link has it */
	if (link < 0 || is_set(pid, trap))
		return link;
	close(link);
	return -ENXIO;
}

int fay_bpf_session_trap(struct fay_bpf_session *session, uint32_t program, pid_t pid,
			 const struct fay_trap *trap, uint32_t *number, struct fay_error *error)
{
	int *grown = realloc(session->traps, (session->trap_count + 1) * sizeof(*grown));
	if (!grown)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	session->traps = grown;
	if (uprobe_type() < 0)
		return fay_error_set(error, FAY_E_REFUSED, "this kernel has no uprobes");
	int link = set_trap(pid, trap, session->programs[program]);
	if (link == -ENXIO)
		return fay_error_set(error, FAY_E_REFUSED, "the kernel sets no trap there");
	if (link < 0)
		return fay_bpf_refused(link, "setting a trap", error);
	*number = session->trap_count;
	session->traps[session->trap_count++] = link;
	return FAY_OK;
}

void fay_bpf_session_count(struct fay_bpf_session *session, bool counted)
{
	__atomic_store_n(&session->events[0], counted, __ATOMIC_SEQ_CST);
}

void fay_bpf_session_untrap(struct fay_bpf_session *session, uint32_t number)
{
	close(session->traps[number]);
	session->traps[number] = -1;
}

uint64_t fay_bpf_session_events(const struct fay_bpf_session *session, uint32_t program)
{
	return __atomic_load_n(&session->events[1 + program], __ATOMIC_RELAXED);
}

void fay_bpf_traps_close(struct fay_bpf_session *session)
{
	for (uint32_t i = 0; i < session->trap_count; i++)
		if (session->traps[i] >= 0)
			close(session->traps[i]);
	session->trap_count = 0;
}
