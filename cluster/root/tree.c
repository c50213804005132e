/* SPDX-License-Identifier: MIT */
/* The tree of agents, and acknowledgements. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "root_private.h"

#define MS 1000000ull
#define PLANT_EVERY_MS 300
#define TELL_AGAIN_MS 1000
#define CONTROL_MIN_MS 20
#define CONTROL_MAX_MS 500
/* a second: a CONTROL goes to each machine, which checks its signature */
#define CONTROL_DELIVERIES 5000u
#define BEHIND_MIN 16u

/* --- the tree --- */

static int by_label(const void *left, const void *right)
{
	const struct fay_machine *x = *(struct fay_machine *const *)left,
				 *y = *(struct fay_machine *const *)right;
	int order = strcmp(x->labels, y->labels);
	return order ? order : x->id < y->id ? -1 : x->id > y->id;
}

/* The machines that are in the tree, sorted; a finished one may still be somebody's parent. */
static size_t list(const struct fay_root *root, struct fay_machine **sorted)
{
	size_t count = 0;
	for (size_t i = 0; i < root->machine_count; i++)
		if (root->machines[i]->state == FAY_MACHINE_TRACING && !root->machines[i]->lost)
			sorted[count++] = root->machines[i];
	qsort(sorted, count, sizeof(*sorted), by_label);
	return count;
}

static void assign(struct fay_root *root, struct fay_machine **sorted, size_t count, size_t index,
		   uint64_t now)
{
	uint32_t fanout = root->options.fanout;
	struct fay_machine *machine = sorted[index];
	size_t first = fanout ? (index + 1) * fanout : count,
	       last = first + fanout < count ? first + fanout : count;
	char subject[64];
	fay_wire_begin(&root->out, FAY_WIRE_ASSIGN, root->query, 0);
	fay_wire_put32(&root->out, root->tree);
	fay_wire_put64(&root->out, fanout && index >= fanout ? sorted[index / fanout - 1]->id : 0);
	fay_wire_put16(&root->out, (uint16_t)(first < last ? last - first : 0));
	for (size_t i = first; i < last; i++) {
		fay_wire_put64(&root->out, sorted[i]->id);
		fay_wire_put(&root->out, sorted[i]->key, FAY_KEY_BYTES);
	}
	machine->inner |= first < last;
	machine->told = now;
	snprintf(subject, sizeof(subject), "fay.1.a.%016" PRIx64, machine->id);
	if (fay_wire_end(&root->out, root->keys))
		fay_bus_send(root->bus, subject, root->out.bytes, root->out.size);
}

void fay_root_plant(struct fay_root *root, uint64_t now)
{
	bool renew = root->membership_changed && now - root->planted > PLANT_EVERY_MS * MS;
	if (root->replaces || root->options.durable || (!renew && !root->tree))
		return;
	struct fay_machine **sorted = calloc(root->machine_count + 1, sizeof(*sorted));
	if (!sorted)
		return;
	size_t count = list(root, sorted);
	if (renew) {
		root->membership_changed = false;
		root->planted = now;
		root->tree += root->tree || (root->options.fanout && count > root->options.fanout);
	}
	for (size_t i = 0; root->tree && i < count; i++)
		if (renew ||
		    (sorted[i]->tree < root->tree && now - sorted[i]->told > TELL_AGAIN_MS * MS))
			assign(root, sorted, count, i, now);
	free(sorted);
}

/* --- acknowledgements --- */

/* All up to this window is merged. A finished machine has nothing more to acknowledge. */
static uint64_t merged_window(const struct fay_machine *machine)
{
	return machine->state == FAY_MACHINE_FINISHED ? UINT64_MAX : machine->window;
}

static int falling(const void *left, const void *right)
{
	uint64_t x = *(const uint64_t *)left, y = *(const uint64_t *)right;
	return x > y ? -1 : x < y;
}

/*
 * The highest window that no more than a few machines have not reached. Those few are listed in the
 * message, so whoever is not in the list has reached it: also a machine that is lost, or has not
 * answered yet, is one of them.
 */
static uint64_t floor_window(const struct fay_root *root)
{
	size_t count = 0, behind = root->machine_count / 16 > BEHIND_MIN ? root->machine_count / 16
									 : BEHIND_MIN;
	uint64_t floor = 0, *windows = calloc(root->machine_count + 1, sizeof(*windows));
	if (!windows)
		return 0;
	if (root->stopping || behind > FAY_WIRE_EXCEPTIONS_MAX)
		behind = FAY_WIRE_EXCEPTIONS_MAX;
	for (size_t i = 0; i < root->machine_count; i++)
		if (root->machines[i]->state != FAY_MACHINE_REFUSED)
			windows[count++] = merged_window(root->machines[i]);
	qsort(windows, count, sizeof(*windows), falling);
	if (count)
		floor = windows[count - 1 > behind ? count - 1 - behind : 0];
	free(windows);
	return floor;
}

void fay_root_send_control(struct fay_root *root, uint32_t flags)
{
	uint64_t floor = floor_window(root);
	uint16_t count = 0;
	char subject[64];
	fay_wire_begin(&root->out, FAY_WIRE_CONTROL, root->query, 0);
	fay_wire_put64(&root->out, ++root->control_number);
	fay_wire_put32(&root->out, flags);
	fay_wire_put64(&root->out, floor);
	for (size_t i = 0; i < root->machine_count; i++)
		count += root->machines[i]->state != FAY_MACHINE_REFUSED &&
			 merged_window(root->machines[i]) < floor;
	fay_wire_put16(&root->out, count);
	for (size_t i = 0; i < root->machine_count; i++) {
		if (root->machines[i]->state == FAY_MACHINE_REFUSED ||
		    merged_window(root->machines[i]) >= floor)
			continue;
		fay_wire_put64(&root->out, root->machines[i]->id);
		fay_wire_put64(&root->out, root->machines[i]->ledger.upto);
	}
	snprintf(subject, sizeof(subject), "fay.1.q.%016" PRIx64 ".ctl", root->query);
	if (fay_wire_end(&root->out, root->keys))
		fay_bus_send(root->bus, subject, root->out.bytes, root->out.size);
}

void fay_root_control(struct fay_root *root, uint64_t now)
{
	uint64_t period = root->stopping ? 0 : root->options.window / 2,
		 least = root->machine_count * 1000 * MS / CONTROL_DELIVERIES;
	if (now < root->next_control)
		return;
	least = least < CONTROL_MIN_MS * MS ? CONTROL_MIN_MS * MS : least;
	period = period > CONTROL_MAX_MS * MS ? CONTROL_MAX_MS * MS : period;
	root->next_control = now + (period < least ? least : period);
	fay_root_send_control(root, root->stopping ? FAY_CONTROL_STOP : 0);
}

void fay_root_release(struct fay_root *root)
{
	root->stopping = true;
	fay_root_send_control(root, FAY_CONTROL_STOP | FAY_CONTROL_GONE);
	fay_bus_flush(root->bus, 1000);
}
