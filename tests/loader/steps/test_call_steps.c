/* SPDX-License-Identifier: MIT */
/*
 * Sessions that watch the ends of calls come to a program and leave it while its threads stand at
 * chosen instructions, in the sessions' own code above all: the program goes on, and computes what
 * it does untraced. Nothing here depends on time: the victim is held by this test throughout.
 */
#include "held.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "dispatcher/runtime/runtime.h"
#include "loader/session/session.h"

#define LIVE_MOST 3

/* probes that are copied into the trampolines, and that are called, with the thread marked as busy
 */
static struct hand_verdict counts, copies;

static void prepare_probes(void)
{
	hand_verdict(&counts, PROBE_COUNT, "test_call_steps!steps_*");
	counts.probes[0].kind = FAY_PROBE_RETURN;
	hand_verdict(&copies, PROBE_EVENT, "test_call_steps!steps_*");
	copies.probes[0].kind = FAY_PROBE_RETURN;
	copies.probes[0].event_fields =
		FAY_FIELD_DURATION | FAY_FIELD_RETVAL | FAY_FIELD_FUNCTION | FAY_FIELDS_KEPT;
}

static struct fay_session *come(const struct hand_verdict *probes)
{
	struct fay_attach_options options = { .size = sizeof(options), .slot_max = 16 };
	struct fay_session *session;
	struct fay_error error;

	if (fay_session_attach(target, &probes->verdict, &options, &session, &error))
		fail_msg("attach: %s", error.message);
	return session;
}

/* As a detach. True if nothing of the session is left in the victim. */
static bool remove_id(uint64_t id)
{
	struct fay_zone_removal removal = { .session = id };
	struct fay_error error;

	if (fay_zones_remove(victim, &removal, 1, 1000, 1000, NULL, &error))
		fail_msg("detach: %s", error.message);
	return !removal.left;
}

static bool leave(struct fay_session *session)
{
	bool gone = remove_id(session->plan.id);

	session->attached = false;
	fay_session_destroy(session);
	return gone;
}

static bool is_in(const struct fay_session *session, uint64_t address)
{
	for (size_t i = 0; i < session->plan.zone_count; i++)
		if (address - session->plan.zones[i].header.code <
		    session->plan.zones[i].header.code_size)
			return true;
	return false;
}

static void let_threads_stand(void)
{
	random_steps = steps_at_release[0] = steps_at_release[1] = 0;
	go_on_at_release = false;
}

/* However often a thread stands in the session's code. */
static void remove_at_last(uint64_t id)
{
	while (!remove_id(id))
		go_on();
}

static void leave_at_last(struct fay_session *session)
{
	uint64_t id = session->plan.id;

	if (!leave(session))
		remove_at_last(id);
}

static void stand_at(pid_t thread, const void *function)
{
	while (registers_of(thread).rip != (uintptr_t)function)
		step(thread);
}

static void stand_in(pid_t thread, const struct fay_session *session)
{
	while (!is_in(session, registers_of(thread).rip))
		step(thread);
}

/*
 * A thread stands in what a session has left behind, which was over another session's jump, as the
 * one that came after it is. When that goes which was there first, both have to go on where it went
 * on.
 */
static void test_left_behind(void **state)
{
	for (unsigned last = 0; last < 2; last++) {
		struct fay_session *first, *standing, *second = NULL;
		uint64_t left;

		let_threads_stand();
		first = come(&counts);
		standing = come(&counts);
		left = standing->plan.id;
		stand_in(threads[0], standing);
		assert_false(leave(standing));
		if (!last)
			second = come(&copies);
		leave(first);
		go_on();
		if (second)
			leave_at_last(second);
		remove_at_last(left);
		go_on();
	}
}

struct places {
	const void *call; /* the function that is called */
	/* instructions that the thread goes on by until the session tries again */
	unsigned between;
	bool in_handler;  /* a signal handler has interrupted the thread there */
	bool then_behind; /* the third time, the thread is behind the call */
	/* of the session that was there first, and of the one that came after it */
	const struct hand_verdict *first, *second;
};

static void interrupt(pid_t thread)
{
	int status;

	assert_int_equal(ptrace(PTRACE_SINGLESTEP, thread, 0, SIGUSR1), 0);
	assert_int_equal(waitpid(thread, &status, __WALL), thread);
	assert_stopped(thread, status);
	assert_int_equal(registers_of(thread).rip, (uintptr_t)on_signal);
}

