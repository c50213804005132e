/* SPDX-License-Identifier: MIT */
/*
 * Queries that run while the asking side is away. What agents send lies in a JetStream stream, in
 * the order in which it came, with whatever was sent twice; who attaches merges the whole stream
 * from its beginning, by the same rules as a root that was there all the time.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fay/clock.h"

#include "root_private.h"

#define LATE_NS 2000000000u

static void meta_subject(char subject[64], uint64_t query)
{
	snprintf(subject, 64, "fay.1.q.%016" PRIx64 ".meta", query);
}

int fay_root_detach(struct fay_root *root, struct fay_error *error)
{
	struct fay_writer_buffer *out = &root->out;
	uint16_t count = 0;
	char subject[64];
	for (size_t i = 0; i < root->machine_count; i++)
		count += root->machines[i]->state != FAY_MACHINE_REFUSED;
	fay_wire_begin(out, FAY_WIRE_META, root->query, 0);
	fay_wire_put64(out, fay_realtime() - (fay_monotonic() - root->began));
	fay_wire_put64(out, root->options.window);
	fay_wire_put64(out, root->options.life);
	fay_wire_put64(out, root->options.lease);
	fay_wire_put8(out, root->options.is_query);
	fay_wire_put_text(out, root->options.text, FAY_WIRE_TEXT_MAX);
	fay_wire_put_text(out, root->options.function ? root->options.function : "",
			  FAY_WIRE_NAME_MAX);
	fay_wire_put16(out, (uint16_t)root->options.build_id_size);
	fay_wire_put(out, root->options.build_id, root->options.build_id_size);
	fay_wire_put_text(out, root->options.path ? root->options.path : "", FAY_WIRE_PATH_MAX);
	fay_wire_put16(out, count);
	for (size_t i = 0; i < root->machine_count; i++) {
		const struct fay_machine *machine = root->machines[i];
		if (machine->state == FAY_MACHINE_REFUSED)
			continue;
		fay_wire_put64(out, machine->id);
		fay_wire_put(out, machine->key, FAY_KEY_BYTES);
		fay_wire_put64(out, root->options.one_clock ? 0 : (uint64_t)machine->clock_offset);
		fay_wire_put_text(out, machine->name, FAY_WIRE_NAME_MAX);
	}
	fay_wire_put32(out, (uint32_t)root->image_size);
	fay_wire_put(out, root->image, root->image_size);
	if (!fay_wire_end(out, root->keys))
		return fay_error_set(error, FAY_E_LIMIT,
				     "image and machines do not fit into one message");
	meta_subject(subject, root->query);
	if (fay_stream_store(root->stream, subject, out->bytes, out->size, error))
		return error->code;
	root->is_detached = true;
	return FAY_OK;
}

int fay_detached_open(const struct fay_bus_options *options, const struct fay_keys *keys,
		      uint64_t query, struct fay_detached *detached, struct fay_error *error)
{
	char subject[64];
	struct fay_wire_head head;
	memset(detached, 0, sizeof(*detached));
	detached->query = query;
	meta_subject(subject, query);
	if (fay_bus_open(options, &detached->bus, error) ||
	    fay_stream_open(detached->bus, query, &detached->stream, error) ||
	    fay_stream_last(detached->stream, subject, &detached->message, error)) {
		fay_detached_close(detached);
		return error->code;
	}
	if (fay_wire_open(detached->message.bytes, detached->message.size, &head) &&
	    head.type == FAY_WIRE_META && head.query == query &&
	    !memcmp(head.key, keys->public, FAY_KEY_BYTES) &&
	    fay_wire_read_meta(head.body, &detached->meta))
		return FAY_OK;
	uint16_t version = fay_wire_version(detached->message.bytes, detached->message.size);
	fay_detached_close(detached);
	if (version != FAY_WIRE_VERSION)
		return fay_error_set(error, FAY_E_REFUSED,
				     "the query was started by a release of Fay that uses version "
				     "%u of the protocol, and this is version %u",
				     version, FAY_WIRE_VERSION);
	return fay_error_set(error, FAY_E_REFUSED, "the query was started with another key");
}

void fay_detached_close(struct fay_detached *detached)
{
	if (detached->message.handle)
		fay_message_done(&detached->message);
	fay_stream_close(detached->stream);
	fay_bus_close(detached->bus);
	memset(detached, 0, sizeof(*detached));
}

static int add_machines(struct fay_root *root, struct fay_error *error)
{
	struct fay_reader rest = root->detached->meta.rest;
	root->machines = calloc(root->detached->meta.machines + 1u, sizeof(*root->machines));
	for (uint16_t i = 0; root->machines && i < root->detached->meta.machines; i++) {
		struct fay_machine *machine = calloc(1, sizeof(*machine));
		if (!machine)
			return fay_error_set(error, FAY_E_LIMIT, "out of memory");
		struct fay_wire_meta_machine told = fay_wire_meta_machine(&rest);
		machine->id = told.agent;
		memcpy(machine->key, told.key, FAY_KEY_BYTES);
		fay_text_copy(machine->name, sizeof(machine->name), told.name);
		machine->event_clock = told.event_clock;
		machine->state = FAY_MACHINE_TRACING;
		machine->clock_error = UINT64_MAX;
		machine->heard = fay_monotonic();
		root->machines[root->machine_count++] = machine;
	}
	return root->machines ? FAY_OK : fay_error_set(error, FAY_E_LIMIT, "out of memory");
}

int fay_root_attach(const struct fay_root_options *options, const struct fay_keys *keys,
		    struct fay_detached *detached, const struct fay_verdict *verdict,
		    struct fay_aggregator *aggregator, struct fay_root **result,
		    struct fay_error *error)
{
	struct fay_root *root = calloc(1, sizeof(*root));
	if (!root)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	root->options = *options;
	root->options.window = detached->meta.window;
	root->began = fay_monotonic() - (fay_realtime() - detached->meta.began);
	root->looked = fay_monotonic();
	root->earliest = UINT64_MAX;
	root->keys = keys;
	root->verdict = verdict;
	root->aggregator = aggregator;
	root->detached = detached;
	root->bus = detached->bus;
	root->query = detached->query;
	root->is_detached = true;
	root->control_number = fay_realtime(); /* higher than any before */
	root->replaces = fay_schema_replaces(&verdict->schema);
	if (add_machines(root, error)) {
		fay_root_destroy(root);
		return error->code;
	}
	*result = root;
	return FAY_OK;
}

