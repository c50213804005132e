/* SPDX-License-Identifier: MIT */
/*
 * Sessions on a live target: exact counts whatever the prologue, registers kept, threads, forks,
 * signals, two sessions, storms of attaching under load. After each, the target's text is byte for
 * byte what it was and nothing of ours is mapped.
 */
#include "../harness.h"

#include <time.h>
#include <unistd.h>

#define PROGRAM "fay-test-target"

static void test_prologues(void **state)
{
	static const char *names[] = {
		"fn_plain", "fn_endbr", "fn_riprel", "fn_callreg", "fn_jcc",
		"fn_tail",  "fn_tiny",  "fn_next",   "fn_c",       "fn_call"
	};
	struct victim victim;
	uint64_t checksum;

	victim_start(&victim);
	checksum = victim_ask(&victim, "checksum");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct fay_target *target;
		struct fay_session *session;
		struct hand_verdict hand;
		char pattern[64];

		snprintf(pattern, sizeof(pattern), PROGRAM "!%s", names[i]);
		hand_verdict(&hand, i % 2 ? PROBE_GREEDY : PROBE_COUNT, pattern);
		session = attach(&victim, &target, &hand);
		assert_int_equal(fay_session_point_count(session), 1);
		assert_true(victim_ask(&victim, "checksum") != checksum);
		assert_int_equal(victim_ask(&victim, "run %s 2 1000", names[i]), 2000);
		assert_int_equal(total(session, 0), 2000);
		detach(session, target);
		assert_clean(&victim, checksum);
		assert_int_equal(victim_ask(&victim, "run %s 1 10", names[i]), 10);
	}
	victim_end(&victim);
}

static void test_refused_prologues(void **state)
{
	static const struct {
		const char *name, *reason;
	} cases[] = { { "fn_short", "is 1 byte long" },
		      { "fn_loopback", "jump into its first" },
		      { "fn_loopentry", "loop back to its first" },
		      { "fn_callearly", "call within its first" },
		      { "fn_behind", "entered at +0x3 by a jump from another function" },
		      { "fn_behind_near", "entered at +0x3 by a jump from another function" } };
	struct victim victim;
	struct fay_target *target;
	struct fay_error error;
	uint64_t checksum;

	victim_start(&victim);
	checksum = victim_ask(&victim, "checksum");
	assert_int_equal(fay_target_open_pid(victim.pid, &target, &error), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fay_session *session;
		struct hand_verdict hand;
		char pattern[64];

		snprintf(pattern, sizeof(pattern), PROGRAM "!%s", cases[i].name);
		hand_verdict(&hand, PROBE_COUNT, pattern);
		assert_int_equal(fay_session_attach(target, &hand.verdict, NULL, &session, &error),
				 FAY_E_REFUSED);
		if (!strstr(error.message, cases[i].reason) ||
		    !strstr(error.message, cases[i].name))
			fail_msg("%s: %s", cases[i].name, error.message);
	}
	fay_target_close(target);
	assert_clean(&victim, checksum);
	victim_end(&victim);
}

static void test_registers(void **state)
{
	struct victim victim;

	victim_start(&victim);
	for (int which = PROBE_COUNT; which <= PROBE_EMIT; which++) {
		struct fay_target *target;
		struct fay_session *session;
		struct hand_verdict hand;

		hand_verdict(&hand, which, PROGRAM "!fn_spare");
		session = attach(&victim, &target, &hand);
		for (int i = 0; i < 3; i++)
			assert_int_equal(victim_ask(&victim, "registers"), 0);
		assert_int_equal(total(session, 0), 3);
		detach(session, target);
	}
	victim_end(&victim);
}

static uint64_t realtime_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void test_event(void **state)
{
	struct victim victim;
	struct fay_target *target;
	struct fay_session *session;
	struct hand_verdict hand;
	struct fay_event event;
	uint64_t began, before, after, off;

	victim_start(&victim);
	hand_verdict(&hand, PROBE_EVENT, PROGRAM "!fn_spare");
	began = realtime_ns();
	session = attach(&victim, &target, &hand);
	before = realtime_ns();
	victim_ask(&victim, "registers");
	after = realtime_ns();
	memcpy(&event, local_of(session, 0) + 1, sizeof(event));
	assert_int_equal(event.arg[0], 0xffff);
	assert_int_equal(event.arg[1], 0xeeee);
	assert_int_equal(event.arg[2], 0x3333);
	assert_int_equal(event.arg[3], 0x2222);
	assert_int_equal(event.arg[4], 0x4444);
	assert_int_equal(event.arg[5], 0x5555);
	/* its clock is the system's when the session begins, and drifts by some microseconds a
	 * second, or as the system's is corrected */
	off = 1000000 + (after - began) / 1000;
	assert_in_range(event.time, before - off, after + off);
	assert_int_equal(event.function, fay_name_hash("fn_spare"));
	assert_int_equal(event.module, fay_name_hash(PROGRAM));
	assert_int_equal(event.pid, victim.pid);
	assert_int_equal(event.tid, victim.pid);
	assert_true(event.cpu < 4096);
	assert_int_equal(event.reserved, 0);
	assert_memory_equal(event.comm, "fay-test-target", 16);
	assert_int_equal(event.stack_pointer % 16, 8);
	detach(session, target);
	victim_end(&victim);
}

