/* SPDX-License-Identifier: MIT */
/*
 * The aggregator: sources, polling, waiting. ring.c drains, rows.c groups, merge.c merges,
 * snapshot.c adds what is still live.
 *
 * A source's geometry is checked against its size and the schema once and then used from our own
 * copy, never again from shared memory: only slot_next, lost_no_slot, the wake word and the slots
 * themselves are looked at later. An aggregator is used by one thread at a time, and destroyed
 * before the shared memory is unmapped (it clears consumer_alive there).
 */
#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "aggregator_parts.h"

/* The bytes that a state takes in its region. */
static uint64_t state_bytes(const struct fay_schema_state *state)
{
	if (state->kind == FAY_STATE_STREAM)
		return 0;
	if (state->kind == FAY_STATE_CELL)
		return state->row_size;
	return sizeof(struct fay_table_header) + (uint64_t)state->rows * state->row_size;
}

/* The verifier has checked all this of an image; a schema may also come from elsewhere, and
 * out-of-range offsets here are memory errors. */
static const char *check_state(const struct fay_schema *schema,
			       const struct fay_schema_state *state)
{
	uint32_t columns = (uint32_t)state->keys + state->values;
	uint32_t region =
		state->scope == FAY_SCOPE_GLOBAL ? schema->global_size : schema->local_size;
	if (state->kind < FAY_STATE_CELL || state->kind > FAY_STATE_STREAM)
		return "unknown kind";
	if (state->scope == FAY_SCOPE_GLOBAL && state->kind != FAY_STATE_CELL)
		return "a table or stream cannot be global";
	if (!state->row_size || state->row_size % 8 || state->row_size > 4096 || state->offset % 8)
		return "bad row size or offset";
	if (state->offset + state_bytes(state) > region)
		return "lies outside its region";
	if (state->first_column > schema->column_count ||
	    columns > schema->column_count - state->first_column)
		return "bad columns";
	for (uint32_t i = 0; i < columns; i++) {
		const struct fay_schema_column *column = &schema->columns[state->first_column + i];
		if (column->offset % 8 || column->size % 8 || column->offset > state->row_size ||
		    column->size > state->row_size - column->offset || !column->size)
			return "a column lies outside the row";
		if ((i < state->keys) != (column->merge == FAY_MERGE_KEY) &&
		    state->kind != FAY_STATE_STREAM)
			return "keys and values are mixed";
	}
	return NULL;
}

static void free_tables(struct fay_aggregator *aggregator)
{
	free(aggregator->drained);
	free(aggregator->retired);
	free(aggregator->traffic);
	free(aggregator->sources);
	free(aggregator);
}

int fay_aggregator_create(const struct fay_schema *schema, struct fay_aggregator **result,
			  struct fay_error *error)
{
	for (uint32_t i = 0; i < schema->state_count; i++) {
		const char *wrong = check_state(schema, &schema->states[i]);
		if (wrong)
			return fay_error_set(error, FAY_E_REFUSED, "state %u: %s", i, wrong);
	}
	struct fay_aggregator *aggregator = calloc(1, sizeof(*aggregator));
	if (!aggregator)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	aggregator->drained = calloc(schema->state_count + 1, sizeof(*aggregator->drained));
	aggregator->retired = calloc(schema->state_count + 1, sizeof(*aggregator->retired));
	aggregator->traffic = calloc(schema->state_count + 1, sizeof(*aggregator->traffic));
	if (!aggregator->drained || !aggregator->retired || !aggregator->traffic) {
		free_tables(aggregator);
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	}
	aggregator->schema = schema;
	aggregator->budget.limit = FAY_AGGREGATOR_MEMORY_MAX;
	for (uint32_t i = 0; i < schema->state_count; i++)
		fay_rows_init(&aggregator->drained[i], schema, i, &aggregator->budget);
	*result = aggregator;
	return FAY_OK;
}

static void forget_slots(struct fay_source *source)
{
	for (uint32_t j = 0; j < source->slot_max; j++)
		free(source->slots[j].open_rows);
	free(source->slots);
}

void fay_aggregator_destroy(struct fay_aggregator *aggregator)
{
	if (!aggregator)
		return;
	for (size_t i = 0; i < aggregator->source_count; i++) {
		struct fay_source *source = &aggregator->sources[i];
		__atomic_store_n(&source->control->consumer_alive, 0, __ATOMIC_RELEASE);
		forget_slots(source);
	}
	for (uint32_t i = 0; i < aggregator->schema->state_count; i++)
		fay_rows_deinit(&aggregator->drained[i]);
	fay_pictures_forget(aggregator);
	free_tables(aggregator);
}

struct fay_traffic fay_aggregator_traffic(const struct fay_aggregator *aggregator, uint32_t state)
{
	return aggregator->traffic[state];
}

void fay_aggregator_set_limit(struct fay_aggregator *aggregator, uint64_t bytes)
{
	aggregator->budget.limit = bytes;
}

