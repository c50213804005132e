/* SPDX-License-Identifier: MIT */
#include <fnmatch.h>
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

/* --- machines
 * -------------------------------------------------------------------------------------------------
 * */

static uint32_t *index_slot(const struct fay_root *root, uint64_t id)
{
	size_t at = (id * 0x9fb21c651e98df25u >> 32) & (root->index_size - 1);
	while (root->index[at] && root->machines[root->index[at] - 1]->id != id)
		at = (at + 1) & (root->index_size - 1);
	return &root->index[at];
}

/* Enters the machines that came since; at least half of the index stays empty. */
static bool index_machines(struct fay_root *root)
{
	if (2 * root->machine_count >= root->index_size) {
		size_t size = root->index_size ? root->index_size : 64;
		while (2 * root->machine_count >= size)
			size *= 2;
		uint32_t *index = calloc(size, sizeof(*index));
		if (!index)
			return false;
		free(root->index);
		root->index = index;
		root->index_size = size;
		root->indexed = 0;
	}
	for (; root->indexed < root->machine_count; root->indexed++)
		*index_slot(root, root->machines[root->indexed]->id) = (uint32_t)root->indexed + 1;
	return true;
}

struct fay_machine *fay_root_find(struct fay_root *root, uint64_t id)
{
	if (!index_machines(root))
		return NULL;
	uint32_t position = *index_slot(root, id);
	return position ? root->machines[position - 1] : NULL;
}

