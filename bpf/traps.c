/* SPDX-License-Identifier: MIT */
/*
 * A session's traps in programs: the kernel puts an int3 into one process alone, and takes it away
 * when what it was asked with is closed, also if fay is killed. What the process executes later is
 * told apart by the cookie: where its stack begins. A forked child, which has the int3 at first, is
 * not counted: the kernel takes it away when the child comes to it.
 *
 * Traps that run the same program are set by one link, where the kernel has such links for uprobes
 * (Linux 6.6): to take traps away the kernel waits for all processors, once for each link, and for
 * several links at the same time. Else each has a perf event of the kernel's uprobe PMU, and those
 * go one after the other.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "session.h"

#define INT3 0xccu
#define SEMAPHORE_SHIFT 32 /* in perf_event_attr.config: format/ref_ctr_offset of the PMU */
#define CLOSERS 32u        /* threads */

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

bool fay_bpf_traps_together(void)
{
	static int answer; /* 1: no, 2: yes; threads find the same */
	const struct btf *btf;
	int known = __atomic_load_n(&answer, __ATOMIC_RELAXED);
	if (!known && fay_btf_open(NULL, &btf, NULL))
		known = 1;
	else if (!known) {
		known = 1 + (fay_btf_find(btf, BTF_KIND_STRUCT, "bpf_uprobe_multi_link") != 0);
		fay_btf_close(btf);
	}
	__atomic_store_n(&answer, known, __ATOMIC_RELAXED);
	return known == 2;
}

uint32_t fay_bpf_trap_exits(bool followed)
{
	return !followed && fay_bpf_traps_together() ? FAY_TRAP_TOGETHER : 32;
}

/* The kernel may have put it off until the code is mapped, as it would be by another name. */
static bool is_set(int memory, const struct fay_trap *trap)
{
	uint8_t byte = 0;
	uint16_t semaphore = 1;
	bool set = pread(memory, &byte, 1, (off_t)trap->address) == 1 && byte == INT3;
	if (set && trap->semaphore)
		set = pread(memory, &semaphore, sizeof(semaphore),
			    (off_t)trap->semaphore_address) == sizeof(semaphore) &&
		      semaphore;
	return set;
}

static bool are_set(pid_t pid, const struct fay_trap *const *traps, uint32_t count)
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	int memory = open(path, O_RDONLY | O_CLOEXEC);
	bool set = memory >= 0;
	for (uint32_t i = 0; i < count && set; i++)
		set = is_set(memory, traps[i]);
	if (memory >= 0)
		close(memory);
	return set;
}

/* What holds event and program together, or -errno. */
static int set_one(pid_t pid, const struct fay_trap *trap, const char *path, int program)
{
	struct perf_event_attr attributes = { .size = sizeof(attributes),
					      .type = (uint32_t)uprobe_type(),
					      .config = trap->semaphore << SEMAPHORE_SHIFT,
					      .uprobe_path = (uintptr_t)path,
					      .probe_offset = trap->offset };
	LIBBPF_OPTS(bpf_link_create_opts, options, .perf_event.bpf_cookie = trap->stack);
	int event =
		(int)syscall(SYS_perf_event_open, &attributes, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (event < 0)
		return -errno;
	int link = bpf_link_create(program, event, BPF_PERF_EVENT, &options);
	close(event); /* the link has it */
	return link;
}

/* One link for all. */
static int set_together(pid_t pid, const struct fay_trap *const *traps, uint32_t count,
			const char *path, int program)
{
	uint64_t offsets[FAY_TRAP_TOGETHER], semaphores[FAY_TRAP_TOGETHER],
		cookies[FAY_TRAP_TOGETHER];
	/* the kernel's union bpf_attr for BPF_LINK_CREATE, which libbpf does not know yet */
	struct {
		uint32_t program, target, attach, flags;
		uint64_t path, offsets, semaphores, cookies;
		uint32_t count, own_flags, pid, rest;
	} attributes = { .program = (uint32_t)program,
			 .attach = FAY_BPF_TRACE_UPROBE_MULTI,
			 .path = (uintptr_t)path,
			 .offsets = (uintptr_t)offsets,
			 .semaphores = (uintptr_t)semaphores,
			 .cookies = (uintptr_t)cookies,
			 .count = count,
			 .pid = (uint32_t)pid };
	for (uint32_t i = 0; i < count; i++) {
		offsets[i] = traps[i]->offset;
		semaphores[i] = traps[i]->semaphore;
		cookies[i] = traps[i]->stack;
	}
	int link = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &attributes, sizeof(attributes));
	return link < 0 ? -errno : link;
}

