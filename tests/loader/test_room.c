/* SPDX-License-Identifier: MIT */
/* Programs whose address space or data is limited: less is reserved there, for fewer threads; where
 * that is still too much it is said. And programs that have all their memory made present. */
#include "harness.h"

#include <sys/resource.h>

#define MIB (UINT64_C(1) << 20)

/* Bytes of address space that the process has; those that are present. */
static uint64_t pages_of(pid_t pid, bool present)
{
	unsigned long all = 0, resident = 0;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	file = fopen(path, "re");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%lu %lu", &all, &resident), 2);
	fclose(file);
	return (present ? resident : all) * 4096;
}

static void limit(struct victim *victim, uint64_t more)
{
	struct rlimit bytes = { pages_of(victim->pid, false) + more, RLIM_INFINITY };

	assert_int_equal(prlimit(victim->pid, RLIMIT_AS, &bytes, NULL), 0);
}

/* Its streams take 260 KiB a thread: 1 GiB for 4,096. */
static void test_less_reserved(void **state)
{
	struct hand_verdict hand;
	struct victim victim;
	struct fay_target *target;
	struct fay_session *session;
	size_t size;

	(void)state;
	victim_start(&victim);
	/* the C library keeps that thread's stack */
	assert_int_equal(victim_ask(&victim, "run fn_plain 1 10"), 10);
	hand_verdict(&hand, PROBE_EMIT, "fay-test-target!fn_plain");
	limit(&victim, 300 * MIB);
	session = attach(&victim, &target, &hand);
	assert_int_equal(fay_session_shm(session, &size)->slot_max, 1024);
	assert_true(size < 300 * MIB);
	assert_int_equal(victim_ask(&victim, "run fn_plain 1 100"), 100);
	assert_int_equal(slots_used(session), 1);
	detach(session, target);
	victim_end(&victim);
}

static void refused_for(int which, const char *name)
{
	const struct rlimit no_data = { 4096, RLIM_INFINITY };
	struct hand_verdict hand;
	struct victim victim;
	struct fay_target *target;
	struct fay_session *session = NULL;
	struct fay_error error = { 0 };

	victim_start(&victim);
	assert_int_equal(victim_ask(&victim, "run fn_plain 1 10"), 10);
	hand_verdict(&hand, PROBE_EMIT, "fay-test-target!fn_plain");
	if (which == RLIMIT_AS)
		limit(&victim, MIB);
	else
		assert_int_equal(prlimit(victim.pid, which, &no_data, NULL), 0);
	assert_int_equal(fay_target_open_pid(victim.pid, &target, &error), 0);
	assert_int_equal(fay_session_attach(target, &hand.verdict, NULL, &session, &error),
			 FAY_E_REFUSED);
	assert_non_null(strstr(error.message, name));
	fay_target_close(target);
	assert_int_equal(mappings(victim.pid, "memfd:fay-"), 0);
	assert_int_equal(victim_ask(&victim, "run fn_plain 1 100"), 100);
	victim_end(&victim);
}

static void test_no_room(void **state)
{
	(void)state;
	refused_for(RLIMIT_AS, "RLIMIT_AS");
}

static void test_no_data(void **state)
{
	(void)state;
	refused_for(RLIMIT_DATA, "RLIMIT_DATA");
}

/* The state has 16 MiB, of which a thread uses a page. */
static void test_locked(void **state)
{
	struct hand_verdict hand;
	struct victim victim;
	struct fay_target *target;
	struct fay_session *session;
	uint64_t before;
	size_t size;

	(void)state;
	victim_start(&victim);
	assert_int_equal(victim_ask(&victim, "run fn_plain 1 10"), 10);
	assert_int_equal(victim_ask(&victim, "lock"), 0);
	before = pages_of(victim.pid, true);
	hand_verdict(&hand, PROBE_COUNT, "fay-test-target!fn_plain");
	session = attach(&victim, &target, &hand);
	fay_session_shm(session, &size);
	assert_true(size >= 16 * MIB);
	assert_true(pages_of(victim.pid, true) < before + 8 * MIB);
	assert_int_equal(victim_ask(&victim, "run fn_plain 1 100"), 100);
	detach(session, target);
	victim_end(&victim);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_less_reserved),
					    cmocka_unit_test(test_no_room),
					    cmocka_unit_test(test_no_data),
					    cmocka_unit_test(test_locked) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
