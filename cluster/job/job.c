/* SPDX-License-Identifier: MIT */
/* One query on one agent: windows are closed, told and, in the end, its last. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fay/clock.h"

#include "job_parts.h"

#define WINDOW_MIN (10 * SECOND / 1000)
#define WINDOW_MAX (3600 * SECOND)
#define LEASE_MAX (24 * 3600 * SECOND)
#define HORIZON_MAX (10 * 365 * 24 * 3600 * SECOND)
/* bytes of streamed rows that do not wait for the window's end */
#define STREAM_EARLY (256u << 10)
#define BUSY_MS 2
#define QUIET_MS 10
#define STOOD_STILL (2 * SECOND) /* between two ticks */
/* an inner agent that is finished itself, without a word from the root */
#define LINGER (5 * SECOND)
/* a job that has ended, without a word from the root, which may have asked for a longer lease */
#define UNTAKEN_MAX (60 * SECOND)

/* --- making partials --- */

/* Ends the message that is being filled. */
static bool close_message(struct fay_job *job, uint64_t window, uint8_t flags,
			  const uint64_t losses[FAY_WIRE_LOSSES])
{
	struct fay_wire_member member = { .agent = job->agent,
					  .first = ++job->sequence,
					  .window = window,
					  .tree = job->tree,
					  .flags = flags };
	member.last = member.first;
	member.why = flags & FAY_MEMBER_FINAL ? (uint8_t)job->final : 0;
	fay_wire_begin(&job->out, FAY_WIRE_PARTIAL, job->query, job->agent);
	fay_parts_finish(&job->parts, false, &member, 1, losses, &job->out);
	if (!fay_wire_end(&job->out, job->keys) || !fay_job_keep(job, window))
		return false;
	const struct fay_kept *kept = &job->kept[job->kept_count - 1];
	struct fay_wire_head head;
	/* Not from `out`: what is pending may go up first, through it. */
	if (fay_job_is_inner(job) && fay_wire_open(kept->bytes, kept->size, &head))
		fay_job_collect(job, &head);
	else if (job->stored)
		fay_job_send_kept(job, kept);
	else
		fay_job_send(job, job->parent, job->out.bytes, job->out.size);
	return true;
}

static void tell_name(void *context, uint64_t hash, const char *name)
{
	struct fay_job *job = context;
	if (name && fay_names_add(&job->told, hash, (struct fay_text){ 0 }))
		fay_parts_name(&job->parts, hash, name, strlen(name));
}

static void tell_function(void *context, uint64_t hash)
{
	struct fay_job *job = context;
	tell_name(job, hash, job->feed.name(job->feed.context, hash));
}

/* `flags`: of the block, or 0. */
static bool tell_row(struct fay_job *job, uint64_t window, uint16_t state, uint16_t flags,
		     uint8_t *row)
{
	static const uint64_t none[FAY_WIRE_LOSSES];
	uint32_t size = job->verdict->schema.states[state].row_size;
	if (fay_parts_size(&job->parts) + size > FAY_WIRE_PARTIAL_MAX &&
	    !close_message(job, window, 0, none))
		return false;
	if (job->feed.translate)
		job->feed.translate(job->feed.context, state, row, tell_name, job);
	fay_parts_row(&job->parts, state | flags, row, size);
	if (job->functions)
		fay_row_functions(&job->verdict->schema, state, row, tell_function, job);
	return true;
}

static bool tell_stream(struct fay_job *job, uint64_t window)
{
	_Alignas(8) uint8_t row[4096];
	for (size_t at = 0; at < job->stream.size;) {
		uint32_t state;
		memcpy(&state, job->stream.bytes + at, sizeof(state));
		uint32_t size = job->verdict->schema.states[state].row_size;
		memcpy(row, job->stream.bytes + at + sizeof(state), size);
		at += sizeof(state) + size;
		if (!tell_row(job, window, (uint16_t)state, 0, row))
			return false;
	}
	job->stream.size = 0;
	return true;
}

static bool tell_rows(struct fay_job *job, uint64_t window, uint16_t flags,
		      const struct fay_result *rows)
{
	for (size_t i = 0; i < rows->row_count; i++)
		if (!tell_row(job, window, (uint16_t)rows->state, flags,
			      rows->rows + i * rows->row_size))
			return false;
	return true;
}