static void test_threads_exact(void **state)
{
	struct scene scene;

	scene_start(&scene, PROBE_COUNT, PROGRAM "!fn_c");
	assert_int_equal(victim_ask(&scene.victim, "run fn_c 8 2000000"), 16000000);
	assert_int_equal(total(scene.session, 0), 16000000);
	/* new threads, old stacks */
	assert_int_equal(victim_ask(&scene.victim, "run fn_c 8 1000"), 8000);
	assert_int_equal(total(scene.session, 0), 16008000);
	assert_true(slots_used(scene.session) <= 16);
	assert_int_equal(lost_reentrant(scene.session), 0);
	scene_end(&scene);
}

/* Two patterns and an alias pattern that meet at one function run both probes there. */
static void test_two_probes_one_function(void **state)
{
	struct victim victim;
	struct fay_target *target;
	struct fay_session *session;
	struct hand_verdict hand;

	victim_start(&victim);
	hand_verdict(&hand, PROBE_GREEDY, PROGRAM "!fn_plain");
	hand_verdict_also(&hand, PROGRAM "!fn_pl*");
	session = attach(&victim, &target, &hand);
	assert_int_equal(fay_session_point_count(session), 1);
	assert_int_equal(victim_ask(&victim, "run fn_plain 2 500"), 1000);
	assert_int_equal(total(session, 0), 2000);
	detach(session, target);
	victim_end(&victim);
}

static void test_glob_skips(void **state)
{
	struct scene scene;

	scene_start(&scene, PROBE_COUNT, PROGRAM "!fn_*");
	assert_int_equal(fay_session_point_count(scene.session), 12); /* fn_beside is one of them */
	assert_int_equal(fay_session_skipped_count(scene.session), 6);
	assert_int_equal(victim_ask(&scene.victim, "run fn_call 1 100"), 100);
	assert_int_equal(total(scene.session, 0), 200); /* fn_call calls fn_plain */
	assert_int_equal(victim_ask(&scene.victim, "run fn_tail 1 100"), 100);
	assert_int_equal(total(scene.session, 0), 400);
	assert_int_equal(victim_ask(&scene.victim, "run enters_near 1 100"), 100);
	assert_int_equal(victim_ask(&scene.victim, "run enters_far 1 100"), 100);
	/* neither is traced, nor is what they jump into */
	assert_int_equal(total(scene.session, 0), 400);
	scene_end(&scene);
}

static void test_storm(void **state)
{
	struct victim victim;
	uint64_t checksum, seen = 0;

	victim_start(&victim);
	checksum = victim_ask(&victim, "checksum");
	for (int round = 0; round < 2; round++) {
		victim_ask(&victim, "start %s 6", round ? "fn_riprel" : "fn_call");
		for (int i = 0; i < 100; i++) {
			struct fay_target *target;
			struct fay_session *session;
			struct hand_verdict hand;

			hand_verdict(&hand, i % 2 ? PROBE_SLOW : PROBE_COUNT, PROGRAM "!fn_*");
			session = attach(&victim, &target, &hand);
			for (int rounds = 0;
			     i % 10 == 0 && total(session, 0) == 0 && rounds < 10000; rounds++)
				usleep(2000);
			seen += total(session, 0) > 0;
			detach(session, target);
		}
		assert_true(victim_ask(&victim, "stop") > 0);
		assert_clean(&victim, checksum);
	}
	assert_true(seen >= 20);
	victim_end(&victim);
}

static void test_fork(void **state)
{
	struct scene scene;
	uint64_t child;

	scene_start(&scene, PROBE_COUNT, PROGRAM "!fn_plain");
	victim_ask(&scene.victim, "run fn_plain 1 10");
	child = victim_ask(&scene.victim, "fork fn_plain 1234");
	assert_int_equal(total(scene.session, FAY_PID_UNKNOWN), 1234);
	assert_int_equal(total(scene.session, (uint32_t)scene.victim.pid), 10);
	assert_int_equal(mappings((pid_t)child, "fay-code"), 1);
	assert_int_equal(fay_session_detach(scene.session, NULL), 0);
	assert_int_equal(mappings((pid_t)child, "fay-code"), 0);
	assert_int_equal(victim_ask(&scene.victim, "reap"), 0);
	/* detached: the second half is not counted */
	assert_int_equal(total(scene.session, FAY_PID_UNKNOWN), 1234);
	scene_end(&scene);
}

