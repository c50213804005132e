/* SPDX-License-Identifier: MIT */
/*
 * A session's maps: made, filled, mapped into this process; rows are taken out of the ring.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "session.h"

#define RING_BYTES (8u << 20)
#define EXECUTED_MAX 4096u
#define CALLS_MAX 65536u /* of traced functions, under way at once */

static size_t page_up(size_t size)
{
	return (size + FAY_SHM_PAGE - 1) & ~(size_t)(FAY_SHM_PAGE - 1);
}

static size_t slots_size(const struct fay_bpf_object *object)
{
	return page_up((size_t)(object->values[FAY_BPF_VALUE_PROCESSORS] + 1) *
		       object->slot_stride);
}

static size_t events_size(const struct fay_bpf_object *object)
{
	return page_up((1 + object->program_count) * sizeof(uint64_t));
}

/* A map's descriptor, or -errno. */
static int create_map(const struct fay_bpf_object *object, enum fay_bpf_map map)
{
	uint32_t size;
	LIBBPF_OPTS(bpf_map_create_opts, options);
	switch (map) {
	case FAY_BPF_RING:
		return bpf_map_create(BPF_MAP_TYPE_RINGBUF, NULL, 0, 0, RING_BYTES, NULL);
	case FAY_BPF_CALLS: return bpf_map_create(BPF_MAP_TYPE_HASH, NULL, 8, 8, CALLS_MAX, NULL);
	case FAY_BPF_EXECUTED: /* one that does not succeed leaves its entry */
		return bpf_map_create(BPF_MAP_TYPE_LRU_HASH, NULL, 8, 6 * sizeof(uint64_t),
				      EXECUTED_MAX, NULL);
	case FAY_BPF_TRAPPED:
		return bpf_map_create(BPF_MAP_TYPE_HASH, NULL, sizeof(struct fay_bpf_call_key),
				      sizeof(struct fay_bpf_call), CALLS_MAX, NULL);
	case FAY_BPF_STARTS:
		size = (uint32_t)(object->values[FAY_BPF_VALUE_THREADS] *
				  sizeof(struct fay_bpf_start));
		break;
	case FAY_BPF_EVENTS:
		size = (uint32_t)events_size(object);
		options.map_flags = BPF_F_MMAPABLE;
		break;
	case FAY_BPF_NAMES: size = FAY_BPF_SYSCALLS * sizeof(uint64_t); break;
	case FAY_BPF_SLOTS:
		size = (uint32_t)slots_size(object);
		options.map_flags = BPF_F_MMAPABLE;
		break;
	default: /* PIDS */
		size = FAY_BPF_PIDS_MAX;
		options.map_flags = BPF_F_MMAPABLE;
		break;
	}
	return bpf_map_create(BPF_MAP_TYPE_ARRAY, NULL, 4, size, 1, &options);
}

static int fill_maps(struct fay_bpf_session *session)
{
	int names = session->maps[FAY_BPF_NAMES];
	uint32_t zero = 0;
	return names >= 0 ? bpf_map_update_elem(names, &zero, session->object->names, BPF_ANY) : 0;
}

int fay_bpf_maps_create(struct fay_bpf_session *session, struct fay_error *error)
{
	int code = 0;
	for (int i = 0; code >= 0 && i < FAY_BPF_MAPS; i++)
		if (session->object->maps >> i & 1)
			code = session->maps[i] = create_map(session->object, i);
	if (code >= 0)
		code = fill_maps(session);
	return code < 0
		       ? fay_bpf_refused(code, "creating the kernel's memory for the result", error)
		       : FAY_OK;
}

/* --- our side of the memory
 * -----------------------------------------------------------------------------------------------
 * */

static void fill_control(struct fay_bpf_session *session)
{
	const struct fay_bpf_object *object = session->object;
	*(struct fay_shm_control *)session->memory = (struct fay_shm_control){
		.magic = FAY_SHM_MAGIC,
		.version = 1,
		.slot_max = (uint32_t)object->values[FAY_BPF_VALUE_PROCESSORS] + 1,
		.slot_stride = object->slot_stride,
		.slots_offset = FAY_SHM_PAGE,
		.global_offset = FAY_SHM_PAGE,
		.local_size = object->local_size,
		.spill_offset = FAY_SLOT_HEADER,
		.slot_next = (uint32_t)object->values[FAY_BPF_VALUE_PROCESSORS] + 1,
	};
}

