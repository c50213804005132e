/* SPDX-License-Identifier: MIT */
/*
 * Points, sites and zones that processes have one after the other (loader/plan/ready.c): each
 * process's calls are counted exactly while others have theirs; a session that needs its points
 * later has those of its own process, and takes places out and back; what does not fit is planned
 * for the process alone; where the kernel may trap is found as without.
 */
#include <stdbool.h>
#include <unistd.h>

#include "../harness.h"

#include "fay/bpf.h"
#include "loader/names/target.h"
#include "loader/plan/plan_private.h"
#include "loader/session/session.h"

#define PROGRAM "fay-test-target"
#define PROCESSES 3u

static struct fay_session *attach_by(struct fay_files *files, pid_t pid,
				     const struct hand_verdict *hand, uint32_t traps,
				     struct fay_target **target)
{
	struct fay_attach_options options = { .size = sizeof(options),
					      .modules = true,
					      .shared_from = 8,
					      .traps = traps,
					      .plan_only = traps != 0 };

	return attach_sharing(files, pid, hand, options, target);
}

struct trio {
	struct fay_files *files;
	struct hand_verdict hand;
	struct victim victims[PROCESSES];
	uint64_t checksums[PROCESSES];
	struct fay_target *targets[PROCESSES];
	struct fay_session *sessions[PROCESSES];
};

static void begin(struct trio *trio)
{
	assert_int_equal(fay_files_create(&trio->files, NULL), 0);
	hand_verdict(&trio->hand, PROBE_COUNT, PROGRAM "!fn_*");
	for (unsigned i = 0; i < PROCESSES; i++) {
		victim_start(&trio->victims[i]);
		trio->checksums[i] = victim_ask(&trio->victims[i], "checksum");
	}
}

static void attach_next(struct trio *trio, unsigned i)
{
	trio->sessions[i] =
		attach_by(trio->files, trio->victims[i].pid, &trio->hand, 0, &trio->targets[i]);
}

static void end(struct trio *trio)
{
	for (unsigned i = 0; i < PROCESSES; i++) {
		assert_int_equal(fay_session_detach(trio->sessions[i], NULL), 0);
		fay_session_destroy(trio->sessions[i]);
		fay_target_close(trio->targets[i]);
		assert_clean(&trio->victims[i], trio->checksums[i]);
	}
	fay_files_destroy(trio->files);
	for (unsigned i = PROCESSES; i-- > 0;)
		victim_end(&trio->victims[i]);
}

static void test_at_once(void **state)
{
	struct trio trio;

	(void)state;
	begin(&trio);
	for (unsigned i = 0; i < PROCESSES; i++) {
		attach_next(&trio, i);
		assert_int_equal(trio.sessions[i]->plan.ready, i > 0);
		assert_int_equal(!trio.sessions[i]->plan.points, i > 0);
		assert_int_equal(fay_session_point_count(trio.sessions[i]),
				 fay_session_point_count(trio.sessions[0]));
	}
	for (unsigned i = 0; i < PROCESSES; i++) {
		assert_int_equal(victim_ask(&trio.victims[i], "run fn_c 2 %u", 100 * (i + 1)),
				 200 * (i + 1));
		assert_int_equal(victim_ask(&trio.victims[i], "run fn_jcc 1 50"), 50);
	}
	for (unsigned i = 0; i < PROCESSES; i++)
		assert_int_equal(total(trio.sessions[i], 0), 200 * (i + 1) + 50);
	end(&trio);
}

/* Each has its own process's functions, wherever what was lent is by then. */
static void test_own_points(void **state)
{
	struct trio trio;

	(void)state;
	begin(&trio);
	for (unsigned i = 0; i < PROCESSES; i++)
		attach_next(&trio, i);
	for (unsigned i = 0; i < PROCESSES; i++) {
		size_t point = point_named(trio.sessions[i], "fn_c");
		struct fay_function_list list = { 0 };
		const struct fay_function *function;

		assert_int_equal(fay_target_find(trio.targets[i], PROGRAM "!fn_c", &list, NULL), 0);
		assert_int_equal(list.count, 1);
		function = fay_session_point(trio.sessions[i], point);
		assert_int_equal(function->address, list.items[0].address);
		assert_string_equal(function->module, PROGRAM);
		fay_function_list_deinit(&list);
		assert_int_equal(fay_sessions_drop_unloaded(&trio.sessions[i], 1, NULL), 0);
		assert_true(fay_session_has_points(trio.sessions[i]));
	}
	end(&trio);
}

static void test_out_and_back(void **state)
{
	struct trio trio;

	(void)state;
	begin(&trio);
	for (unsigned i = 0; i < PROCESSES; i++)
		attach_next(&trio, i);
	for (unsigned i = 1; i < PROCESSES; i++) {
		size_t point = point_named(trio.sessions[i], "fn_c");
		struct fay_error error = { 0 };

		assert_int_equal(fay_session_take_out(trio.sessions[i], &point, 1, &error), 0);
		assert_int_equal(victim_ask(&trio.victims[i], "run fn_c 1 1000"), 1000);
		assert_int_equal(victim_ask(&trio.victims[i], "run fn_jcc 1 10"), 10);
		assert_int_equal(total(trio.sessions[i], 0), 10);
		assert_true(fay_session_comes_back(trio.sessions[i], point));
		if (fay_session_put_back(trio.sessions[i], &point, 1, &error))
			fail_msg("put back: %s", error.message);
		assert_int_equal(victim_ask(&trio.victims[i], "run fn_c 1 300"), 300);
		assert_int_equal(total(trio.sessions[i], 0), 310);
	}
	end(&trio);
}