/* /proc shows the memory of a process whose first thread has ended under its other threads' numbers
 * only. */
static void test_first_thread_ends(void **state)
{
	struct victim victim;
	struct fay_target *target;
	struct fay_session *session;
	struct hand_verdict hand;
	struct fay_installed_sessions list;
	struct fay_error error;
	uint64_t checksum, start;
	pid_t thread;

	victim_start(&victim);
	checksum = victim_ask(&victim, "checksum");
	start = fay_process_start(victim.pid);
	hand_verdict(&hand, PROBE_COUNT, PROGRAM "!fn_plain");
	session = attach(&victim, &target, &hand);
	thread = (pid_t)victim_ask(&victim, "leave");
	while (mappings(victim.pid, "fay-code")) /* joined before it has ended */
		usleep(1000);
	assert_true(fay_process_start(victim.pid) == start);
	assert_int_equal(victim_ask(&victim, "run fn_plain 2 1000"), 2000);
	assert_int_equal(total(session, 0), 2000);
	assert_int_equal(fay_installed_sessions(victim.pid, &list, &error), 0);
	assert_int_equal(list.count, 1);
	assert_int_equal(list.items[0].owner_state, FAY_OWNER_LIVES);
	fay_installed_sessions_deinit(&list);
	assert_int_equal(mappings(thread, "fay-code"), 1);
	detach(session, target);
	assert_int_equal(mappings(thread, "fay-code"), 0);
	assert_true(victim_ask(&victim, "checksum") == checksum);
	assert_int_equal(victim_ask(&victim, "run fn_plain 2 10"), 20);
	assert_int_equal(fay_target_open_pid(victim.pid, &target, &error), FAY_E_REFUSED);
	assert_non_null(strstr(error.message, "its first thread has exited"));
	victim_end(&victim);
}

static void test_signals(void **state)
{
	struct scene scene;
	unsigned long long calls, handled;

	scene_start(&scene, PROBE_SLOW, PROGRAM "!fn_plain");
	victim_ask(&scene.victim, "signals fn_plain 10000000");
	assert_int_equal(sscanf(scene.victim.answer, "%llu %llu", &calls, &handled), 2);
	assert_true(handled > 10);
	assert_int_equal(total(scene.session, 0) + lost_reentrant(scene.session), calls + handled);
	scene_end(&scene);
}

/* A on the function, B over it: both count; they leave in either order. */
static void test_two_sessions(void **state)
{
	struct victim victim;
	uint64_t checksum;

	victim_start(&victim);
	checksum = victim_ask(&victim, "checksum");
	for (int order = 0; order < 2; order++) {
		struct fay_target *target_a, *target_b;
		struct fay_session *a, *b;
		struct hand_verdict hand;

		hand_verdict(&hand, PROBE_COUNT, PROGRAM "!fn_riprel");
		a = attach(&victim, &target_a, &hand);
		hand_verdict(&hand, PROBE_GREEDY, PROGRAM "!fn_riprel");
		b = attach(&victim, &target_b, &hand);
		assert_int_equal(victim_ask(&victim, "run fn_riprel 2 1000"), 2000);
		assert_int_equal(total(a, 0), 2000);
		assert_int_equal(total(b, 0), 2000);
		assert_int_equal(fay_session_detach(order ? a : b, NULL), 0);
		assert_int_equal(victim_ask(&victim, "run fn_riprel 2 1000"), 2000);
		assert_int_equal(total(order ? b : a, 0), 4000);
		assert_int_equal(total(order ? a : b, 0), 2000);
		assert_int_equal(mappings(victim.pid, "fay-code"), 1);
		detach(a, target_a);
		detach(b, target_b);
		assert_clean(&victim, checksum);
	}
	victim_end(&victim);
}

static void test_three_sessions_middle_leaves(void **state)
{
	struct victim victim;
	struct fay_target *targets[3];
	struct fay_session *sessions[3];
	struct hand_verdict hand;
	uint64_t checksum;

	victim_start(&victim);
	checksum = victim_ask(&victim, "checksum");
	hand_verdict(&hand, PROBE_COUNT, PROGRAM "!fn_c");
	for (int i = 0; i < 3; i++)
		sessions[i] = attach(&victim, &targets[i], &hand);
	victim_ask(&victim, "run fn_c 1 100");
	detach(sessions[1], targets[1]);
	victim_ask(&victim, "run fn_c 1 100");
	assert_int_equal(total(sessions[0], 0), 200);
	assert_int_equal(total(sessions[2], 0), 200);
	detach(sessions[0], targets[0]);
	victim_ask(&victim, "run fn_c 1 100");
	assert_int_equal(total(sessions[2], 0), 300);
	detach(sessions[2], targets[2]);
	assert_clean(&victim, checksum);
	victim_end(&victim);
}

