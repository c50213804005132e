/* SPDX-License-Identifier: MIT */
/*
 * A session's maps: made, filled, mapped into this process; rows are taken out of the ring.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "session.h"

#define RING_BYTES (8u << 20)
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

static union bpf_attr map_attributes(const struct fay_bpf_object *object, enum fay_bpf_map map)
{
	union bpf_attr attributes;
	memset(&attributes, 0, sizeof(attributes));
	attributes.map_type = BPF_MAP_TYPE_ARRAY;
	attributes.key_size = 4;
	attributes.max_entries = 1;
	switch (map) {
	case FAY_BPF_SLOTS:
		attributes.value_size = (uint32_t)slots_size(object);
		attributes.map_flags = BPF_F_MMAPABLE;
		break;
	case FAY_BPF_RING:
		attributes.map_type = BPF_MAP_TYPE_RINGBUF;
		attributes.key_size = 0;
		attributes.max_entries = RING_BYTES;
		break;
	case FAY_BPF_STARTS:
		attributes.value_size = (uint32_t)(object->values[FAY_BPF_VALUE_THREADS] *
						   sizeof(struct fay_bpf_start));
		break;
	case FAY_BPF_NAMES: attributes.value_size = FAY_BPF_SYSCALLS * sizeof(uint64_t); break;
	case FAY_BPF_CALLS:
		attributes.map_type = BPF_MAP_TYPE_HASH;
		attributes.key_size = attributes.value_size = 8;
		attributes.max_entries = CALLS_MAX;
		break;
	default: /* PIDS */
		attributes.value_size = FAY_BPF_PIDS_MAX;
		attributes.map_flags = BPF_F_MMAPABLE;
		break;
	}
	return attributes;
}

static int update(int map, const void *key, const void *value)
{
	union bpf_attr attributes;
	memset(&attributes, 0, sizeof(attributes));
	attributes.map_fd = (uint32_t)map;
	attributes.key = (uintptr_t)key;
	attributes.value = (uintptr_t)value;
	return fay_bpf_call(BPF_MAP_UPDATE_ELEM, &attributes);
}

static int fill_maps(struct fay_bpf_session *session)
{
	const struct fay_bpf_object *object = session->object;
	uint32_t zero = 0;
	return session->maps[FAY_BPF_NAMES] >= 0
		       ? update(session->maps[FAY_BPF_NAMES], &zero, object->names)
		       : 0;
}

/* Kernels before 5.11 charge maps to RLIMIT_MEMLOCK. */
static void raise_memlock(void)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	setrlimit(RLIMIT_MEMLOCK, &limit);
}

int fay_bpf_maps_create(struct fay_bpf_session *session, struct fay_error *error)
{
	int code = 0;
	raise_memlock();
	for (int i = 0; !code && i < FAY_BPF_MAPS; i++) {
		if (!(session->object->maps >> i & 1))
			continue;
		union bpf_attr attributes = map_attributes(session->object, i);
		session->maps[i] = fay_bpf_call(BPF_MAP_CREATE, &attributes);
		if (session->maps[i] < 0)
			code = session->maps[i];
	}
	if (!code)
		code = fill_maps(session);
	return code ? fay_bpf_refused(code, "creating the kernel's memory for the result", error)
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

static int map_ring(struct fay_bpf_session *session, struct fay_error *error)
{
	int map = session->maps[FAY_BPF_RING];
	if (map < 0)
		return FAY_OK;
	void *consumer = mmap(NULL, FAY_SHM_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);
	void *producer = mmap(NULL, FAY_SHM_PAGE + 2 * (size_t)RING_BYTES, PROT_READ, MAP_SHARED,
			      map, FAY_SHM_PAGE);
	session->consumer = consumer == MAP_FAILED ? NULL : consumer;
	session->producer = producer == MAP_FAILED ? NULL : producer;
	if (!session->consumer || !session->producer)
		return fay_error_set(error, FAY_E_INTERNAL, "mapping the ring: %s",
				     strerror(errno));
	session->data = (const uint8_t *)producer + FAY_SHM_PAGE;
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

int fay_bpf_maps_map(struct fay_bpf_session *session, struct fay_error *error)
{
	int code = map_slots(session, error);
	if (!code)
		code = map_ring(session, error);
	return code ? code : map_listed(session, error);
}

void fay_bpf_maps_destroy(struct fay_bpf_session *session)
{
	if (session->memory)
		munmap(session->memory, session->size);
	if (session->consumer)
		munmap(session->consumer, FAY_SHM_PAGE);
	if (session->producer)
		munmap((void *)session->producer, FAY_SHM_PAGE + 2 * (size_t)RING_BYTES);
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

size_t fay_bpf_session_drain(struct fay_bpf_session *session, fay_bpf_take_row *take, void *context)
{
	size_t count = 0;
	bool wanted = true;
	if (!session->consumer)
		return 0;
	uint64_t at = *session->consumer,
		 head = __atomic_load_n(session->producer, __ATOMIC_ACQUIRE);
	while (at < head && wanted) {
		const uint8_t *record = session->data + (at & (RING_BYTES - 1));
		uint32_t length = __atomic_load_n((const uint32_t *)record, __ATOMIC_ACQUIRE);
		if (length & BPF_RINGBUF_BUSY_BIT)
			break; /* reserved, not filled in yet */
		if (!(length & BPF_RINGBUF_DISCARD_BIT)) {
			wanted = take(context, record + BPF_RINGBUF_HDR_SZ);
			count++;
		}
		length &= ~BPF_RINGBUF_DISCARD_BIT;
		at += (length + BPF_RINGBUF_HDR_SZ + 7) & ~7u;
		__atomic_store_n(session->consumer, at, __ATOMIC_RELEASE);
	}
	return count;
}
