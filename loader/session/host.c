/* SPDX-License-Identifier: MIT */
/*
 * Probes that belong to no place in the program (begin, end, timer) run here, in fay's own process,
 * on the session's state: verified code reads and writes nothing but its event, its stack and the
 * state it is given, so it is as safe here as there. The program is not disturbed, and the end
 * probe runs even if the program was killed. docs/internals/dispatcher.md gives the alternatives.
 *
 * What is mapped is what is mapped there: the runtime with a configuration of its own, and the
 * image with its helper slots filled; never writable and executable at once. The probes have one
 * slot, taken when the session begins.
 */
#include "session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <x86intrin.h>

#define PAGE 4096u
#define CATCH_UP_MAX 1000u /* periods of one timer made up for at once */

typedef void probe_function(const struct fay_event *event, void *local, void *global);

struct fay_host_probe {
	uint32_t kind;
	probe_function *code;
	uint64_t period, due; /* timer: nanoseconds, CLOCK_MONOTONIC */
};

struct fay_host {
	uint8_t *mapped;
	size_t size;
	struct fay_runtime_state *states;
	struct fay_slot_header *slot;
	struct fay_host_probe *probes;
	size_t count;
};

static bool is_hosted(uint32_t kind)
{
	return kind == FAY_PROBE_BEGIN || kind == FAY_PROBE_END || kind == FAY_PROBE_TIMER;
}

void fay_host_destroy(struct fay_host *host)
{
	if (!host)
		return;
	if (host->mapped)
		munmap(host->mapped, host->size);
	free(host->states);
	free(host->probes);
	free(host);
}

static struct fay_slot_header *take_slot(struct fay_session *session)
{
	struct fay_shm_control *control = session->install.shm;
	uint32_t index = __atomic_fetch_add(&control->slot_next, 1, __ATOMIC_RELAXED);
	struct fay_slot_header *slot;