/* The same parts, and yet nothing that can be used. */
static void test_unfit(void **state)
{
	struct trio trio;

	(void)state;
	begin(&trio);
	attach_next(&trio, 0);
	assert_int_equal(trio.files->ready->count, 1);
	trio.files->ready->items[0]->time_shift ^= 1;
	for (unsigned i = 1; i < PROCESSES; i++) {
		attach_next(&trio, i);
		assert_true(trio.sessions[i]->plan.assembled);
		assert_false(trio.sessions[i]->plan.ready);
		assert_non_null(trio.sessions[i]->plan.points);
		assert_int_equal(victim_ask(&trio.victims[i], "run fn_c 1 77"), 77);
		assert_int_equal(total(trio.sessions[i], 0), 77);
		/* what was made for the second one fits the third */
		trio.files->ready->items[trio.files->ready->count - 1]->time_shift ^= i == 1;
	}
	end(&trio);
}

/* While a process has it another one gets its own. */
static void test_in_use(void **state)
{
	struct trio trio;

	(void)state;
	begin(&trio);
	attach_next(&trio, 0);
	trio.files->ready->items[0]->lent = true;
	attach_next(&trio, 1);
	assert_false(trio.sessions[1]->plan.ready);
	assert_int_equal(victim_ask(&trio.victims[1], "run fn_c 1 77"), 77);
	assert_int_equal(total(trio.sessions[1], 0), 77);
	trio.files->ready->items[0]->lent = false;
	attach_next(&trio, 2);
	assert_true(trio.sessions[2]->plan.ready);
	end(&trio);
}

/* What was made where patterns may match nothing is not lent where each has to. */
static void test_some(void **state)
{
	struct fay_attach_options options = {
		.size = sizeof(options), .modules = true, .shared_from = 8, .some = true
	};
	struct fay_session *session;
	struct trio trio;

	(void)state;
	begin(&trio);
	hand_verdict_also(&trio.hand, PROGRAM "!no_such_function");
	for (unsigned i = 0; i < PROCESSES; i++) {
		assert_int_equal(fay_target_open_pid(trio.victims[i].pid, &trio.targets[i], NULL),
				 0);
		fay_target_share(trio.targets[i], trio.files);
		options.some = i < 2;
		assert_int_equal(fay_session_attach(trio.targets[i], &trio.hand.verdict, &options,
						    &session, NULL),
				 i < 2 ? 0 : FAY_E_USAGE);
		if (i < 2)
			assert_int_equal(session->plan.ready, i == 1);
		options.some = true;
		if (i == 2)
			assert_int_equal(fay_session_attach(trio.targets[i], &trio.hand.verdict,
							    &options, &session, NULL),
					 0);
		trio.sessions[i] = session;
	}
	end(&trio);
}

static void test_traps(void **state)
{
	struct fay_files *files;
	struct fay_target *targets[3];
	struct fay_session *sessions[3];
	struct hand_verdict hand;
	struct victim a, b;

	(void)state;
	assert_int_equal(fay_files_create(&files, NULL), 0);
	hand_verdict(&hand, PROBE_COUNT, PROGRAM "!fn_*");
	hand.probes[0].kind = FAY_PROBE_RETURN;
	victim_start(&a);
	victim_start(&b);
	sessions[0] = attach_by(files, a.pid, &hand, 32, &targets[0]);
	sessions[1] = attach_by(files, b.pid, &hand, 32, &targets[1]);
	sessions[2] = attach_by(NULL, b.pid, &hand, 32, &targets[2]);
	assert_true(sessions[1]->plan.ready);
	assert_true(fay_session_trap_count(sessions[2]) > 0);
	assert_int_equal(fay_session_trap_count(sessions[1]), fay_session_trap_count(sessions[2]));
	for (size_t i = 0; i < fay_session_trap_count(sessions[2]); i++) {
		const struct fay_trap *one = fay_session_trap(sessions[1], i),
				      *other = fay_session_trap(sessions[2], i);

		assert_int_equal(one->address, other->address);
		assert_int_equal(one->kind, other->kind);
		assert_int_equal(one->offset, other->offset);
		assert_string_equal(one->function.name, other->function.name);
	}
	for (unsigned i = 0; i < 3; i++) {
		fay_session_destroy(sessions[i]);
		fay_target_close(targets[i]);
	}
	fay_files_destroy(files);
	victim_end(&b);
	victim_end(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_at_once),      cmocka_unit_test(test_own_points),
		cmocka_unit_test(test_out_and_back), cmocka_unit_test(test_unfit),
		cmocka_unit_test(test_in_use),       cmocka_unit_test(test_some),
		cmocka_unit_test(test_traps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
