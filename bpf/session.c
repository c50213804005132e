/* SPDX-License-Identifier: MIT */
/*
 * A generated object in the kernel: its maps, its programs, their attachment.
 *
 * The memory that the programs aggregate in is a BPF array of one element, mapped into this process, that holds a slot of fay/shm.h for each processor; a page
 * of ours in front of it is the control page. So the aggregator reads it as it reads a traced process's memory. One more slot, behind
 * those of the processors, is written by this process only: losses that the kernel counts by itself.
 *
 * Ordering guarantees: a slot has one writer at a time, the program that runs on its processor (programs of tracepoints run with preemption disabled; one that
 * would interrupt another on the same processor is kept out by the slot's busy flag, or by the kernel's own guard of a program against itself). Rows in the ring
 * come in the order of their reservation.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fay/bpf.h"

#define RING_BYTES (8u << 20)
#define LOG_BYTES (1u << 20)
#define MAX_PROCESSORS 4096u
#define CALLS_MAX 65536u /* of traced functions, under way at once */
#define INITIAL_PID_NAMESPACE 0xEFFFFFFCu /* its inode number (PROC_PID_INIT_INO) */

struct fay_bpf_session {
	const struct fay_bpf_object *object;
	int maps[FAY_BPF_MAPS];
	int *programs, *links; /* -1: none */
	int *clocks;           /* perf events, by processor; -1: none */
	int *refusals;         /* errno of programs that were left out; 0 */
	uint8_t *memory;       /* control page, then the slots */
	size_t size;
	/* The ring as the kernel maps it: a page we write, a page it writes, the data twice over. */
	uint64_t *consumer;
	const uint64_t *producer;
	const uint8_t *data;
	uint32_t instructions;
};

int fay_bpf_call(int command, union bpf_attr *attributes)
{
	long result = syscall(SYS_bpf, command, attributes, sizeof(*attributes));
	return result < 0 ? -errno : (int)result;
}

void fay_bpf_object_deinit(struct fay_bpf_object *object)
{
	for (uint32_t i = 0; i < object->program_count; i++)
		free(object->programs[i].code);
	free(object->programs);
	free(object->names);
	memset(object, 0, sizeof(*object));
}

static uint64_t read_number(const char *path, uint64_t otherwise)
{
	unsigned long long value;
	FILE *file = fopen(path, "re");
	bool read = file && fscanf(file, "%llu", &value) == 1;
	if (file)
		fclose(file);
	return read ? value : otherwise;
}

uint32_t fay_bpf_processors(void)
{
	/* "0-3" or "0,2-5": the last number is the highest. */
	char line[256] = "";
	FILE *file = fopen("/sys/devices/system/cpu/possible", "re");
	uint32_t last = (uint32_t)sysconf(_SC_NPROCESSORS_CONF) - 1;
	if (file && fgets(line, sizeof(line), file)) {
		const char *at = strrchr(line, '-'), *comma = strrchr(line, ',');
		at = at > comma ? at : comma;
		last = (uint32_t)strtoul(at ? at + 1 : line, NULL, 10);
	}
	if (file)
		fclose(file);
	return last < MAX_PROCESSORS ? last + 1 : MAX_PROCESSORS;
}

uint32_t fay_bpf_threads(void)
{
	return (uint32_t)read_number("/proc/sys/kernel/pid_max", 4194304);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void fay_bpf_machine(uint64_t values[FAY_BPF_VALUES])
{
	values[FAY_BPF_VALUE_PROCESSORS] = fay_bpf_processors();
	values[FAY_BPF_VALUE_THREADS] = fay_bpf_threads();
	values[FAY_BPF_VALUE_CLOCK] = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
	values[FAY_BPF_VALUE_SELF] = (uint64_t)getpid();
}

bool fay_bpf_knows_processes(void)
{
	struct stat status;
	return stat("/proc/self/ns/pid", &status) || status.st_ino == INITIAL_PID_NAMESPACE;
}

/* --- maps --------------------------------------------------------------------------------------------------------------- */

static size_t page_up(size_t size)
{
	return (size + FAY_SHM_PAGE - 1) & ~(size_t)(FAY_SHM_PAGE - 1);
}

static size_t slots_size(const struct fay_bpf_object *object)
{
	return page_up((size_t)(object->values[FAY_BPF_VALUE_PROCESSORS] + 1) * object->slot_stride);
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
		attributes.value_size = (uint32_t)(object->values[FAY_BPF_VALUE_THREADS] * sizeof(struct fay_bpf_start));
		break;
	case FAY_BPF_NAMES:
		attributes.value_size = FAY_BPF_SYSCALLS * sizeof(uint64_t);
		break;
	case FAY_BPF_CALLS:
		attributes.map_type = BPF_MAP_TYPE_HASH;
		attributes.key_size = attributes.value_size = 8;
		attributes.max_entries = CALLS_MAX;
		break;
	default: /* PIDS */
		attributes.map_type = BPF_MAP_TYPE_HASH;
		attributes.value_size = 4;
		attributes.max_entries = object->pid_count > 4096 ? (uint32_t)object->pid_count : 4096;
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
	int code = 0;
	if (session->maps[FAY_BPF_NAMES] >= 0)
		code = update(session->maps[FAY_BPF_NAMES], &zero, object->names);
	for (size_t i = 0; !code && session->maps[FAY_BPF_PIDS] >= 0 && i < object->pid_count; i++)
		code = update(session->maps[FAY_BPF_PIDS], &object->pids[i], &zero);
	return code;
}

/* Kernels before 5.11 charge maps to RLIMIT_MEMLOCK. */
static void raise_memlock(void)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	setrlimit(RLIMIT_MEMLOCK, &limit);
}