void fay_aggregator_on_row(struct fay_aggregator *aggregator, fay_row_function *function,
			   void *context)
{
	aggregator->on_row = function;
	aggregator->on_row_context = context;
}

void fay_aggregator_set_texts(struct fay_aggregator *aggregator, uint32_t state,
			      struct fay_texts *texts)
{
	aggregator->texts = texts;
	aggregator->text_state = state;
}

int fay_aggregator_texts_lost(struct fay_aggregator *aggregator, uint64_t *lost,
			      struct fay_error *error)
{
	struct fay_result cell;
	*lost = 0;
	if (!aggregator->texts)
		return FAY_OK;
	if (fay_aggregator_snapshot(aggregator, aggregator->text_state + 1, &cell, error))
		return error->code;
	if (cell.row_count)
		memcpy(lost, cell.rows, sizeof(*lost));
	fay_result_deinit(&cell);
	return FAY_OK;
}

/* --- sources --- */

/* Do `count` things of `stride` bytes from `offset` on lie within `size` bytes? */
static bool fits(uint64_t offset, uint64_t count, uint64_t stride, uint64_t size)
{
	uint64_t bytes;
	return !__builtin_mul_overflow(count, stride, &bytes) && offset <= size &&
	       bytes <= size - offset;
}

/* Bytes of GLOBAL in which states lie: what comes through BPF has none, whatever probes keep there.
 * */
static uint64_t global_needed(const struct fay_schema *schema)
{
	uint64_t needed = 0;
	for (uint32_t i = 0; i < schema->state_count; i++) {
		const struct fay_schema_state *state = &schema->states[i];
		uint64_t end = state->offset + state_bytes(state);
		if (state->scope == FAY_SCOPE_GLOBAL && end > needed)
			needed = end;
	}
	return needed;
}

static const char *check_geometry(const struct fay_schema *schema,
				  const struct fay_shm_control *control, uint64_t size)
{
	if (control->magic != FAY_SHM_MAGIC || control->version != 1)
		return "not a session's shared memory (magic or version)";
	if (control->local_size < schema->local_size ||
	    control->global_size < global_needed(schema))
		return "its regions are smaller than the image's";
	if (control->global_offset % 8 ||
	    !fits(control->global_offset, 1, control->global_size, size))
		return "GLOBAL lies outside";
	if (control->slots_offset % 64 || control->slot_stride % 64 || !control->slot_max ||
	    control->slot_stride < FAY_SLOT_HEADER ||
	    !fits(control->slots_offset, control->slot_max, control->slot_stride, size))
		return "the slots lie outside";
	if (!fits(FAY_SLOT_HEADER, 1, control->local_size, control->slot_stride))
		return "LOCAL lies outside its slot";
	if (control->spill_size & (control->spill_size - 1) || control->spill_offset % 8 ||
	    (control->spill_size &&
	     (control->spill_size < 64 || control->spill_offset < FAY_SLOT_HEADER)) ||
	    !fits(control->spill_offset, 1, control->spill_size, control->slot_stride))
		return "the spill ring lies outside its slot";
	return NULL;
}

int fay_aggregator_add(struct fay_aggregator *aggregator, struct fay_shm_control *shm, size_t size,
		       uint32_t only_pid, struct fay_error *error)
{
	struct fay_shm_control control;
	if (size < sizeof(control) || (uintptr_t)shm % 64)
		return fay_error_set(error, FAY_E_REFUSED,
				     "the shared memory is too small or not aligned");
	memcpy(&control, shm, sizeof(control));
	const char *wrong = check_geometry(aggregator->schema, &control, size);
	if (wrong)
		return fay_error_set(error, FAY_E_REFUSED,
				     "the session's shared memory is malformed: %s", wrong);
	if (aggregator->source_count == FAY_AGGREGATOR_MAX_SOURCES)
		return fay_error_set(error, FAY_E_LIMIT, "more than %u processes",
				     FAY_AGGREGATOR_MAX_SOURCES);
	struct fay_source *grown =
		realloc(aggregator->sources, (aggregator->source_count + 1) * sizeof(*grown));
	if (!grown)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	aggregator->sources = grown;
	struct fay_slot_view *slots = calloc(control.slot_max, sizeof(*slots));
	if (!slots)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory for %u slots",
				     control.slot_max);
	grown[aggregator->source_count++] = (struct fay_source){
		.control = shm,
		.base = (uint8_t *)shm,
		.only_pid = only_pid,
		.slot_max = control.slot_max,
		.slot_stride = control.slot_stride,
		.slots_offset = control.slots_offset,
		.global_offset = control.global_offset,
		.spill_offset = control.spill_offset,
		.spill_size = control.spill_size,
		.overwrites = control.when_full == FAY_FULL_OVERWRITE,
		.wake_seen = control.wake,
		.slots = slots,
	};
	__atomic_store_n(&shm->consumer_alive, 1, __ATOMIC_RELEASE);
	return FAY_OK;
}

