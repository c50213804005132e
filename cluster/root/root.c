/* SPDX-License-Identifier: MIT */
/* The asking side of a query on a cluster: finds the machines, serves messages, begins and ends. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fay/clock.h"

#include "root_private.h"

#define MS 1000000ull
#define LISTEN_MS 20
#define FOUND_MS 400 /* nobody new for so long: all that are there were found */
#define FOUND_MAX_MS 3000
#define AWAIT_MAX_MS 60000
#define STOOD_STILL_MS 500 /* between two looks, which are some 10 ms apart */
#define ANSWER_MAX_MS 20000
#define ASK_AGAIN_MS 1000
#define PING_EVERY_MS 10000 /* at least; */
#define STOP_MAX_MS 60000
#define MESSAGES_MAX 1024u /* of one tick */

/* --- messages --- */

void fay_root_receive(struct fay_root *root, const struct fay_message *message)
{
	struct fay_wire_head head;
	root->coverage.messages++;
	root->coverage.bytes += message->size;
	if (!fay_wire_open(message->bytes, message->size, &head)) {
		uint16_t version = fay_wire_version(message->bytes, message->size);
		root->coverage.malformed++;
		root->coverage.other_version = version && version != FAY_WIRE_VERSION
						       ? version
						       : root->coverage.other_version;
	} else if (head.type == FAY_WIRE_HELLO)
		fay_root_receive_hello(root, &head);
	else if (head.query != root->query)
		root->coverage.malformed++;
	else if (head.type == FAY_WIRE_ANSWER)
		fay_root_receive_answer(root, &head);
	else if (head.type == FAY_WIRE_PARTIAL)
		fay_root_merge(root, &head);
	else if (head.type != FAY_WIRE_META)
		root->coverage.malformed++;
}

static void drain(struct fay_root *root, struct fay_subscription *subscription, int timeout_ms)
{
	struct fay_message message;
	for (unsigned i = 0; i < MESSAGES_MAX && fay_bus_next(subscription, timeout_ms, &message);
	     i++) {
		fay_root_receive(root, &message);
		fay_message_done(&message);
		timeout_ms = 0;
	}
}

void fay_root_excuse(struct fay_root *root, uint64_t now)
{
	uint64_t gap = root->looked ? now - root->looked : 0,
		 excess = gap > STOOD_STILL_MS * MS ? gap - STOOD_STILL_MS * MS : 0;
	root->looked = now;
	for (size_t i = 0; excess && i < root->machine_count; i++) {
		uint64_t silent = now - root->machines[i]->heard;
		root->machines[i]->heard += silent < excess ? silent : excess;
	}
}

static void look_at_machines(struct fay_root *root, uint64_t now)
{
	fay_root_excuse(root, now);
	for (size_t i = 0; i < root->machine_count; i++) {
		struct fay_machine *machine = root->machines[i];
		uint64_t silent = now - machine->heard;
		bool lost = machine->lost;
		if (machine->state == FAY_MACHINE_ASKED && root->image && !root->stopping &&
		    now - machine->asked > ASK_AGAIN_MS * MS)
			fay_root_invite(root, machine);
		if (machine->state != FAY_MACHINE_TRACING) {
			machine->late = machine->lost = false;
			root->membership_changed |= lost;
			continue;
		}
		machine->late = silent > 3 * root->options.window + 2000 * MS;
		machine->lost = silent > root->options.lost_after &&
				silent > FAY_ROOT_SILENCE(root->options.window);
		root->membership_changed |= machine->lost != lost;
	}
}

int fay_root_tick(struct fay_root *root, int timeout_ms, struct fay_error *error)
{
	uint64_t now = fay_monotonic();
	if (fay_bus_check_open(root->bus, error))
		return error->code;
	if (now - root->pinged > PING_EVERY_MS * MS &&
	    now - root->pinged > root->machine_count * 1000 * MS / FAY_ROOT_HELLOS_A_SECOND)
		fay_root_ping(root);
	drain(root, root->hello, 0);
	drain(root, root->up, timeout_ms);
	now = fay_monotonic();
	look_at_machines(root, now);
	if (root->image) {
		fay_root_plant(root, now);
		fay_root_control(root, now);
	}
	if (root->failure.code) {
		*error = root->failure;
		return error->code;
	}
	return FAY_OK;
}

