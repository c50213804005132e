/* SPDX-License-Identifier: MIT */
/*
 * Computes variables (compute.h): compiled to LLVM bitcode when Fay is built, linked into a query's
 * module, guarded and verified with it.
 */
#include "compute.h"

#include <stdbool.h>

#include "fay/event.h"

extern int64_t fay_try_read(void *to, uint64_t size, uint64_t address);

/* Odd, as Fibonacci hashing has it. */
#define FACTOR 0x9e3779b97f4a7c15u

struct fay_query_computed {
	uint64_t value, known;
};

struct machine {
	uint64_t low, middle, high; /* the program */
	uint64_t at;                /* the next byte */
	uint64_t top, second, third, fourth;
	uint64_t known;
};

/* The 8 bytes there, zeros behind the program. */
static uint64_t window(const struct machine *m)
{
	uint64_t word = m->at >> 3, bit = 8 * (m->at & 7);
	uint64_t first = word == 0 ? m->low : word == 1 ? m->middle : word == 2 ? m->high : 0;
	uint64_t next = word == 0 ? m->middle : word == 1 ? m->high : 0;
	return first >> bit | next << 1 << (63 - bit);
}

static void push(struct machine *m, uint64_t value)
{
	m->fourth = m->third;
	m->third = m->second;
	m->second = m->top;
	m->top = value;
}

/* Who becomes the second. */
static void drop_second(struct machine *m)
{
	m->second = m->third;
	m->third = m->fourth;
	m->fourth = 0;
}

static void pop(struct machine *m)
{
	m->top = m->second;
	drop_second(m);
}

/* --- what calls began with --- */

static uint64_t mix(uint64_t sum, uint64_t value)
{
	sum = (sum ^ value) * FACTOR;
	return sum ^ sum >> 32;
}

static uint64_t sum_of(const uint64_t arguments[FAY_COMPUTE_ARGUMENTS], uint64_t stack,
		       uint64_t function, uint64_t pid)
{
	uint64_t sum = mix(mix(mix(1, stack), function), pid);
	for (unsigned i = 0; i < FAY_COMPUTE_ARGUMENTS; i++)
		sum = mix(sum, arguments[i]);
	return sum;
}

static struct fay_compute_call *call_at(struct fay_compute_calls *calls, uint64_t stack)
{
	return &calls->items[stack * FACTOR >> 32 & (FAY_COMPUTE_CALLS - 1)];
}

void fay_query_call_begins(const struct fay_event *event, struct fay_compute_calls *calls)
{
	volatile struct fay_compute_call *call = call_at(calls, event->stack_pointer);
	for (unsigned i = 0; i < FAY_COMPUTE_ARGUMENTS; i++)
		call->arguments[i] = event->arg[i];
	call->sum = sum_of(event->arg, event->stack_pointer, event->address, event->pid);
}

static uint64_t find_argument(struct machine *m, const struct fay_event *event,
			      struct fay_compute_calls *calls, uint64_t number, uint64_t distance)
{
	uint64_t arguments[FAY_COMPUTE_ARGUMENTS], stack = m->top - 8, found = 0;
	const volatile struct fay_compute_call *call = call_at(calls, stack);
	for (unsigned i = 0; i < FAY_COMPUTE_ARGUMENTS; i++) {
		arguments[i] = call->arguments[i];
		found = i == number ? arguments[i] : found;
	}
	m->known &= call->sum == sum_of(arguments, stack, event->address + distance, event->pid);
	return found;
}

/* --- */

static uint64_t combined(uint64_t operation, uint64_t a, uint64_t b)
{
	int64_t x = (int64_t)a, y = (int64_t)b;
	switch (operation) {
	case FAY_COMPUTE_ADD: return a + b;
	case FAY_COMPUTE_SUBTRACT: return a - b;
	case FAY_COMPUTE_MULTIPLY: return a * b;
	case FAY_COMPUTE_AND: return a & b;
	case FAY_COMPUTE_OR: return a | b;
	case FAY_COMPUTE_XOR: return a ^ b;
	case FAY_COMPUTE_LEFT: return b < 64 ? a << b : 0;
	case FAY_COMPUTE_RIGHT: return b < 64 ? a >> b : 0;
	case FAY_COMPUTE_RIGHT_SIGNED: return (uint64_t)(x >> (b < 64 ? b : 63));
	case FAY_COMPUTE_DIVIDE: return y == -1 ? -a : (uint64_t)(x / (y ? y : 1));
	case FAY_COMPUTE_EQUAL: return a == b;
	case FAY_COMPUTE_UNEQUAL: return a != b;
	case FAY_COMPUTE_LESS: return x < y;
	default: return x <= y;
	}
}