static bool forget_windows(struct fay_job *job, uint64_t window, uint32_t state)
{
	struct fay_result final;
	job->feed.forget(job->feed.context, job->changes, state, fay_realtime() - job->horizon,
			 &final);
	bool fine = tell_rows(job, window, FAY_BLOCK_FINAL, &final);
	fay_result_deinit(&final);
	return fine;
}

static int tell_state(struct fay_job *job, uint64_t window, uint32_t state,
		      struct fay_result *losses, struct fay_error *error)
{
	struct fay_result now, changed;
	if (job->feed.snapshot(job->feed.context, state, &now, error))
		return error->code;
	/* who had no row of one state may have some of another */
	uint32_t threads = state && losses->threads > now.threads ? losses->threads : now.threads;
	*losses = now;
	losses->rows = NULL;
	losses->threads = threads;
	if (job->verdict->schema.states[state].kind == FAY_STATE_STREAM) {
		fay_result_deinit(&now);
		return FAY_OK;
	}
	int result = fay_changes_take(job->changes, &now, &changed, error);
	fay_result_deinit(&now);
	if (result)
		return result;
	if (!tell_rows(job, window, 0, &changed) ||
	    (job->horizon && job->feed.forget && !forget_windows(job, window, state)))
		result = fay_error_set(error, FAY_E_LIMIT, "out of memory");
	fay_result_deinit(&changed);
	return result;
}

/* What a snapshot that fails leaves in force. */
static struct fay_result losses_so_far(const struct fay_job *job)
{
	const uint64_t *told = job->losses_told;
	return (struct fay_result){ .events_lost_reentrant = told[0],
				    .events_lost_full = told[1],
				    .events_lost_no_slot = told[2],
				    .calls_lost = told[3],
				    .threads = (uint32_t)told[5] };
}

static void losses_since(struct fay_job *job, const struct fay_result *now,
			 uint64_t losses[FAY_WIRE_LOSSES])
{
	const uint64_t all[FAY_WIRE_LOSSES] = { now->events_lost_reentrant,
						now->events_lost_full,
						now->events_lost_no_slot,
						now->calls_lost,
						job->shed,
						now->threads };
	for (unsigned i = 0; i < FAY_WIRE_LOSSES; i++) {
		losses[i] = all[i] - job->losses_told[i];
		job->losses_told[i] = all[i];
	}
}

/* Closes a window: all that changed since the last one. */
static int produce(struct fay_job *job, struct fay_error *error)
{
	uint64_t window = (fay_monotonic() - job->began) / job->window, losses[FAY_WIRE_LOSSES];
	struct fay_result last = losses_so_far(job);
	int result = FAY_OK;
	if (window <= job->window_done)
		window = job->window_done + 1; /* the last one, before its time */
	job->window_done = window;
	if (job->feed.drain)
		job->feed.drain(job->feed.context);
	for (uint32_t i = 0; i < job->verdict->schema.state_count && !result; i++)
		result = tell_state(job, window, i, &last, error);
	if (!result && !tell_stream(job, window))
		result = fay_error_set(error, FAY_E_LIMIT, "out of memory");
	if (result && !job->final)
		return result;
	if (result)
		/* also of one that was to be stopped: rows are missing */
		job->final = FAY_FINAL_LIMIT;
	losses_since(job, &last, losses);
	return close_message(job, window, FAY_MEMBER_LAST | (job->final ? FAY_MEMBER_FINAL : 0),
			     losses)
		       ? FAY_OK
		       : fay_error_set(error, FAY_E_LIMIT, "out of memory");
}

static bool has_room(const struct fay_job *job, uint64_t now)
{
	return job->kept_count < FAY_JOB_KEPT_MAX && job->kept_bytes < job->limits.memory &&
	       job->budget_at <= now + job->window;
}

void fay_job_row(void *context, uint32_t state, const uint8_t *row)
{
	struct fay_job *job = context;
	uint32_t size = job->verdict->schema.states[state].row_size;
	size_t before = job->stream.size;
	if (before + sizeof(state) + size > FAY_JOB_STREAM_MAX) {
		job->shed++;
		return;
	}
	fay_wire_put(&job->stream, &state, sizeof(state));
	fay_wire_put(&job->stream, row, size);
	if (!job->stream.bad)
		return;
	job->shed++; /* out of memory */
	job->stream.size = before;
	job->stream.bad = false;
}

