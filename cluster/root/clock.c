/* SPDX-License-Identifier: MIT */
/*
 * How far the machines' clocks are off ours: a PING and the HELLO that answers it, of which the
 * fastest counts (D. Mills, RFC 5905, section 10, clock filter). The machine read its clock between
 * our two readings, so the offset is right to half of the time between them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fay/clock.h"

#include "root_private.h"

#define MS 1000000ull
#define ROUNDS 8u
/* machines that are asked at once: an answer that waits to be read looks like a slow network */
#define GROUP 16u
#define ANSWER_MAX_MS 20

void fay_root_note_clock(struct fay_root *root, struct fay_machine *machine,
			 const struct fay_wire_hello *hello)
{
	uint64_t now = fay_realtime(), error;
	if (!hello->ping_time || hello->ping_time != root->ping_time || now < hello->ping_time)
		return;
	machine->pong = hello->ping_time;
	if (root->options.one_clock && machine->started)
		return; /* its events have times by what was measured before */
	error = (now - hello->ping_time) / 2;
	if (error >= machine->clock_error)
		return;
	machine->clock_error = error;
	machine->clock_offset = (int64_t)(hello->time - (hello->ping_time + error));
}

static bool make_ping(struct fay_root *root, uint32_t period, uint16_t version)
{
	root->ping_time = fay_realtime();
	fay_wire_begin(&root->out, FAY_WIRE_PING, 0, 0);
	if (!root->out.bad)
		memcpy(root->out.bytes + FAY_WIRE_VERSION_AT, &version, sizeof(version));
	fay_wire_put64(&root->out, root->ping_time);
	fay_wire_put32(&root->out, period);
	return fay_wire_end(&root->out, root->keys);
}

void fay_root_ping(struct fay_root *root)
{
	root->pinged = fay_monotonic();
	/* Machines of the release before say that they are there, too, so that it can be said that
	 * they cannot be asked. */
	if (!root->machine_count && make_ping(root, 0, FAY_WIRE_VERSION - 1))
		fay_bus_send(root->bus, "fay.1.ping", root->out.bytes, root->out.size);
	if (make_ping(root,
		      root->image ? (uint32_t)root->machine_count / FAY_ROOT_HELLOS_A_SECOND + 1
				  : 0,
		      FAY_WIRE_VERSION))
		fay_bus_send(root->bus, "fay.1.ping", root->out.bytes, root->out.size);
}

void fay_root_ask_clocks(struct fay_root *root, struct fay_machine *const *machines, size_t count)
{
	char subject[64];
	if (!make_ping(root, 0, FAY_WIRE_VERSION))
		return;
	for (size_t i = 0; i < count; i++) {
		snprintf(subject, sizeof(subject), "fay.1.a.%016" PRIx64, machines[i]->id);
		fay_bus_send(root->bus, subject, root->out.bytes, root->out.size);
	}
}

static bool all_told(const struct fay_root *root, struct fay_machine *const *machines, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (machines[i]->pong != root->ping_time)
			return false;
	return true;
}

static void exchange(struct fay_root *root, size_t first, size_t count)
{
	uint64_t began = fay_monotonic();
	fay_root_ask_clocks(root, root->machines + first, count);
	while (!all_told(root, root->machines + first, count) &&
	       fay_monotonic() - began < ANSWER_MAX_MS * MS)
		fay_root_hear(root, 1);
}

void fay_root_measure_clocks(struct fay_root *root)
{
	for (unsigned round = 0; round < ROUNDS; round++)
		for (size_t first = 0; first < root->machine_count; first += GROUP)
			exchange(root, first,
				 root->machine_count - first < GROUP ? root->machine_count - first
								     : GROUP);
}
