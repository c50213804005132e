/* SPDX-License-Identifier: MIT */
/* Small rings that nobody empties, for each way to deal with a full one: what stays in the ring,
 * and that the losses are exact. */
#include "harness.h"

#include <signal.h>
#include <unistd.h>

#include "fay/shm.h"

#define PROGRAM "fay-test-target"
#define RING 4096u
#define RECORD (8u + 96u)
#define CALLS 20000u

struct ring {
	struct victim victim;
	struct fay_target *target;
	struct fay_session *session;
	struct hand_verdict hand;
	struct fay_shm_control *shm;
};

static void begin(struct ring *r, enum fay_when_full when_full)
{
	struct fay_attach_options options = { .size = sizeof(options),
					      .when_full = when_full,
					      .ring_bytes = RING };
	struct fay_error error = { 0 };
	size_t size;

	victim_start(&r->victim);
	hand_verdict(&r->hand, PROBE_EMIT, PROGRAM "!fn_plain");
	if (fay_target_open_pid(r->victim.pid, &r->target, &error) ||
	    fay_session_attach(r->target, &r->hand.verdict, &options, &r->session, &error))
		fail_msg("attach: %s", error.message);
	r->shm = fay_session_shm(r->session, &size);
	assert_int_equal(r->shm->spill_size, RING);
	assert_int_equal(r->shm->when_full, when_full);
}

static void end(struct ring *r)
{
	detach(r->session, r->target);
	victim_end(&r->victim);
}

static struct fay_slot_header *slot_of(const struct ring *r)
{
	return (void *)((char *)r->shm + r->shm->slots_offset);
}

/* What is in the ring is whole. Returns how many records. */
static uint64_t count_records(const struct ring *r)
{
	const struct fay_slot_header *slot = slot_of(r);
	uint64_t count = 0;

	for (uint64_t at = slot->spill_tail; at < slot->spill_head; count++) {
		const struct fay_spill_record *record =
			(void *)((char *)slot + r->shm->spill_offset + at % RING);

		assert_int_equal(record->size, RECORD);
		assert_int_equal(record->rows, 1);
		at += record->size;
	}
	return count;
}

static void run(const struct ring *r, unsigned calls)
{
	assert_int_equal(victim_ask((struct victim *)&r->victim, "run fn_plain 1 %u", calls),
			 calls);
	assert_int_equal(total(r->session, 0) % calls, 0);
}

/* The first calls stay. With FAY_FULL_BLOCK and nobody alive, too. */
static void test_newest_lost(void **state)
{
	for (int block = 0; block < 2; block++) {
		struct ring r;

		begin(&r, block ? FAY_FULL_BLOCK : FAY_FULL_DROP);
		/* alive, but it does not come: nobody waits for it */
		r.shm->consumer_alive = !block;
		run(&r, CALLS);
		assert_int_equal(count_records(&r), RING / RECORD);
		assert_int_equal(slot_of(&r)->spill_tail, 0);
		assert_int_equal(slot_of(&r)->lost_full, CALLS - RING / RECORD);
		assert_int_equal(r.shm->consumer_alive, !block);
		end(&r);
	}
}

/* The last calls stay. */
static void test_oldest_lost(void **state)
{
	struct ring r;
	struct fay_slot_header *slot;

	begin(&r, FAY_FULL_OVERWRITE);
	r.shm->consumer_alive = 1;
	run(&r, CALLS);
	slot = slot_of(&r);
	assert_int_equal(count_records(&r), RING / RECORD);
	assert_int_equal(slot->spill_head, (uint64_t)CALLS * RECORD);
	assert_int_equal(slot->lost_full, CALLS - RING / RECORD);
	assert_int_equal(r.shm->consumer_alive, 1);
	end(&r);
}

/* Until the thread has looked at its full ring again, or given up. */
static void await_look(const struct ring *r, uint32_t wake)
{
	while (__atomic_load_n(&r->shm->wake, __ATOMIC_ACQUIRE) == wake &&
	       __atomic_load_n(&r->shm->consumer_alive, __ATOMIC_ACQUIRE))
		usleep(100);
}

/* A thread waits for room and stands still for longer than it would wait; then the consumer comes.
 * Returns how many events were lost. */