void fay_root_hear(struct fay_root *root, int timeout_ms)
{
	drain(root, root->hello, timeout_ms);
}

/* --- beginning and end --- */

/* All machines that are there. A time is up when as many rounds of LISTEN_MS were listened, too: a
 * machine that stands still takes one of them. */
static int find_machines(struct fay_root *root, struct fay_error *error)
{
	uint64_t began = fay_monotonic(), last_ping = 0, now, rounds = 0, quiet = 0;
	unsigned await = root->options.await;
	root->found = began;
	do {
		now = fay_monotonic();
		if (now - last_ping > 500 * MS) {
			fay_root_ping(root);
			last_ping = now;
		}
		size_t known = root->machine_count;
		drain(root, root->hello, LISTEN_MS);
		now = fay_monotonic();
		rounds++;
		quiet = root->machine_count == known ? quiet + 1 : 0;
		if (await && root->machine_count >= await)
			return FAY_OK;
		if (!await && root->machine_count && now - root->found > FOUND_MS * MS &&
		    quiet > FOUND_MS / LISTEN_MS)
			return FAY_OK;
	} while (now - began < (await ? AWAIT_MAX_MS : FOUND_MAX_MS) * MS ||
		 rounds < FOUND_MAX_MS / LISTEN_MS);
	if (!root->machine_count && root->others)
		return fay_error_set(error, FAY_E_REFUSED,
				     "the query is about machine(\"%s\"), and no machine that "
				     "answers has that name; `fay cluster status` lists them",
				     root->options.named);
	if (!root->machine_count && root->coverage.other_version)
		return fay_error_set(
			error, FAY_E_REFUSED,
			"the machines of the cluster use version %u of Fay's protocol, and this is "
			"version %u: all machines need the same release",
			root->coverage.other_version, FAY_WIRE_VERSION);
	if (!root->machine_count)
		return fay_error_set(error, FAY_E_REFUSED, "no machine of the cluster answers%s",
				     root->coverage.unknown ? " of those in the machines file"
							    : "; is fayd running?");
	if (await)
		return fay_error_set(
			error, FAY_E_REFUSED,
			"%zu machines of the cluster answer, %u are required (--await)",
			root->machine_count, await);
	return FAY_OK;
}

static bool all_answered(const struct fay_root *root)
{
	for (size_t i = 0; i < root->machine_count; i++)
		if (root->machines[i]->state == FAY_MACHINE_ASKED)
			return false;
	return true;
}

static int ask(struct fay_root *root, struct fay_error *error)
{
	uint64_t began = fay_monotonic();
	unsigned tracing = 0;
	for (size_t i = 0; i < root->machine_count; i++)
		fay_root_invite(root, root->machines[i]);
	while (!all_answered(root) && fay_monotonic() - began < ANSWER_MAX_MS * MS)
		if (fay_root_tick(root, 10, error))
			return error->code;
	for (size_t i = 0; i < root->machine_count; i++)
		tracing += root->machines[i]->state != FAY_MACHINE_REFUSED &&
			   root->machines[i]->state != FAY_MACHINE_ASKED;
	if (tracing)
		return FAY_OK;
	return fay_error_set(
		error, FAY_E_REFUSED, "no machine traces; %s: %s", root->machines[0]->name,
		root->machines[0]->reason[0] ? root->machines[0]->reason : "no answer");
}

static int subscribe(struct fay_root *root, struct fay_error *error)
{
	char subject[64];
	snprintf(subject, sizeof(subject), "fay.1.q.%016" PRIx64 ".up", root->query);
	if (fay_bus_open(&root->options.bus, &root->bus, error) ||
	    fay_bus_subscribe(root->bus, "fay.1.hello", &root->hello, error) ||
	    fay_bus_subscribe(root->bus, subject, &root->up, error))
		return error->code;
	fay_bus_flush(root->bus, 2000);
	return FAY_OK;
}

