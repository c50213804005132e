/* SPDX-License-Identifier: MIT */
/* Many sessions in one process end in one stop. */
#include "../harness.h"

#include <unistd.h>

#include "loader/stop/stop.h"

#define PROGRAM "fay-test-target"
#define SESSIONS 6

/* Keepers share our memory: theirs are counted, too. */
static volatile unsigned stops;
int __real_fay_stop_all(pid_t pid, uint32_t stop_timeout_ms, uint32_t tracer_wait_ms,
			struct fay_stop *stop, struct fay_error *error);
int __wrap_fay_stop_all(pid_t pid, uint32_t stop_timeout_ms, uint32_t tracer_wait_ms,
			struct fay_stop *stop, struct fay_error *error);

int __wrap_fay_stop_all(pid_t pid, uint32_t stop_timeout_ms, uint32_t tracer_wait_ms,
			struct fay_stop *stop, struct fay_error *error)
{
	stops++;
	return __real_fay_stop_all(pid, stop_timeout_ms, tracer_wait_ms, stop, error);
}

struct traced {
	struct fay_session *sessions[SESSIONS];
	struct fay_target *targets[SESSIONS];
};

/* A chain of three on one function, the rest on one each. */
static void attach_many(struct victim *victim, struct traced *traced)
{
	static const char *names[SESSIONS] = { PROGRAM "!fn_riprel", PROGRAM "!fn_plain",
					       PROGRAM "!fn_riprel", PROGRAM "!fn_c",
					       PROGRAM "!fn_riprel", PROGRAM "!fn_jcc" };

	for (unsigned i = 0; i < SESSIONS; i++) {
		struct hand_verdict hand;

		hand_verdict(&hand, i % 2 ? PROBE_GREEDY : PROBE_COUNT, names[i]);
		traced->sessions[i] = attach(victim, &traced->targets[i], &hand);
	}
}

static void forget(struct traced *traced)
{
	for (unsigned i = 0; i < SESSIONS; i++) {
		fay_session_destroy(traced->sessions[i]);
		fay_target_close(traced->targets[i]);
	}
}

static void test_detached_at_once(void **state)
{
	struct victim victim;
	struct traced traced;
	struct fay_error error;
	uint64_t checksum;

	(void)state;
	victim_start(&victim);
	checksum = victim_ask(&victim, "checksum");
	attach_many(&victim, &traced);
	assert_int_equal(victim_ask(&victim, "run fn_riprel 2 1000"), 2000);
	stops = 0;
	if (fay_sessions_detach(traced.sessions, SESSIONS, &error))
		fail_msg("%s", error.message);
	assert_int_equal(stops, 1);
	assert_true(victim_ask(&victim, "checksum") == checksum);
	assert_int_equal(mappings(victim.pid, "/memfd:fay-"), 0);
	for (unsigned i = 0; i < SESSIONS; i += 2)
		assert_int_equal(total(traced.sessions[i], 0), 2000);
	/* again: nothing is left to do */
	assert_int_equal(fay_sessions_detach(traced.sessions, SESSIONS, &error), 0);
	assert_int_equal(stops, 1);
	assert_int_equal(victim_ask(&victim, "run fn_riprel 2 1000"), 2000);
	forget(&traced);
	victim_end(&victim);
}

/* Some of them: the rest goes on; threads are at work meanwhile, and a forked child has all of
 * them. */
static void test_some_detached(void **state)
{
	struct victim victim;
	struct traced traced;
	struct fay_session *some[SESSIONS / 2];
	struct fay_error error;
	uint64_t checksum, done;
	pid_t child;

	(void)state;
	victim_start(&victim);
	checksum = victim_ask(&victim, "checksum");
	attach_many(&victim, &traced);
	child = (pid_t)victim_ask(&victim, "fork fn_riprel 100");
	victim_ask(&victim, "start fn_riprel 4");
	for (unsigned i = 0; i < SESSIONS / 2; i++)
		/* the chain's first and last, and one of its own */
		some[i] = traced.sessions[2 * i + (i == 1 ? 1 : 0)];
	if (fay_sessions_detach(some, SESSIONS / 2, &error))
		fail_msg("%s", error.message);
	done = victim_ask(&victim, "stop");
	assert_int_equal(total(traced.sessions[2], 0), done + 100); /* and the child's */
	assert_int_equal(mappings(child, "/memfd:fay-code"), SESSIONS / 2);
	assert_int_equal(mappings(victim.pid, "/memfd:fay-code"), SESSIONS / 2);
	if (fay_sessions_detach(traced.sessions, SESSIONS, &error))
		fail_msg("%s", error.message);
	assert_int_equal(mappings(child, "/memfd:fay-"), 0);
	assert_int_equal(mappings(victim.pid, "/memfd:fay-"), 0);
	assert_true(victim_ask(&victim, "checksum") == checksum);
	assert_int_equal(victim_ask(&victim, "reap"), 0);
	forget(&traced);
	victim_end(&victim);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_detached_at_once),
					    cmocka_unit_test(test_some_detached) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
