/* SPDX-License-Identifier: MIT */
/*
 * A program whose threads are nearly always in a restartable sequence (rseq(2)) is stopped, made to
 * run system calls, attached to and detached from: no increment of its per-CPU counters is lost.
 * Functions whose first instructions are within a sequence are not traced.
 */
#include "harness.h"

#include "loader/stop/stop.h"

#include <sys/syscall.h>
#include <unistd.h>

#define ROUNDS 200

static bool begin(struct victim *victim)
{
	victim_start_program(victim, TARGET_PROGRAM);
	if (strtoull(victim->answer, NULL, 10))
		return true;
	print_message("skipped: the kernel or the C library has no restartable sequences here\n");
	victim_end(victim);
	return false;
}

static void right_total(struct victim *victim)
{
	uint64_t missing = victim_ask(victim, "stop");

	if (missing)
		fail_msg("increments that are missing, of how many: %s", victim->answer);
	victim_end(victim);
}

/* The first thread, in which system calls are run, is in a sequence most of the time. */
static void test_stopped(void **state)
{
	const uint64_t none[6] = { 0 };
	struct victim victim;

	(void)state;
	if (!begin(&victim))
		skip();
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct fay_error error = { 0 };
		struct fay_stop stop;
		int64_t result = 0;

		if (fay_stop_all(victim.pid, 20000, 20000, &stop, &error) ||
		    fay_stop_syscall(&stop, SYS_getpid, none, &result, &error))
			fail_msg("round %u: %s", i, error.message);
		fay_stop_release(&stop);
		assert_int_equal(result, victim.pid);
		usleep(500);
	}
	right_total(&victim);
}

static void test_attached(void **state)
{
	struct hand_verdict hand;
	struct victim victim;

	(void)state;
	if (!begin(&victim))
		skip();
	hand_verdict(&hand, PROBE_COUNT, "fay-rseq-target!rseq_*");
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct fay_target *target;
		struct fay_session *session = attach(&victim, &target, &hand);

		/* That one is done which has its section farther behind; the others are named. */
		assert_int_equal(fay_session_point_count(session), 1);
		assert_string_equal(fay_session_point(session, 0)->name, "rseq_add");
		assert_int_equal(fay_session_skipped_count(session), 2);
		for (size_t k = 0; k < 2; k++)
			assert_non_null(strstr(fay_session_skipped(session, k)->reason,
					       "restartable sequence"));
		detach(session, target);
	}
	right_total(&victim);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_stopped),
					    cmocka_unit_test(test_attached) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