static uint64_t stop_waiting_thread(void)
{
	const unsigned calls = RING / RECORD + 5;
	struct fay_slot_header *slot;
	struct ring r;
	uint64_t lost;
	uint32_t wake;

	begin(&r, FAY_FULL_BLOCK);
	slot = slot_of(&r);
	r.shm->consumer_alive = 1;
	victim_tell(&r.victim, "run fn_plain 1 %u", calls);
	while (__atomic_load_n(&slot->spill_head, __ATOMIC_ACQUIRE) + RECORD <= RING)
		usleep(100);
	await_look(&r, 1); /* 1: its ring was half full */
	kill(r.victim.pid, SIGSTOP);
	usleep(300000);
	wake = r.shm->wake;
	kill(r.victim.pid, SIGCONT);
	await_look(&r, wake);
	__atomic_store_n(&slot->spill_tail, slot->spill_head, __ATOMIC_RELEASE);
	assert_int_equal(victim_answer(&r.victim), calls);
	lost = slot->lost_full;
	end(&r);
	return lost;
}

/* A machine that stands still, or has no processor to give, is no sign that the consumer is gone.
 * Here it could be slow before the thread is stopped, too: five tries. */
static void test_stopped(void **state)
{
	unsigned tries = 1;

	while (stop_waiting_thread() && tries < 5)
		tries++;
	assert_true(tries < 5);
}

/* A ring that its consumer refuses, by a tail that cannot be: nobody waits for it, though the
 * consumer is alive. Who waits in vain says that it is not. */
static void test_refused_ring(void **state)
{
	struct ring r;
	struct fay_slot_header *slot;
	uint64_t lost;

	begin(&r, FAY_FULL_BLOCK);
	r.shm->consumer_alive = 0;
	run(&r, CALLS);
	slot = slot_of(&r);
	slot->spill_tail = slot->spill_head - 2 * RING;
	lost = slot->lost_full;
	r.shm->consumer_alive = 1;
	run(&r, CALLS);
	assert_int_equal(slot->lost_full - lost, CALLS);
	assert_int_equal(r.shm->consumer_alive, 1);
	end(&r);
}

/* What the program may write over: its calls go on and end, and the ring is in bounds. */
static void test_scribbled(void **state)
{
	static const uint32_t sizes[] = { 0, 4, 7, 8, 12, 4096, UINT32_MAX };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct ring r;
		struct fay_slot_header *slot;

		begin(&r, FAY_FULL_OVERWRITE);
		run(&r, 1000);
		slot = slot_of(&r);
		for (uint64_t at = 0; at < RING; at += 8)
			memcpy((char *)slot + r.shm->spill_offset + at,
			       &(struct fay_spill_record){ .size = sizes[i], .rows = 1 }, 8);
		run(&r, 1000);
		assert_true(slot->spill_head - slot->spill_tail <= RING);
		slot->spill_tail = slot->spill_head + 8 * i + i; /* ahead of the head */
		run(&r, 1000);
		end(&r);
	}
}

static void test_refused(void **state)
{
	static const struct {
		uint64_t bytes;
		int when_full, kind;
	} cases[] = { { 100, FAY_FULL_DROP, FAY_STATE_STREAM },
		      { 12288, FAY_FULL_DROP, FAY_STATE_STREAM },
		      { FAY_RING_BYTES_MAX * 2, FAY_FULL_DROP, FAY_STATE_STREAM },
		      { 0, 3, FAY_STATE_STREAM },
		      { 0, FAY_FULL_OVERWRITE, FAY_STATE_TABLE } };
	struct victim victim;
	struct hand_verdict hand;
	struct fay_target *target;
	struct fay_error error = { 0 };

	victim_start(&victim);
	assert_int_equal(fay_target_open_pid(victim.pid, &target, &error), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fay_attach_options options = {
			.size = sizeof(options),
			.when_full = (enum fay_when_full)cases[i].when_full,
			.ring_bytes = cases[i].bytes
		};
		struct fay_session *session = NULL;

		hand_verdict(&hand, PROBE_EMIT, PROGRAM "!fn_plain");
		hand.states[0].kind = (uint16_t)cases[i].kind;
		assert_int_not_equal(
			fay_session_attach(target, &hand.verdict, &options, &session, &error), 0);
		assert_int_equal(mappings(victim.pid, "fay-code"), 0);
	}
	fay_target_close(target);
	victim_end(&victim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_newest_lost),  cmocka_unit_test(test_oldest_lost),
		cmocka_unit_test(test_scribbled),    cmocka_unit_test(test_stopped),
		cmocka_unit_test(test_refused_ring), cmocka_unit_test(test_refused)
	};

	return cmocka_run_group_tests_name("rings", tests, NULL, NULL);
}