/* Descriptors in links[]; -1 where another one's holds the trap. Negative: -errno. */
static int set_traps(const struct fay_bpf_session *session, pid_t pid,
		     const struct fay_trap *const *traps, uint32_t count, int program, int *links)
{
	char path[32];
	int code = 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", traps[0]->file);
	for (uint32_t i = 0; i < count; i++)
		links[i] = -1;
	if (session->together)
		return links[0] = set_together(pid, traps, count, path, program);
	for (uint32_t i = 0; i < count && code >= 0; i++)
		code = links[i] = set_one(pid, traps[i], path, program);
	return code;
}

/* --- taking away --- */

struct closing {
	int *links;
	uint32_t count, next;
};

static void *close_some(void *context)
{
	struct closing *closing = context;
	uint32_t i;
	while ((i = __atomic_fetch_add(&closing->next, 1, __ATOMIC_RELAXED)) < closing->count)
		if (closing->links[i] >= 0) {
			close(closing->links[i]);
			closing->links[i] = -1;
		}
	return NULL;
}

/* Each waits in the kernel, and all for the same. */
static void close_all(int *links, uint32_t count)
{
	struct closing closing = { .links = links, .count = count };
	pthread_t threads[CLOSERS];
	uint32_t started = 0;
	while (started < CLOSERS && started + 1 < count &&
	       !pthread_create(&threads[started], NULL, close_some, &closing))
		started++;
	close_some(&closing);
	while (started)
		pthread_join(threads[--started], NULL);
}

int fay_bpf_session_trap(struct fay_bpf_session *session, uint32_t program, pid_t pid,
			 const struct fay_trap *const *traps, uint32_t count, uint32_t *first,
			 struct fay_error *error)
{
	int *grown =
		count && count <= FAY_TRAP_TOGETHER
			? realloc(session->traps, (session->trap_count + count) * sizeof(*grown))
			: NULL;
	if (!grown)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	session->traps = grown;
	if (!session->together && uprobe_type() < 0)
		return fay_error_set(error, FAY_E_REFUSED, "this kernel has no uprobes");
	int *links = grown + session->trap_count;
	int code = set_traps(session, pid, traps, count, session->programs[program], links);
	if (code >= 0 && are_set(pid, traps, count)) {
		*first = session->trap_count;
		session->trap_count += count;
		return FAY_OK;
	}
	close_all(links, count);
	if (code >= 0)
		return fay_error_set(error, FAY_E_REFUSED, "the kernel sets no trap there");
	return fay_bpf_refused(code, "setting a trap", error);
}

void fay_bpf_session_count(struct fay_bpf_session *session, bool counted)
{
	__atomic_store_n(&session->events[0], counted, __ATOMIC_SEQ_CST);
}

void fay_bpf_session_untrap(struct fay_bpf_session *session, const uint32_t *numbers, size_t count)
{
	int *links = malloc((count + 1) * sizeof(*links));
	uint32_t found = 0;
	for (size_t i = 0; i < count; i++) {
		int *link = &session->traps[numbers[i]];
		if (*link < 0)
			continue;
		if (links)
			links[found++] = *link;
		else
			close(*link);
		*link = -1;
	}
	if (links)
		close_all(links, found);
	free(links);
}

uint64_t fay_bpf_session_events(const struct fay_bpf_session *session, uint32_t program)
{
	return __atomic_load_n(&session->events[1 + program], __ATOMIC_RELAXED);
}

void fay_bpf_traps_close(struct fay_bpf_session *session)
{
	close_all(session->traps, session->trap_count);
	session->trap_count = 0;
}