/* No consumer: the ring fills, the rest is counted as lost, and the records in it are well formed.
 * */
static void test_emit(void **state)
{
	struct scene scene;
	struct fay_shm_control *shm;
	struct fay_slot_header *slot;
	uint64_t records = 0;
	size_t size;

	scene_start(&scene, PROBE_EMIT, PROGRAM "!fn_plain");
	assert_int_equal(victim_ask(&scene.victim, "run fn_plain 1 100000"), 100000);
	shm = fay_session_shm(scene.session, &size);
	slot = (void *)((char *)shm + shm->slots_offset);
	for (uint64_t at = 0; at < slot->spill_head; records++) {
		const struct fay_spill_record *record =
			(void *)((char *)slot + shm->spill_offset + at % shm->spill_size);

		assert_int_equal(record->size, 8 + 96);
		assert_int_equal(record->rows, 1);
		at += record->size;
	}
	assert_true(records > 1000);
	assert_int_equal(records + slot->lost_full, 100000);
	assert_int_equal(total(scene.session, 0), 100000);
	scene_end(&scene);
}

/* A consumer that was killed never clears its flag: one wait, not one for every event. */
static void test_dead_consumer(void **state)
{
	struct scene scene;
	struct fay_shm_control *shm;
	struct timespec before, after;
	size_t size;

	scene_start(&scene, PROBE_EMIT, PROGRAM "!fn_plain");
	shm = fay_session_shm(scene.session, &size);
	shm->consumer_alive = 1;
	clock_gettime(CLOCK_MONOTONIC, &before);
	assert_int_equal(victim_ask(&scene.victim, "run fn_plain 1 10000"), 10000);
	clock_gettime(CLOCK_MONOTONIC, &after);
	assert_int_equal(shm->consumer_alive, 0);
	/* each event's would take a quarter of an hour */
	assert_true(after.tv_sec - before.tv_sec < 300);
	scene_end(&scene);
}

/* One slot only: the second thread's events are counted as lost. */
static void test_no_slot(void **state)
{
	struct fay_attach_options options = { .size = sizeof(options), .slot_max = 1 };
	struct victim victim;
	struct fay_target *target;
	struct fay_session *session;
	struct hand_verdict hand;
	struct fay_error error;
	size_t size;

	victim_start(&victim);
	hand_verdict(&hand, PROBE_COUNT, PROGRAM "!fn_c");
	assert_int_equal(fay_target_open_pid(victim.pid, &target, &error), 0);
	assert_int_equal(fay_session_attach(target, &hand.verdict, &options, &session, &error), 0);
	assert_int_equal(victim_ask(&victim, "run fn_c 3 100"), 300);
	assert_int_equal(total(session, 0) + fay_session_shm(session, &size)->lost_no_slot, 300);
	assert_int_equal(slots_used(session), 1);
	detach(session, target);
	victim_end(&victim);
}

/* Static, no library, fs base 0: the trampoline must fall back on rdfsbase. */
static void test_bare(void **state)
{
	struct victim victim;
	struct fay_target *target;
	struct fay_session *session;
	struct hand_verdict hand;

	victim_start_program(&victim, BARE_PROGRAM);
	hand_verdict(&hand, PROBE_SLOW, "*!fn_bare");
	session = attach(&victim, &target, &hand);
	for (int i = 0; i < 10; i++)
		assert_int_equal(victim_ask(&victim, "go"), 1000);
	assert_int_equal(total(session, 0), 10000);
	assert_int_equal(slots_used(session), 1);
	detach(session, target);
	assert_int_equal(victim_ask(&victim, "go"), 1000);
	assert_int_equal(mappings(victim.pid, "memfd:fay-"), 0);
	victim_end(&victim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_prologues),
		cmocka_unit_test(test_refused_prologues),
		cmocka_unit_test(test_registers),
		cmocka_unit_test(test_event),
		cmocka_unit_test(test_threads_exact),
		cmocka_unit_test(test_two_probes_one_function),
		cmocka_unit_test(test_glob_skips),
		cmocka_unit_test(test_storm),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_first_thread_ends),
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_two_sessions),
		cmocka_unit_test(test_three_sessions_middle_leaves),
		cmocka_unit_test(test_emit),
		cmocka_unit_test(test_dead_consumer),
		cmocka_unit_test(test_no_slot),
		cmocka_unit_test(test_bare),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