int fay_aggregator_retire(struct fay_aggregator *aggregator, const struct fay_shm_control *shm,
			  struct fay_error *error)
{
	for (size_t i = 0; i < aggregator->source_count; i++) {
		if (aggregator->sources[i].control != shm)
			continue;
		for (uint32_t j = 0; j < fay_source_slot_count(&aggregator->sources[i]); j++)
			fay_ring_drain(aggregator, &aggregator->sources[i], j,
				       aggregator->pending.code ? NULL : &aggregator->pending);
		for (uint32_t state = 0; state < aggregator->schema->state_count; state++)
			if (fay_source_take_over(aggregator, &aggregator->sources[i], state))
				return fay_error_set(error, FAY_E_LIMIT,
						     "the aggregator's memory limit is reached");
		forget_slots(&aggregator->sources[i]);
		aggregator->sources[i] = aggregator->sources[--aggregator->source_count];
		return FAY_OK;
	}
	return FAY_OK;
}

/* --- polling --- */

int64_t fay_aggregator_poll(struct fay_aggregator *aggregator, struct fay_error *error)
{
	int64_t total = 0;
	struct fay_error first = aggregator->pending;
	aggregator->pending.code = FAY_OK;
	for (size_t i = 0; i < aggregator->source_count; i++) {
		struct fay_source *source = &aggregator->sources[i];
		source->wake_seen = __atomic_load_n(&source->control->wake, __ATOMIC_ACQUIRE);
		/* A producer that waited in vain has cleared it. */
		if (!aggregator->over_limit &&
		    !__atomic_load_n(&source->control->consumer_alive, __ATOMIC_RELAXED))
			__atomic_store_n(&source->control->consumer_alive, 1, __ATOMIC_RELEASE);
		uint32_t count = fay_source_slot_count(source);
		for (uint32_t j = 0; j < count; j++) {
			struct fay_error *unless_first = first.code ? NULL : &first;
			int64_t drained = fay_ring_drain(aggregator, source, j, unless_first);
			total += drained > 0 ? drained : 0;
		}
	}
	if (!first.code)
		return total;
	if (error)
		*error = first;
	return -1;
}

bool fay_aggregator_is_asked(const struct fay_aggregator *aggregator)
{
	for (size_t i = 0; i < aggregator->source_count; i++)
		if (__atomic_load_n(&aggregator->sources[i].control->wake, __ATOMIC_ACQUIRE) !=
		    aggregator->sources[i].wake_seen)
			return true;
	return false;
}

static struct timespec milliseconds(int count)
{
	return (struct timespec){ .tv_sec = count / 1000, .tv_nsec = count % 1000 * 1000000l };
}

/* One futex word. Not FUTEX_PRIVATE: who writes it lives in another process. */
static void wait_for_one(const uint32_t *word, uint32_t seen, int timeout_ms)
{
	struct timespec timeout = milliseconds(timeout_ms);
	syscall(SYS_futex, word, FUTEX_WAIT, seen, &timeout, NULL, 0);
}

/* Several futex words at once (Linux 5.16). False if the kernel cannot. */
static bool wait_for_many(const struct fay_aggregator *aggregator, int timeout_ms,
			  const uint32_t *also, uint32_t seen)
{
	struct futex_waitv words[FUTEX_WAITV_MAX] = { 0 };
	struct timespec until, timeout = milliseconds(timeout_ms);
	unsigned count = 0;
	for (size_t i = 0; i < aggregator->source_count; i++)
		words[count++] = (struct futex_waitv){
			.val = aggregator->sources[i].wake_seen,
			.uaddr = (uintptr_t)&aggregator->sources[i].control->wake,
			.flags = FUTEX_32
		};
	if (also)
		words[count++] = (struct futex_waitv){ .val = seen,
						       .uaddr = (uintptr_t)also,
						       .flags = FUTEX_32 };
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += timeout.tv_sec + (until.tv_nsec + timeout.tv_nsec) / 1000000000l;
	until.tv_nsec = (until.tv_nsec + timeout.tv_nsec) % 1000000000l;
	return syscall(SYS_futex_waitv, words, count, 0, &until, CLOCK_MONOTONIC) >= 0 ||
	       errno != ENOSYS;
}

void fay_aggregator_wait(struct fay_aggregator *aggregator, int timeout_ms, const uint32_t *also,
			 uint32_t seen)
{
	size_t words = aggregator->source_count + (also != NULL);
	int wait_ms = timeout_ms < 0 ? 0 : timeout_ms;
	if (words == 1 && also) {
		wait_for_one(also, seen, wait_ms);
		return;
	}
	if (words == 1) {
		wait_for_one(&aggregator->sources[0].control->wake,
			     aggregator->sources[0].wake_seen, wait_ms);
		return;
	}
	if (words > 1 && words <= FUTEX_WAITV_MAX && wait_for_many(aggregator, wait_ms, also, seen))
		return;
	if (aggregator->source_count && timeout_ms > 2)
		wait_ms = 2;
	if (also) {
		wait_for_one(also, seen, wait_ms);
		return;
	}
	struct timespec timeout = milliseconds(wait_ms);
	nanosleep(&timeout, NULL);
}