void fay_job_end(struct fay_job *job, enum fay_final why)
{
	struct fay_error error;
	if (job->final)
		return;
	job->feed.stop(job->feed.context);
	job->final = why;
	job->ended = fay_monotonic();
	if (produce(job, &error))
		fprintf(stderr, "fayd: query %016" PRIx64 ": %s\n", job->query, error.message);
}

/* --- life --- */

static void close_windows(struct fay_job *job, uint64_t now)
{
	struct fay_error error;
	bool due = (now - job->began) / job->window > job->window_done;
	if (job->stream.size > STREAM_EARLY && !due && has_room(job, now)) {
		if (!tell_stream(job, job->window_done + 1))
			fay_job_end(job, FAY_FINAL_LIMIT);
		return;
	}
	if (!due)
		return;
	if (!has_room(job, now)) {
		job->coarsened++;
		return;
	}
	if (produce(job, &error)) {
		fprintf(stderr, "fayd: query %016" PRIx64 ": %s\n", job->query, error.message);
		fay_job_end(job, FAY_FINAL_LIMIT);
	}
}

/* What a detached query has not had stored waits for as long as its lease is. */
static bool is_given_up(const struct fay_job *job, uint64_t now)
{
	bool ended = job->final && !job->stored;
	uint64_t since = ended && job->ended > job->heard ? job->ended : job->heard;
	return now - since > (ended && job->lease > UNTAKEN_MAX ? UNTAKEN_MAX : job->lease);
}

void fay_job_tick(struct fay_job *job)
{
	struct fay_message message;
	struct fay_wire_head head;
	while (fay_bus_next(job->control, 0, &message)) {
		if (fay_wire_open(message.bytes, message.size, &head) && head.query == job->query)
			fay_job_receive(job, &head, message.bytes, message.size);
		fay_message_done(&message);
	}
	fay_job_receive_stored(job);
	uint64_t now = fay_monotonic(), gap = job->ticked ? now - job->ticked : 0,
		 silent = now - job->heard;
	if (gap > STOOD_STILL) /* we did not listen either */
		job->heard += silent < gap - STOOD_STILL ? silent : gap - STOOD_STILL;
	job->ticked = now;
	if (job->life && now - job->began >= job->life)
		fay_job_end(job, FAY_FINAL_STOPPED);
	if (!job->final) {
		job->feed.tick(job->feed.context);
		if (!job->feed.alive(job->feed.context))
			fay_job_end(job, FAY_FINAL_ENDED);
		else
			close_windows(job, now);
	}
	fay_job_forward(job, false);
	fay_job_resend(job);
	now = fay_monotonic();
	if (is_given_up(job, now)) {
		fay_job_end(job, FAY_FINAL_LEASE);
		job->done = true;
	}
	if (job->final && !job->kept_count && (!fay_job_is_inner(job) || now - job->heard > LINGER))
		job->done = true;
	job->done |= job->released;
}

int fay_job_patience_ms(const struct fay_job *job)
{
	uint64_t tenth = job->window / (SECOND / 1000) / 10;
	if (job->final || !job->feed.is_busy || job->feed.is_busy(job->feed.context) ||
	    tenth < BUSY_MS)
		return BUSY_MS;
	return tenth < QUIET_MS ? (int)tenth : QUIET_MS;
}

static void receive_control(struct fay_job *job, const struct fay_wire_control *control)
{
	uint64_t window = control->floor, sequence = 0;
	if (control->number <= job->control_number)
		return;
	job->control_number = control->number;
	job->heard = fay_monotonic();
	for (uint16_t i = 0; i < control->exceptions.count; i++) {
		const uint8_t *at = control->exceptions.bytes + (size_t)i * FAY_CONTROL_EXCEPTION;
		if (fay_wire_peek64(at) != job->agent)
			continue;
		window = 0;
		sequence = fay_wire_peek64(at + 8);
	}
	if (!job->stored)
		fay_job_acknowledge(job, window, sequence);
	if (control->flags & FAY_CONTROL_STOP)
		fay_job_end(job, FAY_FINAL_STOPPED);
	if (control->flags & FAY_CONTROL_GONE) {
		fay_job_end(job, FAY_FINAL_STOPPED);
		job->released = true;
	}
}