static int refused(int code, const char *what, struct fay_error *error)
{
	if (code == -EPERM)
		return fay_error_set(error, FAY_E_REFUSED, "%s: not permitted; BPF needs root, or CAP_BPF and CAP_PERFMON (`fay doctor` says more)", what);
	if (code == -ENOMEM || code == -E2BIG)
		return fay_error_set(error, FAY_E_LIMIT, "%s: %s", what, strerror(-code));
	return fay_error_set(error, FAY_E_REFUSED, "%s: %s", what, strerror(-code));
}

static int create_maps(struct fay_bpf_session *session, struct fay_error *error)
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
	return code ? refused(code, "creating the kernel's memory for the result", error) : FAY_OK;
}

/* --- our side of the memory ----------------------------------------------------------------------------------------------- */

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
	uint8_t *memory = mmap(NULL, FAY_SHM_PAGE + slots, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	session->memory = memory;
	session->size = FAY_SHM_PAGE + slots;
	if (mmap(memory + FAY_SHM_PAGE, slots, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, session->maps[FAY_BPF_SLOTS], 0) == MAP_FAILED)
		return fay_error_set(error, FAY_E_INTERNAL, "mapping the kernel's memory for the result: %s", strerror(errno));
	fill_control(session);
	return FAY_OK;
}

static int map_ring(struct fay_bpf_session *session, struct fay_error *error)
{
	int map = session->maps[FAY_BPF_RING];
	if (map < 0)
		return FAY_OK;
	void *consumer = mmap(NULL, FAY_SHM_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);
	void *producer = mmap(NULL, FAY_SHM_PAGE + 2 * (size_t)RING_BYTES, PROT_READ, MAP_SHARED, map, FAY_SHM_PAGE);
	session->consumer = consumer == MAP_FAILED ? NULL : consumer;
	session->producer = producer == MAP_FAILED ? NULL : producer;
	if (!session->consumer || !session->producer)
		return fay_error_set(error, FAY_E_INTERNAL, "mapping the ring: %s", strerror(errno));
	session->data = (const uint8_t *)producer + FAY_SHM_PAGE;
	return FAY_OK;
}

struct fay_shm_control *fay_bpf_session_shm(const struct fay_bpf_session *session, size_t *size)
{
	*size = session->size;
	return (struct fay_shm_control *)session->memory;
}