static struct fay_machine *add_machine(struct fay_root *root, const struct fay_wire_head *head)
{
	struct fay_machine **grown, *machine;
	if (root->machine_count == FAY_WIRE_AGENTS_MAX) {
		root->coverage.beyond = true;
		return NULL;
	}
	grown = realloc(root->machines, (root->machine_count + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	root->machines = grown;
	machine = calloc(1, sizeof(*machine));
	if (!machine)
		return NULL;
	machine->id = head->sender;
	machine->clock_error = UINT64_MAX;
	memcpy(machine->key, head->key, FAY_KEY_BYTES);
	root->machines[root->machine_count++] = machine;
	root->found = fay_monotonic();
	return machine;
}

static uint32_t start_flags(const struct fay_root_options *options)
{
	return (options->wait ? FAY_START_WAIT : 0) | (options->some ? FAY_START_SOME : 0) |
	       (options->durable ? FAY_START_DURABLE : 0) | (options->is_bpf ? FAY_START_BPF : 0) |
	       (options->follow ? FAY_START_FOLLOW : 0) |
	       (options->when_full == FAY_FULL_DROP ? FAY_START_DROP : 0) |
	       (options->when_full == FAY_FULL_OVERWRITE ? FAY_START_OVERWRITE : 0) |
	       (options->stacks ? FAY_START_STACKS : 0);
}

static void put_processes(struct fay_writer_buffer *out, const struct fay_root_options *options)
{
	fay_wire_put16(out, (uint16_t)options->comm_count);
	for (size_t i = 0; i < options->comm_count; i++)
		fay_wire_put_text(out, options->comms[i], FAY_WIRE_NAME_MAX);
	fay_wire_put16(out, (uint16_t)options->pid_count);
	for (size_t i = 0; i < options->pid_count; i++)
		fay_wire_put32(out, (uint32_t)options->pids[i]);
}

static void put_codes(struct fay_writer_buffer *out, const struct fay_root_options *options)
{
	fay_wire_put16(out, options->code_count);
	for (uint16_t i = 0; i < options->code_count; i++) {
		fay_wire_put16(out, options->codes[i].column);
		fay_wire_put8(out, options->codes[i].flags);
	}
}

static void send_start(struct fay_root *root, struct fay_machine *machine)
{
	const struct fay_root_options *options = &root->options;
	struct fay_writer_buffer *out = &root->out;
	char subject[64];
	uint64_t now = fay_monotonic();
	machine->started = true;
	fay_wire_begin(out, FAY_WIRE_START, root->query, 0);
	fay_wire_put64(out, machine->id);
	fay_wire_put64(out, fay_realtime());
	fay_wire_put64(out, options->window);
	fay_wire_put64(out, now - root->began);
	fay_wire_put64(out, options->lease);
	fay_wire_put64(out, options->life);
	fay_wire_put64(out, options->horizon);
	fay_wire_put64(out, options->one_clock ? -(uint64_t)machine->clock_offset : 0);
	fay_wire_put32(out, start_flags(options));
	fay_wire_put32(out, options->bytes_per_second);
	fay_wire_put_text(out, options->text, FAY_WIRE_TEXT_MAX);
	put_processes(out, options);
	fay_wire_put_text(out, options->function ? options->function : "", FAY_WIRE_NAME_MAX);
	fay_wire_put16(out, (uint16_t)options->build_id_size);
	if (options->build_id_size)
		fay_wire_put(out, options->build_id, options->build_id_size);
	put_codes(out, options);
	fay_wire_put32(out, (uint32_t)root->image_size);
	fay_wire_put(out, root->image, root->image_size);
	snprintf(subject, sizeof(subject), "fay.1.a.%016" PRIx64, machine->id);
	if (fay_wire_end(out, root->keys))
		fay_bus_send(root->bus, subject, out->bytes, out->size);
}

/* Whose clock must be known first is asked for the time. */
static void invite(struct fay_root *root, struct fay_machine *machine)
{
	machine->asked = fay_monotonic();
	if (root->options.one_clock && machine->clock_error == UINT64_MAX)
		fay_root_ask_clocks(root, &machine, 1);
	else
		send_start(root, machine);
}

/* Whether the query is about a machine of this name. */
static bool is_asked(struct fay_root *root, const struct fay_wire_hello *hello)
{
	char name[FAY_WIRE_NAME_MAX + 1];
	fay_text_copy(name, sizeof(name), hello->name);
	bool asked = !root->options.named || fnmatch(root->options.named, name, 0) == 0;
	root->others |= !asked;
	return asked;
}

static void receive_hello(struct fay_root *root, const struct fay_wire_head *head)
{
	struct fay_wire_hello hello;
	root->coverage.hellos++;
	if (!head->sender || !fay_wire_read_hello(head->body, &hello)) {
		root->coverage.malformed++;
		return;
	}
	const struct fay_key_entry *known = fay_key_file_find(&root->allowed, head->key);
	if (root->allowed.entries && !known) {
		root->coverage.unknown++;
		return;
	}
	if (known) /* what it calls itself is its own word */
		hello.name = (struct fay_text){ known->name, (uint16_t)strlen(known->name) };
	struct fay_machine *machine = fay_root_find(root, head->sender);
	if (!machine && !is_asked(root, &hello))
		return;
	if (!machine && !(machine = add_machine(root, head)))
		return;
	if (memcmp(machine->key, head->key, FAY_KEY_BYTES)) {
		root->coverage.unknown++; /* somebody else's number */
		return;
	}
	fay_text_copy(machine->name, sizeof(machine->name), hello.name);
	fay_text_copy(machine->kernel, sizeof(machine->kernel), hello.kernel);
	fay_text_copy(machine->labels, sizeof(machine->labels), hello.labels);
	fay_text_copy(machine->version, sizeof(machine->version), hello.version);
	machine->cpus = hello.cpus;
	machine->queries = hello.queries;
	fay_root_note_clock(root, machine, &hello);
	if (root->image && !root->stopping && !machine->started)
		invite(root, machine);
}

static void receive_answer(struct fay_root *root, const struct fay_wire_head *head)
{
	struct fay_wire_answer answer;
	struct fay_machine *machine = fay_root_find(root, head->sender);
	if (!machine || memcmp(machine->key, head->key, FAY_KEY_BYTES)) {
		root->coverage.unknown++;
		return;
	}
	if (!fay_wire_read_answer(head->body, &answer)) {
		root->coverage.malformed++;
		return;
	}
	machine->heard = fay_monotonic();
	machine->processes = answer.processes;
	machine->functions = answer.functions;
	fay_text_copy(machine->reason, sizeof(machine->reason), answer.reason);
	if (machine->state != FAY_MACHINE_ASKED)
		return;
	machine->state = answer.accepted ? FAY_MACHINE_TRACING : FAY_MACHINE_REFUSED;
	machine->event_clock = root->options.one_clock ? 0 : machine->clock_offset;
	root->membership_changed |= answer.accepted;
}

/* --- messages
 * -------------------------------------------------------------------------------------------------
 * */

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
		receive_hello(root, &head);
	else if (head.query != root->query)
		root->coverage.malformed++;
	else if (head.type == FAY_WIRE_ANSWER)
		receive_answer(root, &head);
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
			invite(root, machine);
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

/* --- beginning and end
 * -------------------------------------------------------------------------------------------------
 * */

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
				     "the query is about machine(\"%s\"), and none of those that "
				     "answer is called so; `fay cluster status` lists them",
				     root->options.named);
	if (!root->machine_count && root->coverage.other_version)
		return fay_error_set(
			error, FAY_E_REFUSED,
			"the machines of the cluster speak version %u of Fay's messages, and this "
			"is version %u: the same release must run on all",
			root->coverage.other_version, FAY_WIRE_VERSION);
	if (!root->machine_count)
		return fay_error_set(error, FAY_E_REFUSED, "no machine of the cluster answers%s",
				     root->coverage.unknown ? " that is in the machines file"
							    : "; does fayd run?");
	if (await)
		return fay_error_set(error, FAY_E_REFUSED,
				     "%zu machines of the cluster answer, %u were awaited",
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
		invite(root, root->machines[i]);
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