	if (index >= session->plan.geometry.slot_max) {
		__atomic_fetch_sub(&control->slot_next, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	slot = (void *)((char *)control + session->plan.geometry.slots_offset +
			index * session->plan.geometry.slot_stride);
	slot->taken = 1;
	__atomic_store_n(&slot->pid, session->plan.geometry.target_pid, __ATOMIC_RELEASE);
	return slot;
}

static void fill_states(const struct fay_schema *schema, struct fay_runtime_state *states)
{
	for (uint32_t i = 0; i < schema->state_count; i++)
		states[i] = (struct fay_runtime_state){ schema->states[i].kind,
							schema->states[i].offset,
							schema->states[i].rows,
							schema->states[i].row_size };
}

static int map_code(struct fay_session *session, struct fay_host *host, struct fay_error *error)
{
	const struct fay_runtime_header *header = (const void *)fay_runtime_blob;
	const struct fay_layout *layout = &session->plan.verdict->layout;
	size_t blob = (size_t)(fay_runtime_blob_end - fay_runtime_blob),
	       image = (blob + PAGE - 1) / PAGE * PAGE;
	struct fay_runtime_config config = {
		.control = (uint64_t)session->install.shm,
		.slots = (uint64_t)session->install.shm + session->plan.geometry.slots_offset,
		.slot_stride = session->plan.geometry.slot_stride,
		.spill_offset = session->plan.geometry.spill_offset,
		.spill_size = session->plan.geometry.spill_size,
		.states = (uint64_t)host->states,
		.state_count = session->plan.verdict->schema.state_count,
		.slot_max = session->plan.geometry.slot_max,
		.hosted_pid = (uint64_t)session->plan.pid,
	};

	host->size = image + (layout->size + PAGE - 1) / PAGE * PAGE;
	host->mapped =
		mmap(NULL, host->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (host->mapped == MAP_FAILED) {
		host->mapped = NULL;
		return fay_error_set(error, FAY_E_LIMIT, "mapping the probes: %s", strerror(errno));
	}
	memcpy(host->mapped, fay_runtime_blob, blob);
	memcpy(host->mapped + header->config, &config, sizeof(config));
	memcpy(host->mapped + image, layout->bytes, layout->size);
	for (uint32_t i = 0; i < layout->slot_count; i++) {
		uint64_t helper = (uint64_t)host->mapped + header->helper[layout->slots[i].helper];

		memcpy(host->mapped + image + layout->slots[i].offset, &helper, 8);
	}
	if (mprotect(host->mapped, host->size, PROT_READ | PROT_EXEC))
		return fay_error_set(error, FAY_E_REFUSED,
				     "making the begin, end and timer probes executable: %s",
				     strerror(errno));
	for (size_t i = 0, k = 0; i < session->plan.verdict->probe_count; i++)
		if (is_hosted(session->plan.verdict->probes[i].kind))
			host->probes[k++].code =
				(probe_function *)(host->mapped + image +
						   session->plan.verdict->probes[i].code_offset);
	return 0;
}

int fay_host_create(struct fay_session *session, struct fay_host **result, struct fay_error *error)
{
	const struct fay_verdict *verdict = session->plan.verdict;
	struct fay_host *host;
	int code = 0;

	*result = NULL;
	host = calloc(1, sizeof(*host));
	if (host) {
		host->states = calloc(verdict->schema.state_count + 1, sizeof(*host->states));
		host->probes = calloc(verdict->probe_count, sizeof(*host->probes));
	}
	if (!host || !host->states || !host->probes) {
		fay_host_destroy(host);
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	}
	fill_states(&verdict->schema, host->states);
	for (uint32_t i = 0; i < verdict->probe_count; i++)
		if (is_hosted(verdict->probes[i].kind))
			host->probes[host->count++] =
				(struct fay_host_probe){ .kind = verdict->probes[i].kind,
							 .period = verdict->probes[i].parameter };
	if (host->count) {
		code = map_code(session, host, error);
		host->slot = code ? NULL : take_slot(session);
		if (!code && !host->slot)
			code = fay_error_set(
				error, FAY_E_LIMIT,
				"no thread slot is left for the begin, end and timer probes");
	}
	if (code || !host->count) {
		fay_host_destroy(host);
		return code;
	}
	for (size_t i = 0; i < host->count; i++)
		host->probes[i].due = fay_loader_clock_ns() + host->probes[i].period;
	*result = host;
	return 0;
}

static void fill_event(const struct fay_session *session, struct fay_event *event)
{
	struct timespec now;
	char path[64];
	FILE *file;

	memset(event, 0, sizeof(*event));
	clock_gettime(CLOCK_REALTIME, &now);
	event->time = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	event->cycles = __rdtsc();
	event->pid = session->plan.geometry.target_pid;
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)session->plan.pid);
	file = fopen(path, "re");
	if (!file)
		return;
	if (!fgets(event->comm, sizeof(event->comm), file))
		memset(event->comm, 0, sizeof(event->comm));
	event->comm[strcspn(event->comm, "\n")] = 0;
	fclose(file);
}

static void run_probe(struct fay_session *session, const struct fay_host_probe *probe)
{
	struct fay_host *host = session->host;
	struct fay_event event;

	fill_event(session, &event);
	probe->code(&event, (char *)host->slot + FAY_SLOT_HEADER,
		    (char *)session->install.shm + session->plan.geometry.global_offset);
}

void fay_session_run(struct fay_session *session, uint32_t kind)
{
	struct fay_host *host = session->host;

	for (size_t i = 0; host && i < host->count; i++)
		if (host->probes[i].kind == kind)
			run_probe(session, &host->probes[i]);
}

void fay_session_tick(struct fay_session *session)
{
	struct fay_host *host = session->host;
	uint64_t now = fay_loader_clock_ns();

	fay_clock_keep();
	__atomic_add_fetch(&session->install.shm->names, FAY_NAMES_STEP, __ATOMIC_RELAXED);
	for (size_t i = 0; host && i < host->count; i++) {
		struct fay_host_probe *probe = &host->probes[i];
		unsigned round = 0;

		if (probe->kind != FAY_PROBE_TIMER)
			continue;
		for (; probe->due <= now && round < CATCH_UP_MAX;
		     round++, probe->due += probe->period)
			run_probe(session, probe);
		if (round == CATCH_UP_MAX)
			probe->due = now + probe->period;
	}
}
