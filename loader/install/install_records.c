/* SPDX-License-Identifier: MIT */
/*
 * Records of calls (dispatcher/runtime/records.c) of functions that were taken out, which nobody
 * ended. Before such a function comes back they are dropped: a call that has begun meanwhile, and
 * has none, may end at the same place of the stack.
 */
#include "install_private.h"

#include <stdlib.h>

#define TABLES_MOST (16u << 20) /* bytes, of all threads */

/* Of what is out, each sorted: count of them. */
struct out {
	uint64_t *watched; /* addresses of struct fay_watched in the target */
	uint64_t *functions;
	size_t count;
};

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static bool has(const uint64_t *values, size_t count, uint64_t value)
{
	return bsearch(&value, values, count, sizeof(value), by_value);
}

static bool find_out(const struct fay_plan *plan, struct out *out)
{
	out->watched = calloc(plan->point_count + 1, sizeof(uint64_t));
	out->functions = calloc(plan->point_count + 1, sizeof(uint64_t));
	if (!out->watched || !out->functions)
		return false;
	for (size_t i = 0; i < plan->point_count; i++) {
		if (!plan->points[i].taken_out || !plan->points[i].watched)
			continue;
		out->watched[out->count] = plan->points[i].watched;
		out->functions[out->count++] = plan->points[i].function.address;
	}
	qsort(out->watched, out->count, sizeof(uint64_t), by_value);
	qsort(out->functions, out->count, sizeof(uint64_t), by_value);
	return true;
}

/* Its function is out, or the one that it waits for. */
static bool is_stale(const struct fay_record *record, const struct out *out)
{
	return record->slot && (has(out->watched, out->count, record->watched) ||
				((record->slot & FAY_RECORD_MARKS) == FAY_RECORD_PENDING &&
				 has(out->functions, out->count, record->target)));
}

/* One thread's, `address` in the target. */
static bool drop_of(struct fay_stop *stop, uint64_t address, unsigned bits, const uint8_t *table,
		    const struct out *out)
{
	static const uint64_t none;

	for (uint64_t i = 0; i < FAY_RECORDS; i++) {
		uint64_t at = offsetof(struct fay_records, items) + (i << bits);

		if (is_stale((const struct fay_record *)(table + at), out) &&
		    fay_stop_write(stop, address + at + offsetof(struct fay_record, slot), &none,
				   sizeof(none)))
			return false;
	}
	return true;
}

bool fay_install_drop_records(const struct fay_install *install, struct fay_stop *stop)
{
	const struct fay_plan *plan = install->plan;
	unsigned bits = fay_plan_record_bits(plan);
	uint64_t stride = fay_records_stride(bits),
		 size = offsetof(struct fay_records, items) + ((uint64_t)FAY_RECORDS << bits),
		 used = __atomic_load_n(&install->shm->slot_next, __ATOMIC_ACQUIRE);
	struct out out = { 0 };
	uint8_t *table;
	bool done;

	if (!plan->records_size)
		return true;
	if (used > plan->geometry.slot_max)
		used = plan->geometry.slot_max;
	if (used * stride > TABLES_MOST)
		return false;
	table = malloc(size);
	done = table && find_out(plan, &out);
	for (uint64_t i = 0; i < used && done; i++) {
		uint64_t address = plan->records_address + i * stride;

		done = !fay_stop_read(stop, address, table, size) &&
		       drop_of(stop, address, bits, table, &out);
	}
	free(table);
	free(out.watched);
	free(out.functions);
	return done;
}
