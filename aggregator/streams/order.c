/* SPDX-License-Identifier: MIT */
/* order.h: a binary heap of the rows' times; the rows themselves lie in slots and do not move. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "order.h"

#define FIRST_ROOM 256u

struct entry {
	uint64_t time, number; /* number: of the row, as they came */
	uint32_t slot;
};

struct fay_order {
	uint32_t row_size, time_offset;
	fay_order_function *function;
	void *context;
	struct entry *heap;
	uint8_t *slots;
	uint32_t *unused; /* slots that hold no row: room - count */
	size_t count, room, most;
	uint64_t came, last; /* last: time of the latest row that was handed on */
	struct fay_order_counts counts;
};

int fay_order_create(uint32_t row_size, uint32_t time_offset, uint64_t bytes,
		     fay_order_function *function, void *context, struct fay_order **result,
		     struct fay_error *error)
{
	if (row_size < 8 || row_size > 4096 || row_size % 8 || time_offset > row_size - 8)
		return fay_error_set(error, FAY_E_INTERNAL,
				     "rows of %u bytes cannot be put in order", row_size);
	struct fay_order *order = calloc(1, sizeof(*order));
	if (!order)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	order->row_size = row_size;
	order->time_offset = time_offset;
	order->function = function;
	order->context = context;
	order->most = (size_t)((bytes ? bytes : FAY_ORDER_BYTES) /
			       (row_size + sizeof(struct entry) + sizeof(uint32_t)));
	*result = order;
	return FAY_OK;
}

void fay_order_destroy(struct fay_order *order)
{
	if (!order)
		return;
	free(order->heap);
	free(order->slots);
	free(order->unused);
	free(order);
}

static bool before(const struct entry *a, const struct entry *b)
{
	return a->time < b->time || (a->time == b->time && a->number < b->number);
}

static void rise(struct entry *heap, size_t at)
{
	struct entry entry = heap[at];
	for (; at && before(&entry, &heap[(at - 1) / 2]); at = (at - 1) / 2)
		heap[at] = heap[(at - 1) / 2];
	heap[at] = entry;
}

static void sink(struct entry *heap, size_t count)
{
	struct entry entry = heap[0];
	size_t at = 0, child;
	while ((child = 2 * at + 1) < count) {
		child += child + 1 < count && before(&heap[child + 1], &heap[child]);
		if (!before(&heap[child], &entry))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = entry;
}

static void hand_on(struct fay_order *order, uint64_t time, const uint8_t *row)
{
	order->counts.rows++;
	order->counts.late += time < order->last;
	order->last = time > order->last ? time : order->last;
	order->function(order->context, row);
}

static void hand_on_earliest(struct fay_order *order)
{
	struct entry entry = order->heap[0];
	order->heap[0] = order->heap[--order->count];
	if (order->count)
		sink(order->heap, order->count);
	hand_on(order, entry.time, order->slots + (size_t)entry.slot * order->row_size);
	order->unused[order->room - order->count - 1] = entry.slot;
}

/* Room for more rows, all of it in use so far; false: there is none. */
static bool grow(struct fay_order *order)
{
	size_t room = order->room ? 2 * order->room : FIRST_ROOM;
	room = room < order->most ? room : order->most;
	if (room <= order->room || room > UINT32_MAX)
		return false;
	struct entry *heap = realloc(order->heap, room * sizeof(*heap));
	order->heap = heap ? heap : order->heap;
	uint8_t *slots = realloc(order->slots, room * order->row_size);
	order->slots = slots ? slots : order->slots;
	uint32_t *unused = realloc(order->unused, room * sizeof(*unused));
	order->unused = unused ? unused : order->unused;
	if (!heap || !slots || !unused)
		return false;
	for (size_t i = 0; i < room - order->room; i++)
		unused[i] = (uint32_t)(room - 1 - i);
	order->room = room;
	return true;
}

void fay_order_add(struct fay_order *order, const uint8_t *row)
{
	struct entry entry = { .number = order->came++ };
	memcpy(&entry.time, row + order->time_offset, sizeof(entry.time));
	if (order->count == order->room && !grow(order)) {
		/* What comes before all that is kept need not be kept. */
		if (!order->count || before(&entry, &order->heap[0])) {
			hand_on(order, entry.time, row);
			return;
		}
		hand_on_earliest(order);
	}
	entry.slot = order->unused[order->room - order->count - 1];
	memcpy(order->slots + (size_t)entry.slot * order->row_size, row, order->row_size);
	order->heap[order->count] = entry;
	rise(order->heap, order->count++);
}

void fay_order_advance(struct fay_order *order, uint64_t horizon)
{
	while (order->count && (order->heap[0].time < horizon || horizon == UINT64_MAX))
		hand_on_earliest(order);
}

void fay_order_counts(const struct fay_order *order, struct fay_order_counts *counts)
{
	*counts = order->counts;
	counts->kept = order->count;
}
