/* SPDX-License-Identifier: MIT */
/* Probes over saved events: only those that the verdict has run, whatever number an event asks for.
 * */
#include "harness.h"

#include "fay/event.h"

static void take_count(void *context, uint32_t state, const uint8_t *row)
{
	assert_int_equal(state, 0);
	memcpy(context, row, sizeof(uint64_t));
}

static void test_probe_numbers(void **state)
{
	struct hand_verdict hand;
	struct fay_replay *replay;
	struct fay_event event = { 0 };
	struct fay_error error;
	uint64_t count = 0;

	(void)state;
	hand_verdict(&hand, PROBE_COUNT, "program!function");
	hand_verdict_also(&hand, "program!function");
	hand.states[0] = (struct fay_schema_state){ .name = "count",
						    .kind = FAY_STATE_CELL,
						    .scope = FAY_SCOPE_LOCAL,
						    .rows = 1,
						    .row_size = 8 };
	hand.verdict.schema.states = hand.states;
	hand.verdict.schema.state_count = 1;
	hand.verdict.probe_count = 1; /* behind it lies another that counts, too */
	if (fay_replay_create(&hand.verdict, take_count, NULL, &count, &replay, &error))
		fail_msg("%s", error.message);
	fay_replay_event(replay, 0, &event);
	fay_replay_event(replay, 1, &event);
	fay_replay_event(replay, 0, &event);
	fay_replay_end(replay);
	assert_int_equal(count, 2);
	fay_replay_destroy(replay);
}

static void test_refused(void **state)
{
	struct hand_verdict hand;
	struct fay_replay *replay = NULL;
	struct fay_error error;
	uint64_t count;

	(void)state;
	hand_verdict(&hand, PROBE_COUNT, "program!function");
	hand.verdict.outcome = FAY_UNSAFE;
	assert_int_equal(
		fay_replay_create(&hand.verdict, take_count, NULL, &count, &replay, &error),
		FAY_E_REFUSED);
	assert_null(replay);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_probe_numbers),
					    cmocka_unit_test(test_refused) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