void fay_job_receive(struct fay_job *job, const struct fay_wire_head *head, const void *bytes,
		     size_t size)
{
	struct fay_wire_control control;
	struct fay_wire_assign assign;
	bool of_asker = !head->sender && !memcmp(head->key, job->asker, FAY_KEY_BYTES);
	if (head->type == FAY_WIRE_CONTROL && of_asker &&
	    fay_wire_read_control(head->body, &control))
		receive_control(job, &control);
	else if (head->type == FAY_WIRE_ASSIGN && of_asker &&
		 fay_wire_read_assign(head->body, &assign))
		fay_job_assign(job, &assign);
	else if (head->type == FAY_WIRE_PARTIAL && head->sender)
		fay_job_collect_message(job, head, bytes, size);
}

static int check_start(const struct fay_wire_start *start, struct fay_error *error)
{
	if (start->window < WINDOW_MIN || start->window > WINDOW_MAX)
		return fay_error_set(error, FAY_E_USAGE, "a window is from 10 ms to an hour long");
	if (start->horizon > HORIZON_MAX)
		return fay_error_set(error, FAY_E_USAGE,
				     "time windows end after ten years at most");
	if (!start->lease || start->lease > LEASE_MAX || start->elapsed > INT64_MAX)
		return fay_error_set(error, FAY_E_USAGE, "the lease is 1 ns to a day");
	return FAY_OK;
}

int fay_job_create(struct fay_bus *bus, const struct fay_keys *keys, uint64_t agent,
		   const struct fay_wire_head *head, const struct fay_wire_start *start,
		   struct fay_verdict *verdict, struct fay_feed *feed,
		   const struct fay_job_limits *limits, struct fay_job **result,
		   struct fay_error *error)
{
	char subject[64], stored[80];
	struct fay_job *job = check_start(start, error) ? NULL : calloc(1, sizeof(*job));
	if (!job)
		return error->code ? (int)error->code
				   : fay_error_set(error, FAY_E_LIMIT, "out of memory");
	*job = (struct fay_job){ .query = head->query,
				 .agent = agent,
				 .keys = keys,
				 .bus = bus,
				 .limits = *limits,
				 .window = start->window,
				 .lease = start->lease,
				 .connections = fay_bus_connections(bus) };
	memcpy(job->asker, head->key, FAY_KEY_BYTES);
	if (start->bytes_per_second &&
	    (!limits->bytes_per_second || start->bytes_per_second < limits->bytes_per_second))
		job->limits.bytes_per_second = start->bytes_per_second;
	job->stream.limit = FAY_JOB_STREAM_MAX;
	snprintf(job->up, sizeof(job->up), "fay.1.q.%016" PRIx64 ".up", head->query);
	snprintf(subject, sizeof(subject), "fay.1.q.%016" PRIx64 ".ctl", head->query);
	job->heard = fay_monotonic();
	job->began = job->heard - start->elapsed;
	job->window_done = start->elapsed / start->window;
	job->functions = fay_schema_has_functions(&verdict->schema);
	job->verdict = verdict;
	job->life = start->life;
	job->horizon = start->horizon;
	snprintf(job->reply, sizeof(job->reply), "fay.1.k.%016" PRIx64 ".%016" PRIx64 ".", agent,
		 head->query);
	snprintf(stored, sizeof(stored), "%s*", job->reply);
	if (fay_changes_create(&job->verdict->schema, limits->memory, &job->changes, error) ||
	    fay_bus_subscribe(bus, subject, &job->control, error) ||
	    (start->flags & FAY_START_DURABLE &&
	     fay_bus_subscribe(bus, stored, &job->stored, error))) {
		fay_bus_unsubscribe(job->control);
		fay_changes_destroy(job->changes);
		free(job);
		return error->code;
	}
	job->feed = *feed;
	*result = job;
	return FAY_OK;
}

void fay_job_destroy(struct fay_job *job)
{
	if (!job)
		return;
	if (!job->final)
		job->feed.stop(job->feed.context);
	job->feed.destroy(job->feed.context);
	fay_bus_unsubscribe(job->control);
	fay_bus_unsubscribe(job->stored);
	fay_job_acknowledge(job, UINT64_MAX, 0);
	free(job->kept);
	fay_job_collect_deinit(job);
	fay_changes_destroy(job->changes);
	fay_names_deinit(&job->told);
	fay_parts_deinit(&job->parts);
	fay_wire_free(&job->out);
	fay_wire_free(&job->stream);
	fay_verdict_deinit(job->verdict);
	free(job->verdict);
	free(job);
}