/*
 * One of two sessions that watch the same calls goes when a thread stands at some instruction of
 * their code, or in a handler of a signal that came there. It tries again when the thread has gone
 * on a little. Returns whether there was such an instruction, `at` of them into the call.
 */
static bool goes_at(const struct fay_session *stays, struct fay_session *goes, unsigned at,
		    struct places places)
{
	uint64_t stack;

	stand_at(threads[0], places.call);
	stack = registers_of(threads[0]).rsp;
	for (unsigned i = 0; i <= at; i++) {
		do {
			step(threads[0]);
			if (registers_of(threads[0]).rsp > stack &&
			    !is_in(stays, registers_of(threads[0]).rip) &&
			    !is_in(goes, registers_of(threads[0]).rip))
				return false;
		} while (!is_in(stays, registers_of(threads[0]).rip) &&
			 !is_in(goes, registers_of(threads[0]).rip));
	}
	if (places.in_handler)
		interrupt(threads[0]);
	steps_at_release[0] = places.between;
	go_on_at_release = places.then_behind;
	releases = 0;
	leave_at_last(goes);
	let_threads_stand();
	go_on();
	return true;
}

static void go_at_every_instruction(struct places places)
{
	for (unsigned order = 0; order < 2; order++) {
		struct fay_session *one, *two;
		unsigned at = 0;
		bool more;

		let_threads_stand();
		one = come(places.first);
		do {
			two = come(order ? places.first : places.second);
			go_on(); /* a thread's first event takes thousands of instructions */
			more = order ? goes_at(two, one, at, places)
				     : goes_at(one, two, at, places);
			/* the runtime's C code has many */
			at += 1 + order + (getenv("FAY_LONG") ? 0 : at / 40);
			if (order && more)
				one = two;
		} while (more);
		assert_true(at > 20);
		leave_at_last(one);
		leave_at_last(two);
		go_on();
	}
}

static void test_every_instruction(void **state)
{
	go_at_every_instruction((struct places){ steps_leaf, 4, false, false, &counts, &counts });
}

static void test_every_instruction_of_tail_calls(void **state)
{
	go_at_every_instruction(
		(struct places){ steps_ends_in_call, 20, false, true, &copies, &counts });
}

static void test_every_instruction_interrupted(void **state)
{
	go_at_every_instruction(
		(struct places){ steps_ends_in_call, 20, true, true, &counts, &copies });
}

/* Up to three sessions come and go in any order, threads stand anywhere, and go on by many or by
 * few instructions between two stops. */
static void test_at_random(void **state)
{
	static const unsigned most[] = { 0, 2, 10, 40, 200 };
	struct fay_session *live[LIVE_MOST];
	uint64_t left[LIVE_MOST + 1];
	unsigned count = 0, left_count = 0, came = 0;

	for (unsigned round = 0; round < 60; round++) {
		for (unsigned i = 0; i < THREADS; i++)
			steps(threads[i], random_below(random_below(2) ? 60 : 600));
		random_steps = most[random_below(5)];
		if (left_count && (left_count > LIVE_MOST || random_below(3) == 0)) {
			unsigned which = random_below(left_count);

			if (left_count > LIVE_MOST)
				go_on();
			if (remove_id(left[which]))
				left[which] = left[--left_count];
			else if (left_count > LIVE_MOST)
				random_steps = 200;
		} else if (count < LIVE_MOST && (count == 0 || random_below(2))) {
			live[count++] = come(random_below(2) ? &counts : &copies);
			came++;
		} else {
			unsigned which = random_below(count);

			left[left_count] = live[which]->plan.id;
			left_count += !leave(live[which]);
			live[which] = live[--count];
		}
	}
	let_threads_stand();
	while (count)
		leave_at_last(live[--count]);
	while (left_count)
		remove_at_last(left[--left_count]);
	go_on();
	assert_true(came > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_left_behind, hold_victim, end_victim),
		cmocka_unit_test_setup_teardown(test_every_instruction, hold_victim, end_victim),
		cmocka_unit_test_setup_teardown(test_every_instruction_of_tail_calls, hold_victim,
						end_victim),
		cmocka_unit_test_setup_teardown(test_every_instruction_interrupted, hold_victim,
						end_victim),
		cmocka_unit_test_setup_teardown(test_at_random, hold_victim, end_victim),
	};

	prepare_probes();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