/* What the stream has up to `last`. Where the server does not give a message the next replay begins
 * there. */
static void replay_until(struct fay_root *root, uint64_t first, uint64_t last)
{
	struct fay_message message;
	uint64_t next = root->replayed + 1 > first ? root->replayed + 1 : first;
	for (; next <= last && fay_stream_get(root->detached->stream, next, &message); next++) {
		if (!message.handle)
			continue;
		root->again = next <= root->seen;
		fay_root_receive(root, &message);
		fay_message_done(&message);
		root->seen = root->again ? root->seen : next;
	}
	root->behind = next <= last;
	root->replayed = root->behind ? next - 1 : last;
}

/* Windows of time do not wait for who is silent, as in look_at_machines() of root.c. */
static void look_at_machines(struct fay_root *root, uint64_t now)
{
	fay_root_excuse(root, now);
	for (size_t i = 0; !root->behind && i < root->machine_count; i++) {
		struct fay_machine *machine = root->machines[i];
		machine->late = machine->state == FAY_MACHINE_TRACING &&
				now - machine->heard > 3 * root->options.window + LATE_NS;
	}
}

/*
 * A message that came too early is looked at again after the others, as long as any is merged: its
 * sender had its acknowledgement, and will not send it again.
 */
int fay_root_replay(struct fay_root *root, struct fay_error *error)
{
	uint64_t first, last, early, merged;
	do {
		early = root->coverage.early;
		merged = root->coverage.merged;
		if (fay_stream_range(root->detached->stream, &first, &last, error))
			return error->code;
		replay_until(root, first, last);
		if (root->coverage.early > early)
			root->replayed = 0;
	} while (!root->behind && root->coverage.early > early && root->coverage.merged > merged &&
		 !root->failure.code);
	look_at_machines(root, fay_monotonic());
	if (root->failure.code)
		*error = root->failure;
	return (int)root->failure.code;
}

bool fay_root_is_behind(const struct fay_root *root)
{
	return root->behind;
}

void fay_root_end(struct fay_root *root)
{
	fay_root_send_control(root, FAY_CONTROL_STOP);
	fay_bus_flush(root->bus, 2000);
}

uint64_t fay_root_silence(const struct fay_root *root)
{
	uint64_t now = fay_monotonic(), least = UINT64_MAX;
	for (size_t i = 0; i < root->machine_count; i++) {
		uint64_t silent = now - root->machines[i]->heard;
		least = silent < least ? silent : least;
	}
	return least;
}

bool fay_root_give_up(struct fay_root *root, uint64_t silence)
{
	uint64_t now = fay_monotonic();
	bool any = false;
	for (size_t i = 0; i < root->machine_count; i++) {
		struct fay_machine *machine = root->machines[i];
		machine->lost =
			machine->state == FAY_MACHINE_TRACING && now - machine->heard >= silence;
		any |= machine->state == FAY_MACHINE_TRACING && !machine->lost;
	}
	return !any;
}
