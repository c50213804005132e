/* SPDX-License-Identifier: MIT */
/* The machines of a query: who they are, what each is asked, and whether it accepted. */
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fay/clock.h"

#include "root_private.h"

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
	fay_wire_put16(out, options->signature_count);
	fay_wire_put(out, options->signatures, options->signature_count * FAY_WIRE_SIGNATURE);
	fay_wire_put32(out, (uint32_t)root->image_size);
	fay_wire_put(out, root->image, root->image_size);
	snprintf(subject, sizeof(subject), "fay.1.a.%016" PRIx64, machine->id);
	if (fay_wire_end(out, root->keys))
		fay_bus_send(root->bus, subject, out->bytes, out->size);
}

void fay_root_invite(struct fay_root *root, struct fay_machine *machine)
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

void fay_root_receive_hello(struct fay_root *root, const struct fay_wire_head *head)
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
		fay_root_invite(root, machine);
}

void fay_root_receive_answer(struct fay_root *root, const struct fay_wire_head *head)
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