size_t fay_bpf_session_drain(struct fay_bpf_session *session, fay_bpf_take_row *take, void *context)
{
	size_t count = 0;
	bool wanted = true;
	if (!session->consumer)
		return 0;
	uint64_t at = *session->consumer, head = __atomic_load_n(session->producer, __ATOMIC_ACQUIRE);
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

/* --- programs -------------------------------------------------------------------------------------------------------------- */

/* The instructions with descriptors in the maps' places, and this machine's values. */
static struct bpf_insn *resolve(const struct fay_bpf_session *session, const struct fay_bpf_program *program)
{
	struct bpf_insn *code = malloc((program->count + 1) * sizeof(*code));
	if (!code)
		return NULL;
	memcpy(code, program->code, program->count * sizeof(*code));
	for (uint32_t i = 0; i + 1 < program->count; i++) {
		if (code[i].code != (BPF_LD | BPF_IMM | BPF_DW))
			continue;
		if (code[i].src_reg == FAY_BPF_PSEUDO_MACHINE && (uint32_t)code[i].imm < FAY_BPF_VALUES) {
			uint64_t value = session->object->values[code[i].imm];
			code[i].src_reg = 0;
			code[i].imm = (int32_t)value;
			code[i + 1].imm = (int32_t)(value >> 32);
		} else if (code[i].src_reg && (uint32_t)code[i].imm < FAY_BPF_MAPS) {
			code[i].imm = session->maps[code[i].imm];
		}
		i++;
	}
	return code;
}

static int load(struct fay_bpf_session *session, const struct fay_bpf_program *program, struct bpf_insn *code, char *log)
{
	union bpf_attr attributes;
	memset(&attributes, 0, sizeof(attributes));
	attributes.prog_type = program->type;
	attributes.expected_attach_type = program->attach;
	attributes.attach_btf_id = program->btf_id;
	attributes.insns = (uintptr_t)code;
	attributes.insn_cnt = program->count;
	attributes.license = (uintptr_t) "Dual MIT/GPL";
	memcpy(attributes.prog_name, "fay", 3);
	if (log) {
		attributes.log_buf = (uintptr_t)log;
		attributes.log_size = LOG_BYTES;
		attributes.log_level = 1;
	}
	return fay_bpf_call(BPF_PROG_LOAD, &attributes);
}

/* The end of the verifier's log: what it was looking at and what it says. */
static const char *last_lines(const char *log, unsigned lines)
{
	const char *at = log + strlen(log);
	while (at > log && lines) {
		at--;
		lines -= at > log && at[-1] == '\n';
	}
	return at;
}

static int explain_refusal(int code, const struct fay_bpf_program *program, const char *log, struct fay_error *error)
{
	char what[128];
	snprintf(what, sizeof(what), "loading the BPF program for %s", program->name);
	if (!*log || code == -EPERM)
		return refused(code, what, error);
	return fay_error_set(error, FAY_E_REFUSED,
			     "the kernel's BPF verifier refused the program for %s (%s); nothing was attached. The end of its log:\n%s", program->name,
			     strerror(-code), last_lines(log, 8));
}

/* First without a log, which costs time; once more with one to be told why. */
static int load_program(struct fay_bpf_session *session, uint32_t index, struct fay_error *error)
{
	const struct fay_bpf_program *program = &session->object->programs[index];
	struct bpf_insn *code = resolve(session, program);
	int fd = code ? load(session, program, code, NULL) : -ENOMEM;
	int result = FAY_OK;
	if (fd < 0) {
		char *log = code ? calloc(1, LOG_BYTES) : NULL;
		if (log && (fd = load(session, program, code, log)) < 0)
			result = explain_refusal(fd, program, log, error);
		else if (!log)
			result = fay_error_set(error, FAY_E_LIMIT, "out of memory");
		free(log);
	}
	free(code);
	if (fd >= 0) {
		session->programs[index] = fd;
		session->instructions += program->count;
	}
	return result;
}

static int load_programs(struct fay_bpf_session *session, struct fay_error *error)
{
	const struct fay_bpf_object *object = session->object;
	uint32_t loaded = 0;
	int code = FAY_OK;
	for (uint32_t i = 0; i < object->program_count; i++) {
		struct fay_error one;
		int failed = load_program(session, i, &one);
		loaded += !failed;
		if (!failed)
			continue;
		session->refusals[i] = EACCES;
		if (!code && error)
			*error = one;
		code = failed;
		if (!object->some)
			return code;
	}
	return loaded ? FAY_OK : code;
}

int fay_bpf_session_create(const struct fay_bpf_object *object, struct fay_bpf_session **result, struct fay_error *error)
{
	struct fay_bpf_session *session = calloc(1, sizeof(*session));
	if (session) {
		session->object = object;
		for (int i = 0; i < FAY_BPF_MAPS; i++)
			session->maps[i] = -1;
		session->programs = malloc((object->program_count + 1) * sizeof(int));
		session->links = malloc((object->program_count + 1) * sizeof(int));
		session->refusals = calloc(object->program_count + 1, sizeof(int));
		session->clocks = malloc((object->values[FAY_BPF_VALUE_PROCESSORS] + 1) * sizeof(int));
		for (uint32_t i = 0; session->clocks && i < object->values[FAY_BPF_VALUE_PROCESSORS]; i++)
			session->clocks[i] = -1;
		for (uint32_t i = 0; session->programs && session->links && i < object->program_count; i++)
			session->programs[i] = session->links[i] = -1;
	}
	if (!session || !session->programs || !session->links || !session->refusals || !session->clocks) {
		if (session) {
			free(session->clocks);
			free(session->refusals);
			free(session->programs);
			free(session->links);
		}
		free(session);
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	}
	int code = create_maps(session, error);
	if (!code)
		code = map_slots(session, error);
	if (!code)
		code = map_ring(session, error);
	if (!code)
		code = load_programs(session, error);
	if (code)
		fay_bpf_session_destroy(session);
	else
		*result = session;
	return code;
}

/* --- attaching --------------------------------------------------------------------------------------------------------------- */

/* A clock on each processor that is there. */
static int attach_clocks(struct fay_bpf_session *session, uint32_t index)
{
	struct perf_event_attr attributes = { .size = sizeof(attributes),
					      .type = PERF_TYPE_SOFTWARE,
					      .config = PERF_COUNT_SW_CPU_CLOCK,
					      .sample_period = session->object->programs[index].period };
	int code = -ENODEV, clock;
	for (uint32_t i = 0; i < session->object->values[FAY_BPF_VALUE_PROCESSORS]; i++) {
		clock = (int)syscall(SYS_perf_event_open, &attributes, -1, i, -1, PERF_FLAG_FD_CLOEXEC);
		if (clock < 0 && errno == ENODEV) /* offline */
			continue;
		if (clock < 0)
			return -errno;
		session->clocks[i] = clock;
		if (ioctl(clock, PERF_EVENT_IOC_SET_BPF, session->programs[index]) || ioctl(clock, PERF_EVENT_IOC_ENABLE, 0))
			return -errno;
		code = 0;
	}
	return code;
}

static void close_links(struct fay_bpf_session *session)
{
	for (uint32_t i = 0; i < session->object->program_count; i++) {
		if (session->links[i] >= 0)
			close(session->links[i]);
		session->links[i] = -1;
	}
	for (uint32_t i = 0; i < session->object->values[FAY_BPF_VALUE_PROCESSORS]; i++) {
		if (session->clocks[i] >= 0)
			close(session->clocks[i]);
		session->clocks[i] = -1;
	}
}

static int attach(struct fay_bpf_session *session, uint32_t index)
{
	if (session->object->programs[index].period)
		return attach_clocks(session, index);
	union bpf_attr attributes;
	memset(&attributes, 0, sizeof(attributes));
	attributes.raw_tracepoint.prog_fd = (uint32_t)session->programs[index];
	return session->links[index] = fay_bpf_call(BPF_RAW_TRACEPOINT_OPEN, &attributes);
}

int fay_bpf_session_attach(struct fay_bpf_session *session, struct fay_error *error)
{
	/* The last first: what notes when a call begins runs before what looks it up. */
	uint32_t attached = 0, first = 0;
	int code = 0;
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
	return refused(code, what, error);
}

/* The kernel counts the events that found their own program already running on the processor. */
static uint64_t missed(int program)
{
	struct bpf_prog_info info;
	union bpf_attr attributes;
	memset(&info, 0, sizeof(info));
	memset(&attributes, 0, sizeof(attributes));
	attributes.info.bpf_fd = (uint32_t)program;
	attributes.info.info_len = sizeof(info);
	attributes.info.info = (uintptr_t)&info;
	return program < 0 || fay_bpf_call(BPF_OBJ_GET_INFO_BY_FD, &attributes) ? 0 : info.recursion_misses;
}

void fay_bpf_session_detach(struct fay_bpf_session *session)
{
	uint64_t lost = 0;
	close_links(session);
	/* Programs run in RCU read-side sections: after a grace period none that began before is still running. */
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		usleep(50000); /* no processor runs a program for so long */
	for (uint32_t i = 0; i < session->object->program_count; i++)
		lost += missed(session->programs[i]);
	struct fay_slot_header *own = (void *)(session->memory + FAY_SHM_PAGE + (size_t)session->object->values[FAY_BPF_VALUE_PROCESSORS] * session->object->slot_stride);
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
	if (session->memory)
		munmap(session->memory, session->size);
	if (session->consumer)
		munmap(session->consumer, FAY_SHM_PAGE);
	if (session->producer)
		munmap((void *)session->producer, FAY_SHM_PAGE + 2 * (size_t)RING_BYTES);
	for (int i = 0; i < FAY_BPF_MAPS; i++)
		if (session->maps[i] >= 0)
			close(session->maps[i]);
	free(session->programs);
	free(session->links);
	free(session->refusals);
	free(session->clocks);
	free(session);
}
