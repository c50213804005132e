/* SPDX-License-Identifier: MIT */
/*
 * Verified probes over events from elsewhere, a saved trace say, in this process. One LOCAL takes
 * the place of all threads'; what the probes hand on, and what they hold at the end, goes to the
 * caller row by row.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fay/loader.h"

#define PAGE 4096u

typedef void probe_function(const struct fay_event *event, void *local, void *global);

struct fay_replay {
	const struct fay_verdict *verdict;
	uint8_t *mapped, *local, *global;
	size_t size;
	fay_replay_row *take;
	fay_replay_read *read; /* NULL: nothing can be read */
	void *context;
};

/* Whose probe runs: helpers get LOCAL only. */
static __thread struct fay_replay *current;

static void hand_on(struct fay_replay *r, uint32_t index)
{
	const struct fay_schema_state *s = &r->verdict->schema.states[index];
	uint8_t *at = (s->scope == FAY_SCOPE_GLOBAL ? r->global : r->local) + s->offset;
	if (s->kind == FAY_STATE_CELL)
		r->take(r->context, index, at);
	if (s->kind != FAY_STATE_TABLE)
		return;
	uint8_t *rows = at + sizeof(struct fay_table_header);
	for (uint32_t i = 0; i < s->rows; i++, rows += s->row_size) {
		uint64_t tag;
		memcpy(&tag, rows, sizeof(tag));
		if (tag)
			r->take(r->context, index, rows);
	}
	memset(at, 0, sizeof(struct fay_table_header) + (size_t)s->rows * s->row_size);
}

static uint64_t replay_flush(void *local, uint64_t state)
{
	if (local != current->local || state >= current->verdict->schema.state_count)
		return 1;
	hand_on(current, (uint32_t)state);
	return 0;
}

static uint64_t replay_emit(void *local, uint64_t state, const void *row)
{
	if (local != current->local || state >= current->verdict->schema.state_count)
		return 1;
	current->take(current->context, (uint32_t)state, row);
	return 0;
}

/* The program's memory is not here; what the caller has in its place may be. */
static int64_t replay_try_read(void *to, uint64_t size, uint64_t address)
{
	if (current->read && size <= FAY_TRY_READ_MAX &&
	    current->read(current->context, to, size, address))
		return 0;
	memset(to, 0, size);
	return -1;
}

static uint64_t helper_address(uint32_t helper)
{
	switch (helper) {
	case FAY_HELPER_FLUSH: return (uint64_t)(uintptr_t)replay_flush;
	case FAY_HELPER_EMIT: return (uint64_t)(uintptr_t)replay_emit;
	case FAY_HELPER_TRY_READ: return (uint64_t)(uintptr_t)replay_try_read;
	default: return 0;
	}
}

void fay_replay_destroy(struct fay_replay *r)
{
	if (!r)
		return;
	if (r->mapped)
		munmap(r->mapped, r->size);
	free(r->local);
	free(r->global);
	free(r);
}

static int map_code(struct fay_replay *r, struct fay_error *error)
{
	const struct fay_layout *layout = &r->verdict->layout;
	r->size = (layout->size + PAGE - 1) / PAGE * PAGE;
	void *mapped =
		mmap(NULL, r->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mapped == MAP_FAILED)
		return fay_error_set(error, FAY_E_LIMIT, "mapping the probes: %s", strerror(errno));
	r->mapped = mapped;
	memcpy(r->mapped, layout->bytes, layout->size);
	for (uint32_t i = 0; i < layout->slot_count; i++) {
		uint64_t helper = helper_address(layout->slots[i].helper);
		if (!helper)
			return fay_error_set(error, FAY_E_REFUSED,
					     "the probe uses a helper that does not exist without "
					     "a live program");
		memcpy(r->mapped + layout->slots[i].offset, &helper, sizeof(helper));
	}
	if (mprotect(r->mapped, r->size, PROT_READ | PROT_EXEC))
		return fay_error_set(error, FAY_E_REFUSED, "making the probes executable: %s",
				     strerror(errno));
	return FAY_OK;
}

/* A region as slots have it: at a multiple of a cache line, and never empty. */
static uint8_t *zeroed(size_t size)
{
	size = (size + 64) / 64 * 64;
	uint8_t *bytes = aligned_alloc(64, size);
	return bytes ? memset(bytes, 0, size) : NULL;
}

int fay_replay_create(const struct fay_verdict *verdict, fay_replay_row *take,
		      fay_replay_read *read, void *context, struct fay_replay **replay,
		      struct fay_error *error)
{
	if (verdict->outcome != FAY_ACCEPTED)
		return fay_error_set(error, FAY_E_REFUSED, "only verified probes run");
	struct fay_replay *r = calloc(1, sizeof(*r));
	if (r) {
		r->local = zeroed(verdict->schema.local_size);
		r->global = zeroed(verdict->schema.global_size);
	}
	if (!r || !r->local || !r->global) {
		fay_replay_destroy(r);
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	}
	r->verdict = verdict;
	r->take = take;
	r->read = read;
	r->context = context;
	int result = map_code(r, error);
	if (result)
		fay_replay_destroy(r);
	else
		*replay = r;
	return result;
}

void fay_replay_event(struct fay_replay *r, uint32_t probe, const struct fay_event *event)
{
	if (probe >= r->verdict->probe_count)
		return;
	probe_function *code =
		(probe_function *)(uintptr_t)(r->mapped + r->verdict->probes[probe].code_offset);
	current = r;
	code(event, r->local, r->global);
	current = NULL;
}

void fay_replay_end(struct fay_replay *r)
{
	for (uint32_t i = 0; i < r->verdict->schema.state_count; i++)
		hand_on(r, i);
}