static uint64_t read_word(struct machine *m, uint64_t operation)
{
	uint64_t word = 0;
	switch (operation) {
	case FAY_COMPUTE_READ1: m->known &= !fay_try_read(&word, 1, m->top); break;
	case FAY_COMPUTE_READ2: m->known &= !fay_try_read(&word, 2, m->top); break;
	case FAY_COMPUTE_READ4: m->known &= !fay_try_read(&word, 4, m->top); break;
	default: m->known &= !fay_try_read(&word, 8, m->top); break;
	}
	return word;
}

static uint64_t changed(uint64_t operation, uint64_t top)
{
	switch (operation) {
	case FAY_COMPUTE_NEGATE: return -top;
	case FAY_COMPUTE_NOT: return ~top;
	case FAY_COMPUTE_ABSOLUTE: return (int64_t)top < 0 ? -top : top;
	case FAY_COMPUTE_SIGNED1: return (uint64_t)(int8_t)top;
	case FAY_COMPUTE_SIGNED2: return (uint64_t)(int16_t)top;
	case FAY_COMPUTE_SIGNED4: return (uint64_t)(int32_t)top;
	case FAY_COMPUTE_UNSIGNED1: return (uint8_t)top;
	case FAY_COMPUTE_UNSIGNED2: return (uint16_t)top;
	default: return (uint32_t)top;
	}
}

static void plain(struct machine *m, uint64_t operation)
{
	uint64_t top = m->top;
	if (operation <= FAY_COMPUTE_READ8) {
		m->top = read_word(m, operation);
	} else if (operation <= FAY_COMPUTE_UNSIGNED4) {
		m->top = changed(operation, top);
	} else if (operation == FAY_COMPUTE_DROP) {
		pop(m);
	} else if (operation == FAY_COMPUTE_SWAP) {
		m->top = m->second;
		m->second = top;
	} else {
		push(m, operation == FAY_COMPUTE_OVER ? m->second : top);
	}
}

/* How many bytes follow the operation. */
static uint64_t size_of(uint64_t group, uint64_t which)
{
	return group == FAY_COMPUTE_NUMBER1                                   ? 1u << (which & 3)
	       : group == FAY_COMPUTE_REGISTER4 || group == FAY_COMPUTE_ENTRY ? 4
	       : group == FAY_COMPUTE_REGISTER1 || group == FAY_COMPUTE_SKIP  ? 1
									      : 0;
}

static inline __attribute__((always_inline)) struct fay_query_computed
compute(const struct fay_event *event, bool keeps, struct fay_compute_calls *calls, uint64_t low,
	uint64_t middle, uint64_t high)
{
	struct machine m = { .low = low, .middle = middle, .high = high };
	/* by itself: the event's fields are not all there to be read */
	const uint64_t place = *(const volatile uint64_t *)&event->address;
	m.known = (low & 0xff) != 0;
	for (unsigned step = 0; step < FAY_COMPUTE_BYTES; step++) {
		uint64_t bytes = window(&m), operation = bytes & 0xff, group = bytes & 0xe0;
		uint64_t which = bytes & 0x1f, size = size_of(group, which);
		uint64_t unused = (64 - 8 * size) & 63;
		uint64_t number = (uint64_t)((int64_t)(bytes >> 8 << unused) >> unused);
		uint64_t word = which & FAY_COMPUTE_PLACE ? place : event->reg[which & 15];
		m.at += 1 + size;
		number = size ? number : 0;
		if (operation == FAY_COMPUTE_END)
			break;
		if (group == 0) {
			plain(&m, operation);
		} else if (group == FAY_COMPUTE_ADD) {
			m.top = combined(operation, m.second, m.top);
			drop_second(&m);
		} else if (group == FAY_COMPUTE_ENTRY) {
			m.known &= keeps;
			if (keeps)
				m.top = find_argument(&m, event, calls, which, number);
		} else if (group == FAY_COMPUTE_SKIP) {
			bool sometimes = which != 0;
			m.at += !sometimes || m.top ? number & 0x1f : 0;
			if (sometimes)
				pop(&m);
		} else {
			push(&m, (group == FAY_COMPUTE_NUMBER1 ? 0 : word) + number);
		}
	}
	return (struct fay_query_computed){ m.known ? m.top : 0, m.known };
}

struct fay_query_computed fay_query_compute(const struct fay_event *event, uint64_t low,
					    uint64_t middle, uint64_t high)
{
	return compute(event, false, 0, low, middle, high);
}

/* With what calls began with. */
struct fay_query_computed fay_query_compute_call(const struct fay_event *event, uint64_t low,
						 uint64_t middle, uint64_t high,
						 struct fay_compute_calls *calls)
{
	return compute(event, true, calls, low, middle, high);
}
