/* SPDX-License-Identifier: MIT */
/*
 * A generated object in the kernel: its maps, its programs, their attachment.
 *
 * The memory that the programs aggregate in is a BPF array of one element, mapped into this
 * process, that holds a slot of fay/shm.h for each processor; a page of ours in front of it is the
 * control page. So the aggregator reads it as it reads a traced process's memory. One more slot,
 * behind those of the processors, is written by this process only: losses that the kernel counts by
 * itself.
 *
 * Ordering guarantees: a slot has one writer at a time, the program that runs on its processor
 * (programs of tracepoints run with preemption disabled; one that would interrupt another on the
 * same processor is kept out by the slot's busy flag, or by the kernel's own guard of a program
 * against itself). Rows in the ring come in the order of their reservation.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/membarrier.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "session.h"

void fay_bpf_object_deinit(struct fay_bpf_object *object)
{
	for (uint32_t i = 0; i < object->program_count; i++)
		free(object->programs[i].code);
	free(object->programs);
	free(object->names);
	memset(object, 0, sizeof(*object));
}

int fay_bpf_refused(int code, const char *what, struct fay_error *error)
{
	if (code == -EPERM)
		return fay_error_set(error, FAY_E_REFUSED,
				     "%s: not permitted; BPF needs root, or CAP_BPF and "
				     "CAP_PERFMON (`fay doctor` says more)",
				     what);
	if (code == -ENOMEM || code == -E2BIG)
		return fay_error_set(error, FAY_E_LIMIT, "%s: %s", what, strerror(-code));
	return fay_error_set(error, FAY_E_REFUSED, "%s: %s", what, strerror(-code));
}

static void free_tables(struct fay_bpf_session *session)
{
	free(session->programs);
	free(session->links);
	free(session->traps);
	free(session->refusals);
	free(session->clocks);
	free(session->ticked);
	free(session);
}

/* Nothing is loaded yet; NULL: out of memory. */
static struct fay_bpf_session *make(const struct fay_bpf_object *object)
{
	uint64_t processors = object->values[FAY_BPF_VALUE_PROCESSORS];
	struct fay_bpf_session *session = calloc(1, sizeof(*session));
	if (!session)
		return NULL;
	session->object = object;
	session->together = object->maps >> FAY_BPF_EVENTS & 1 && fay_bpf_traps_together();
	session->programs = malloc((object->program_count + 1) * sizeof(int));
	session->links = malloc((object->program_count + 1) * sizeof(int));
	session->refusals = calloc(object->program_count + 1, sizeof(int));
	session->clocks = malloc((processors + 1) * sizeof(int));
	session->ticked = calloc(processors + 1, sizeof(*session->ticked));
	if (!session->programs || !session->links || !session->refusals || !session->clocks ||
	    !session->ticked) {
		free_tables(session);
		return NULL;
	}
	for (int i = 0; i < FAY_BPF_MAPS; i++)
		session->maps[i] = -1;
	for (uint64_t i = 0; i < processors; i++)
		session->clocks[i] = -1;
	for (uint32_t i = 0; i < object->program_count; i++)
		session->programs[i] = session->links[i] = -1;
	return session;
}

int fay_bpf_session_create(const struct fay_bpf_object *object, struct fay_bpf_session **result,
			   struct fay_error *error)
{
	struct fay_bpf_session *session = make(object);
	if (!session)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	int code = fay_bpf_maps_create(session, error);
	if (!code)
		code = fay_bpf_maps_map(session, error);
	if (!code)
		code = fay_bpf_programs_load(session, error);
	if (code)
		fay_bpf_session_destroy(session);
	else
		*result = session;
	return code;
}

struct fay_shm_control *fay_bpf_session_shm(const struct fay_bpf_session *session, size_t *size)
{
	*size = session->size;
	return (struct fay_shm_control *)session->memory;
}

/* --- attaching
 * -------------------------------------------------------------------------------------------------
 * */

