/* SPDX-License-Identifier: MIT */
/* What a root makes of its machines, without a network: of those that are silent, of clocks that
 * differ, of too many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "quiet_bus.h"

/* A machine whose inner agent has died is not lost before it sends to the root, however long
 * windows are; and a query that has ended does not wait for long ones. */
static void test_long_windows(void **state)
{
	const uint64_t second = 1000000000, now = fay_monotonic();
	struct fixture fixture;
	struct fay_error error;
	fixture_init(&fixture, 2);
	struct fay_root *root = &fixture.root;
	root->options.window = 5 * second;
	root->options.lost_after = 10 * second;
	root->pinged = now;
	/* one window, and the patience of a second and four windows */
	root->machines[0]->heard = now - 26 * second;
	root->machines[1]->heard = now - 28 * second;
	assert_int_equal(fay_root_tick(root, 0, &error), FAY_OK);
	assert_false(root->machines[0]->lost);
	assert_true(root->machines[1]->lost);

	struct fay_job *job = &fixture.inner;
	struct fay_kept kept[2] = { { .sequence = 1, .sent = now - 6 * second },
				    { .sequence = 2, .sent = now - 4 * second } };
	job->window = 60 * second;
	job->lease = 60 * second;
	job->heard = job->ended = now;
	job->final = FAY_FINAL_STOPPED;
	job->connections = 1;
	job->kept = kept;
	job->kept_count = 2;
	fay_job_tick(job);
	assert_int_equal(job->resent, 1);
	free(sent.bytes);
	sent.bytes = NULL;
	fixture_deinit(&fixture);
}

/* Windows wait for a machine whose clock is behind, but not for one whose clock is hours behind, or
 * years. */
static void test_clocks(void **state)
{
	const int64_t second = 1000000000;
	struct fixture fixture;
	fixture_init(&fixture, 4);
	struct fay_root *root = &fixture.root;
	root->options.window = (uint64_t)second;
	root->began = fay_monotonic();
	root->machines[1]->event_clock = -100 * second;
	root->machines[2]->event_clock = -7200 * second;
	root->machines[3]->event_clock = INT64_MIN;
	assert_int_equal(fay_root_clock_behind(root), 100 * second);
	assert_in_range(fay_realtime() - fay_root_complete_until(root), 99 * second, 110 * second);
	root->machines[0]->state = root->machines[1]->state = FAY_MACHINE_FINISHED;
	assert_int_equal(fay_root_complete_until(root), UINT64_MAX);
	fixture_deinit(&fixture);
}

static void say_hello(struct fixture *fixture, uint64_t agent)
{
	struct fay_writer_buffer out = { 0 };
	fay_wire_begin(&out, FAY_WIRE_HELLO, 0, agent);
	fay_wire_put64(&out, 0);
	fay_wire_put64(&out, 1);
	fay_wire_put32(&out, 1);
	fay_wire_put32(&out, 0);
	for (int i = 0; i < 4; i++)
		fay_wire_put_text(&out, "x", FAY_WIRE_NAME_MAX);
	assert_true(fay_wire_end(&out, &fixture->keys));
	struct fay_message message = { .bytes = out.bytes, .size = out.size };
	fay_root_receive(&fixture->root, &message);
	fay_wire_free(&out);
}

/* More machines than a query takes are not passed over in silence. */
static void test_too_many(void **state)
{
	struct fixture fixture;
	struct fay_coverage coverage;
	fixture_init(&fixture, 0);
	for (uint64_t agent = 1; agent <= FAY_WIRE_AGENTS_MAX; agent++)
		say_hello(&fixture, agent);
	fay_root_coverage(&fixture.root, &coverage);
	assert_int_equal(coverage.asked, FAY_WIRE_AGENTS_MAX);
	assert_false(coverage.beyond);
	say_hello(&fixture, 7);
	fay_root_coverage(&fixture.root, &coverage);
	assert_false(coverage.beyond);
	say_hello(&fixture, FAY_WIRE_AGENTS_MAX + 1);
	fay_root_coverage(&fixture.root, &coverage);
	assert_int_equal(coverage.asked, FAY_WIRE_AGENTS_MAX);
	assert_int_equal(coverage.malformed, 0);
	assert_true(coverage.beyond);
	fixture_deinit(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_long_windows),
		cmocka_unit_test(test_clocks),
		cmocka_unit_test(test_too_many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
