/* SPDX-License-Identifier: MIT */
/*
 * A target that scribbles over its shared memory spoils its own result only: random and chosen
 * damage to the control page, the slots and the rings. The memory ends at a page that cannot be
 * touched, so that reading past it is a crash also without ASan.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "aggregator/live/aggregator_parts.h"
#include "producer.h"

enum { SLOTS = 3, SPILL = 2048 };
static const char some_name[NAME_SIZE] = "name";
static struct fay_error failure;

/* Memory of the right shape before an inaccessible page, with a few events in each slot. */
static void make(struct test_shm *shm, struct producer producers[SLOTS])
{
	test_shm_init(shm, SLOTS, SPILL);
	uint8_t *guarded =
		mmap(NULL, shm->size + FAY_SHM_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(guarded != MAP_FAILED);
	void *moved =
		mremap(shm->control, shm->size, shm->size, MREMAP_MAYMOVE | MREMAP_FIXED, guarded);
	assert_ptr_equal(moved, guarded);
	shm->control = moved;
	for (unsigned i = 0; i < SLOTS; i++) {
		assert_true(producer_init(&producers[i], shm, 5));
		for (int j = 0; j < 20; j++)
			assert_true(producer_record(&producers[i], j % 13, some_name, j));
		assert_true(producer_emit(&producers[i], i, 0));
	}
}

static void destroy(struct test_shm *shm)
{
	munmap(shm->control, shm->size + FAY_SHM_PAGE);
}

static void look_at_everything(struct fay_aggregator *aggregator)
{
	for (unsigned i = 0; i < 3; i++) {
		int64_t drained = fay_aggregator_poll(aggregator, &failure);
		assert_true(drained >= 0 || failure.code == FAY_E_REFUSED ||
			    failure.code == FAY_E_LIMIT);
		for (uint32_t state = 0; state < STATE_COUNT; state++) {
			struct fay_result result;
			if (!fay_aggregator_snapshot(aggregator, state, &result, &failure))
				fay_result_deinit(&result);
		}
	}
}

static void scribble(uint64_t *seed, uint8_t *bytes, size_t size, unsigned words)
{
	static const uint64_t interesting[] = { 0,    1,    7,          8,          2047,
						2048, 4096, UINT32_MAX, 1ull << 63, UINT64_MAX };
	for (unsigned i = 0; i < words; i++) {
		uint64_t random = test_random(seed), at = test_random(seed) % (size / 4) * 4;
		uint64_t value =
			random % 3 ? interesting[random % 10] : test_random(seed) >> (random % 64);
		memcpy(bytes + at, &value, at + 8 <= size && random % 2 ? 8 : 4);
	}
}

static void test_random_control(void **state)
{
	uint64_t seed = 1;
	unsigned refused = 0;
	for (unsigned round = 0; round < 3000; round++) {
		struct test_shm shm;
		struct producer producers[SLOTS];
		struct fay_aggregator *aggregator;
		make(&shm, producers);
		scribble(&seed, (uint8_t *)shm.control, sizeof(struct fay_shm_control),
			 1 + round % 3);
		assert_int_equal(fay_aggregator_create(&test_schema, &aggregator, &failure), 0);
		if (fay_aggregator_add(aggregator, shm.control, shm.size, 0, &failure))
			refused++;
		else
			look_at_everything(aggregator);
		/* And while it runs. */
		scribble(&seed, (uint8_t *)shm.control, sizeof(struct fay_shm_control), 4);
		look_at_everything(aggregator);
		fay_aggregator_destroy(aggregator);
		destroy(&shm);
	}
	assert_in_range(refused, 300, 2900);
}

static void test_random_slots(void **state)
{
	uint64_t seed = 2;
	unsigned corrupt = 0;
	for (unsigned round = 0; round < 3000; round++) {
		struct test_shm shm;
		struct producer producers[SLOTS];
		struct fay_aggregator *aggregator;
		make(&shm, producers);
		assert_int_equal(fay_aggregator_create(&test_schema, &aggregator, &failure), 0);
		assert_int_equal(fay_aggregator_add(aggregator, shm.control, shm.size, 0, &failure),
				 0);
		uint8_t *slot = (uint8_t *)test_slot(&shm, round % SLOTS);
		switch (round % 4) {
		case 0: /* the header */ scribble(&seed, slot, FAY_SLOT_HEADER, 3); break;
		case 1: /* the ring */
			scribble(&seed, slot + shm.control->spill_offset, 512, 4);
			break;
		case 2: /* anything */ scribble(&seed, slot, shm.control->slot_stride, 40); break;
		default: /* all of it */
			for (size_t i = 0; i < shm.control->slot_stride; i += 8) {
				uint64_t value = test_random(&seed);
				memcpy(slot + i, &value, 8);
			}
		}
		corrupt += fay_aggregator_poll(aggregator, &failure) < 0;
		look_at_everything(aggregator);
		fay_aggregator_destroy(aggregator);
		destroy(&shm);
	}
	assert_in_range(corrupt, 500, 2900);
}

/* Each kind of damage is told once, by name, and the other slots' counts stand. */
static void check_damage(void (*damage)(struct test_shm *shm, struct fay_slot_header *slot,
					uint8_t *ring),
			 const char *message)
{
	struct test_shm shm;
	struct producer producers[SLOTS];
	struct fay_aggregator *aggregator;
	struct fay_result result;
	uint64_t total = 0;
	make(&shm, producers);
	assert_int_equal(fay_aggregator_create(&test_schema, &aggregator, &failure), 0);
	assert_int_equal(fay_aggregator_add(aggregator, shm.control, shm.size, 0, &failure), 0);
	struct fay_slot_header *slot = test_slot(&shm, 1);
	damage(&shm, slot, (uint8_t *)slot + shm.control->spill_offset);
	assert_int_equal(fay_aggregator_poll(aggregator, &failure), -1);
	assert_int_equal(failure.code, FAY_E_REFUSED);
	assert_non_null(strstr(failure.message, message));
	assert_non_null(strstr(failure.message, "slot 1 (process 5)"));
	assert_int_equal(fay_aggregator_poll(aggregator, &failure), 0);
	assert_int_equal(fay_aggregator_snapshot(aggregator, STATE_TABLE, &result, &failure), 0);
	for (size_t i = 0; i < result.row_count; i++)
		total += ((struct table_row *)result.rows)[i].count;
	assert_int_equal(total, 2 * 20);
	assert_int_equal(result.threads, 2);
	fay_result_deinit(&result);
	fay_aggregator_destroy(aggregator);
	destroy(&shm);
}

/* The consumer lives and polls: of a slot that it ignores every event is lost, at once and counted;
 * the others' are not. */
static void test_nobody_waits(void **state)
{
	struct test_shm shm;
	struct producer producers[SLOTS];
	struct fay_aggregator *aggregator;
	struct fay_result result;
	make(&shm, producers);
	assert_int_equal(fay_aggregator_create(&test_schema, &aggregator, &failure), 0);
	assert_int_equal(fay_aggregator_add(aggregator, shm.control, shm.size, 0, &failure), 0);
	struct fay_slot_header *slot = test_slot(&shm, 1);
	((struct fay_spill_record *)((uint8_t *)slot + shm.control->spill_offset))->size = 0;
	assert_int_equal(fay_aggregator_poll(aggregator, &failure), -1);
	for (unsigned i = 0; i < 1000; i++) {
		assert_false(producer_emit(&producers[1], 1, i));
		assert_true(producer_emit(&producers[2], 2, i));
		if (i == 500) /* once more, so that there seems to be room */
			slot->spill_head = slot->spill_tail + 64;
		assert_true(fay_aggregator_poll(aggregator, &failure) >= 0);
	}
	assert_int_equal(shm.control->consumer_alive, 1);
	assert_int_equal(fay_aggregator_snapshot(aggregator, STATE_TABLE, &result, &failure), 0);
	assert_int_equal(result.events_lost_full, 1000);
	fay_result_deinit(&result);
	fay_aggregator_destroy(aggregator);
	destroy(&shm);
}

static void head_too_far(struct test_shm *shm, struct fay_slot_header *slot, uint8_t *ring)
{
	slot->spill_head = slot->spill_tail + SPILL + 8;
}

static void head_backwards(struct test_shm *shm, struct fay_slot_header *slot, uint8_t *ring)
{
	slot->spill_head = slot->spill_tail - 8;
}

static void head_odd(struct test_shm *shm, struct fay_slot_header *slot, uint8_t *ring)
{
	slot->spill_head -= 3;
}

static void size_zero(struct test_shm *shm, struct fay_slot_header *slot, uint8_t *ring)
{
	((struct fay_spill_record *)ring)->size = 0;
}

static void size_huge(struct test_shm *shm, struct fay_slot_header *slot, uint8_t *ring)
{
	((struct fay_spill_record *)ring)->size = UINT32_MAX & ~7u;
}

static void rows_off(struct test_shm *shm, struct fay_slot_header *slot, uint8_t *ring)
{
	((struct fay_spill_record *)ring)->rows++;
}

static void state_unknown(struct test_shm *shm, struct fay_slot_header *slot, uint8_t *ring)
{
	((struct fay_spill_record *)ring)->state = STATE_COUNT;
}

static void state_cell(struct test_shm *shm, struct fay_slot_header *slot, uint8_t *ring)
{
	((struct fay_spill_record *)ring)->state = STATE_CELL;
}

static void test_named_damage(void **state)
{
	check_damage(head_too_far, "more than it can");
	check_damage(head_backwards, "more than it can");
	check_damage(head_odd, "more than it can");
	check_damage(size_zero, "size is invalid");
	check_damage(size_huge, "size is invalid");
	check_damage(rows_off, "does not fit its rows");
	check_damage(state_unknown, "does not exist");
	check_damage(state_cell, "neither table nor stream");
}

/* Geometry that would reach outside is refused by what it is about. */
static void test_geometry(void **state)
{
	static const struct {
		size_t offset, size;
		uint64_t value;
		const char *message;
	} cases[] = {
		{ offsetof(struct fay_shm_control, magic), 8, 1, "magic" },
		{ offsetof(struct fay_shm_control, version), 4, 2, "version" },
		{ offsetof(struct fay_shm_control, slot_max), 4, 1000000, "slots" },
		{ offsetof(struct fay_shm_control, slot_max), 4, 0, "slots" },
		{ offsetof(struct fay_shm_control, slot_stride), 8, 0, "slots" },
		{ offsetof(struct fay_shm_control, slot_stride), 8, 1ull << 63, "slots" },
		{ offsetof(struct fay_shm_control, slots_offset), 8, UINT64_MAX & ~63ull, "slots" },
		{ offsetof(struct fay_shm_control, global_offset), 8, UINT64_MAX & ~7ull,
		  "GLOBAL" },
		{ offsetof(struct fay_shm_control, global_size), 8, UINT64_MAX, "GLOBAL" },
		{ offsetof(struct fay_shm_control, local_size), 8, 8, "smaller" },
		{ offsetof(struct fay_shm_control, local_size), 8, 1 << 20, "LOCAL" },
		{ offsetof(struct fay_shm_control, spill_offset), 8, 1 << 20, "spill" },
		{ offsetof(struct fay_shm_control, spill_size), 8, 3000, "spill" },
		{ offsetof(struct fay_shm_control, spill_size), 8, 1ull << 62, "spill" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct test_shm shm;
		struct producer producers[SLOTS];
		struct fay_aggregator *aggregator;
		make(&shm, producers);
		memcpy((uint8_t *)shm.control + cases[i].offset, &cases[i].value, cases[i].size);
		assert_int_equal(fay_aggregator_create(&test_schema, &aggregator, &failure), 0);
		assert_int_equal(fay_aggregator_add(aggregator, shm.control, shm.size, 0, &failure),
				 FAY_E_REFUSED);
		if (!strstr(failure.message, cases[i].message))
			fail_msg("case %zu: %s", i, failure.message);
		fay_aggregator_destroy(aggregator);
		destroy(&shm);
	}
}

static void test_schema_refused(void **state)
{
	struct fay_schema_state states[STATE_COUNT];
	struct fay_schema schema = test_schema;
	struct fay_aggregator *aggregator;
	memcpy(states, test_schema.states, sizeof(states));
	schema.states = states;
	states[STATE_TABLE].rows = 65536;
	assert_int_equal(fay_aggregator_create(&schema, &aggregator, &failure), FAY_E_REFUSED);
	states[STATE_TABLE] = test_schema.states[STATE_TABLE];
	states[STATE_CELL].first_column = 1000;
	assert_int_equal(fay_aggregator_create(&schema, &aggregator, &failure), FAY_E_REFUSED);
	states[STATE_CELL] = test_schema.states[STATE_CELL];
	states[STATE_CELL].row_size = 8;
	assert_int_equal(fay_aggregator_create(&schema, &aggregator, &failure), FAY_E_REFUSED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_control), cmocka_unit_test(test_random_slots),
		cmocka_unit_test(test_named_damage),   cmocka_unit_test(test_nobody_waits),
		cmocka_unit_test(test_geometry),       cmocka_unit_test(test_schema_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