static uint64_t monotonic(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void close_clock(struct fay_bpf_session *session, uint32_t processor)
{
	if (session->clocks[processor] >= 0)
		close(session->clocks[processor]);
	session->clocks[processor] = -1;
}

/* -ENODEV: the processor is off. */
static int attach_clock(struct fay_bpf_session *session, uint32_t processor)
{
	struct perf_event_attr attributes = { .size = sizeof(attributes),
					      .type = PERF_TYPE_SOFTWARE,
					      .config = PERF_COUNT_SW_CPU_CLOCK,
					      .sample_period = session->timer->period,
					      .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED };
	int program = session->programs[session->timer - session->object->programs];
	int clock = session->clocks[processor] = (int)syscall(SYS_perf_event_open, &attributes, -1,
							      processor, -1, PERF_FLAG_FD_CLOEXEC);
	session->ticked[processor] = 0;
	if (clock >= 0 && !ioctl(clock, PERF_EVENT_IOC_SET_BPF, program) &&
	    !ioctl(clock, PERF_EVENT_IOC_ENABLE, 0))
		return 0;
	int code = -errno;
	close_clock(session, processor);
	return code;
}

/* A clock on each processor that is there. */
static int attach_clocks(struct fay_bpf_session *session, uint32_t index)
{
	int code = -ENODEV;
	session->timer = &session->object->programs[index];
	session->looked = monotonic();
	for (uint32_t i = 0; i < session->object->values[FAY_BPF_VALUE_PROCESSORS]; i++) {
		int failed = attach_clock(session, i);
		if (failed && failed != -ENODEV)
			return failed;
		code = failed ? code : 0;
	}
	return code;
}

/* A processor that is switched off, as most are while the machine sleeps, loses its clock for good:
 * the time that the clock has been on stands still from then. */
static bool ticks(struct fay_bpf_session *session, uint32_t processor)
{
	uint64_t values[2]; /* the count; that time */
	int clock = session->clocks[processor];
	if (clock < 0 || read(clock, values, sizeof(values)) != sizeof(values) ||
	    values[1] == session->ticked[processor])
		return false;
	session->ticked[processor] = values[1];
	return true;
}

uint32_t fay_bpf_session_tick(struct fay_bpf_session *session)
{
	uint32_t came = 0;
	uint64_t now = monotonic();
	if (!session->timer || now - session->looked < FAY_BPF_CLOCKS_EVERY)
		return 0;
	session->looked = now;
	for (uint32_t i = 0; i < session->object->values[FAY_BPF_VALUE_PROCESSORS]; i++) {
		if (ticks(session, i))
			continue;
		close_clock(session, i);
		if (attach_clock(session, i))
			continue;
		/* On its way up a processor takes clocks that will never run. */
		if (ticks(session, i))
			came++;
		else
			close_clock(session, i);
	}
	return came;
}

static void close_links(struct fay_bpf_session *session)
{
	session->timer = NULL;
	fay_bpf_traps_close(session);
	for (uint32_t i = 0; i < session->object->program_count; i++) {
		if (session->links[i] >= 0)
			close(session->links[i]);
		session->links[i] = -1;
	}
	for (uint32_t i = 0; i < session->object->values[FAY_BPF_VALUE_PROCESSORS]; i++)
		close_clock(session, i);
}

static int check_functions(const struct fay_bpf_session *session, struct fay_error *error)
{
	const char *off = fay_bpf_functions_off();
	for (uint32_t i = 0; off && i < session->object->program_count; i++)
		if (session->object->programs[i].attach == BPF_TRACE_FENTRY ||
		    session->object->programs[i].attach == BPF_TRACE_FEXIT)
			return fay_error_set(error, FAY_E_REFUSED, "%s", off);
	return FAY_OK;
}

static int attach(struct fay_bpf_session *session, uint32_t index)
{
	if (session->object->programs[index].period)
		return attach_clocks(session, index);
	/* Without a name: by the program's own type. */
	return session->links[index] = bpf_raw_tracepoint_open(NULL, session->programs[index]);
}

int fay_bpf_session_attach(struct fay_bpf_session *session, struct fay_error *error)
{
	/* The last first: what notes when a call begins runs before what looks it up. */
	uint32_t attached = 0, first = 0;
	int code = check_functions(session, error);
	if (code)
		return code;
	for (uint32_t i = session->object->program_count; i-- > 0;) {
		if (session->programs[i] < 0)
			continue;
		int failed = attach(session, i);
		attached += failed >= 0;
		if (failed >= 0)
			continue;
		session->refusals[i] = -failed;
		code = failed;
		first = i;
		if (!session->object->some)
			break;
	}
	if (!code || (attached && session->object->some))
		return FAY_OK;
	char what[128];
	fay_bpf_session_detach(session);
	snprintf(what, sizeof(what), "attaching to %s", session->object->programs[first].name);
	return fay_bpf_refused(code, what, error);
}

/* The kernel counts the events that found their own program already running on the processor. */
static uint64_t missed(int program)
{
	struct bpf_prog_info info = { 0 };
	uint32_t size = sizeof(info);
	if (program < 0 || bpf_obj_get_info_by_fd(program, &info, &size))
		return 0;
	return info.recursion_misses;
}

void fay_bpf_session_detach(struct fay_bpf_session *session)
{
	uint64_t lost = 0;
	close_links(session);
	/* Programs run in RCU read-side sections: after a grace period none that began before is
	 * still running. */
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		usleep(50000); /* no processor runs a program for so long */
	for (uint32_t i = 0; i < session->object->program_count; i++)
		lost += missed(session->programs[i]);
	struct fay_slot_header *own =
		(void *)(session->memory + FAY_SHM_PAGE +
			 (size_t)session->object->values[FAY_BPF_VALUE_PROCESSORS] *
				 session->object->slot_stride);
	__atomic_store_n(&own->lost_reentrant, lost, __ATOMIC_RELAXED);
}

const char *fay_bpf_session_skipped(const struct fay_bpf_session *session, uint32_t program)
{
	return session->refusals[program] ? strerror(session->refusals[program]) : NULL;
}

uint32_t fay_bpf_session_instructions(const struct fay_bpf_session *session)
{
	return session->instructions;
}

void fay_bpf_session_destroy(struct fay_bpf_session *session)
{
	if (!session)
		return;
	close_links(session);
	for (uint32_t i = 0; i < session->object->program_count; i++)
		if (session->programs[i] >= 0)
			close(session->programs[i]);
	fay_bpf_maps_destroy(session);
	free_tables(session);
}