static int map_slots(struct fay_bpf_session *session, struct fay_error *error)
{
	size_t slots = slots_size(session->object);
	uint8_t *memory = mmap(NULL, FAY_SHM_PAGE + slots, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	session->memory = memory;
	session->size = FAY_SHM_PAGE + slots;
	if (mmap(memory + FAY_SHM_PAGE, slots, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		 session->maps[FAY_BPF_SLOTS], 0) == MAP_FAILED)
		return fay_error_set(error, FAY_E_INTERNAL,
				     "mapping the kernel's memory for the result: %s",
				     strerror(errno));
	fill_control(session);
	return FAY_OK;
}

/* A row of the ring; negative: no more for now. */
static int take_record(void *context, void *row, size_t size)
{
	struct fay_bpf_session *session = context;
	session->drained++;
	session->drained_bytes += size;
	return session->take(session->take_context, row, size) &&
			       session->drained_bytes < RING_BYTES
		       ? 0
		       : -1;
}

static int map_ring(struct fay_bpf_session *session, struct fay_error *error)
{
	int map = session->maps[FAY_BPF_RING];
	if (map < 0)
		return FAY_OK;
	session->ring = ring_buffer__new(map, take_record, session, NULL);
	if (!session->ring)
		return fay_error_set(error, FAY_E_INTERNAL, "mapping the ring: %s",
				     strerror(errno));
	return FAY_OK;
}

static int map_listed(struct fay_bpf_session *session, struct fay_error *error)
{
	const struct fay_bpf_object *object = session->object;
	if (session->maps[FAY_BPF_PIDS] < 0)
		return FAY_OK;
	uint8_t *listed = mmap(NULL, FAY_BPF_PIDS_MAX, PROT_READ | PROT_WRITE, MAP_SHARED,
			       session->maps[FAY_BPF_PIDS], 0);
	if (listed == MAP_FAILED)
		return fay_error_set(error, FAY_E_INTERNAL, "mapping the list of processes: %s",
				     strerror(errno));
	session->listed = listed;
	for (size_t i = 0; i < object->pid_count; i++)
		if ((uint32_t)object->pids[i] < FAY_BPF_PIDS_MAX)
			listed[object->pids[i]] = 1;
	return FAY_OK;
}

static int map_events(struct fay_bpf_session *session, struct fay_error *error)
{
	int map = session->maps[FAY_BPF_EVENTS];
	if (map < 0)
		return FAY_OK;
	uint64_t *events = mmap(NULL, events_size(session->object), PROT_READ | PROT_WRITE,
				MAP_SHARED, map, 0);
	if (events == MAP_FAILED)
		return fay_error_set(error, FAY_E_INTERNAL, "mapping the numbers of events: %s",
				     strerror(errno));
	session->events = events;
	return FAY_OK;
}

int fay_bpf_maps_map(struct fay_bpf_session *session, struct fay_error *error)
{
	int code = map_slots(session, error);
	if (!code)
		code = map_ring(session, error);
	if (!code)
		code = map_events(session, error);
	return code ? code : map_listed(session, error);
}

void fay_bpf_maps_destroy(struct fay_bpf_session *session)
{
	if (session->memory)
		munmap(session->memory, session->size);
	ring_buffer__free(session->ring);
	if (session->events)
		munmap(session->events, events_size(session->object));
	if (session->listed)
		munmap(session->listed, FAY_BPF_PIDS_MAX);
	for (int i = 0; i < FAY_BPF_MAPS; i++)
		if (session->maps[i] >= 0)
			close(session->maps[i]);
}

static bool any_runs(const uint8_t *listed)
{
	const uint8_t *at = listed, *end = listed + FAY_BPF_PIDS_MAX;
	while ((at = memchr(at + 1, 1, (size_t)(end - at - 1))))
		if (!kill((pid_t)(at - listed), 0) || errno != ESRCH)
			return true;
	return false;
}

/* Looked twice: what was passed may have been born meanwhile, of one that has ended. */
bool fay_bpf_session_has_processes(const struct fay_bpf_session *session)
{
	return any_runs(session->listed) || any_runs(session->listed);
}

/* libbpf goes on for as long as rows come: no more than a full ring are taken at a time, or the
 * caller would not get to its own work while programs are fast. */
size_t fay_bpf_session_drain(struct fay_bpf_session *session, fay_bpf_take_row *take, void *context)
{
	session->take = take;
	session->take_context = context;
	session->drained = session->drained_bytes = 0;
	if (session->ring)
		ring_buffer__consume(session->ring);
	return session->drained;
}