static int begin(struct fay_root *root, const void *image, size_t image_size,
		 struct fay_error *error)
{
	if (root->options.machines &&
	    fay_key_file_read(root->options.machines, "machine", &root->allowed, error))
		return error->code;
	if (subscribe(root, error) || find_machines(root, error))
		return error->code;
	if (root->options.one_clock)
		fay_root_measure_clocks(root);
	root->began = fay_monotonic();
	if (!image)
		return FAY_OK;
	if (root->options.durable &&
	    fay_stream_create(root->bus, root->query, &root->stream, error))
		return error->code;
	root->image = image;
	root->image_size = image_size;
	fay_root_ping(root); /* says how seldom so many machines are to tell that they are there */
	return ask(root, error);
}

int fay_root_create(const struct fay_root_options *options, const struct fay_keys *keys,
		    const struct fay_verdict *verdict, const void *image, size_t image_size,
		    struct fay_aggregator *aggregator, struct fay_root **result,
		    struct fay_error *error)
{
	if (image_size > FAY_WIRE_IMAGE_MAX)
		return fay_error_set(error, FAY_E_LIMIT,
				     "the image has %zu bytes; at most %u can be sent", image_size,
				     FAY_WIRE_IMAGE_MAX);
	if (options->comm_count > FAY_WIRE_COMMS_MAX || options->pid_count > FAY_WIRE_PIDS_MAX)
		return fay_error_set(error, FAY_E_LIMIT, "too many processes are named");
	struct fay_root *root = calloc(1, sizeof(*root));
	if (!root)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	root->options = *options;
	root->keys = keys;
	root->verdict = verdict;
	root->aggregator = aggregator;
	root->query = fay_keys_random();
	root->earliest = UINT64_MAX;
	root->replaces = verdict && fay_schema_replaces(&verdict->schema);
	if (begin(root, image, image_size, error)) {
		fay_root_destroy(root);
		return error->code;
	}
	*result = root;
	return FAY_OK;
}

void fay_root_destroy(struct fay_root *root)
{
	if (!root)
		return;
	if (root->image && !root->is_detached)
		fay_root_release(root);
	if (root->stream && !root->is_detached)
		fay_stream_delete(root->stream, NULL);
	fay_stream_close(root->stream);
	fay_bus_unsubscribe(root->hello);
	fay_bus_unsubscribe(root->up);
	if (!root->detached)
		fay_bus_close(root->bus);
	for (size_t i = 0; i < root->machine_count; i++) {
		fay_aggregator_destroy(root->machines[i]->own);
		fay_aggregator_destroy(root->machines[i]->settled);
		free(root->machines[i]);
	}
	free(root->machines);
	free(root->index);
	fay_key_file_deinit(&root->allowed);
	fay_names_deinit(&root->names);
	fay_wire_free(&root->out);
	free(root);
}

static bool is_open(const struct fay_machine *machine)
{
	return machine->state == FAY_MACHINE_TRACING && !machine->lost;
}

bool fay_root_finished(const struct fay_root *root)
{
	bool any = false;
	for (size_t i = 0; i < root->machine_count; i++) {
		if (is_open(root->machines[i]))
			return false;
		any |= root->machines[i]->state == FAY_MACHINE_FINISHED;
	}
	return any;
}

static bool any_open(const struct fay_root *root)
{
	for (size_t i = 0; i < root->machine_count; i++)
		if (is_open(root->machines[i]))
			return true;
	return false;
}

int fay_root_stop(struct fay_root *root, struct fay_error *error)
{
	uint64_t began = fay_monotonic();
	root->stopping = true;
	root->next_control = 0;
	while (any_open(root) && fay_monotonic() - began < STOP_MAX_MS * MS)
		if (fay_root_tick(root, 5, error))
			return error->code;
	return FAY_OK;
}
