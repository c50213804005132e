/* SPDX-License-Identifier: MIT */
/*
 * Vector probes in a live process: verified images that clobber vector registers and MXCSR in every
 * allowed way run at a function whose caller has numbers in all of them, unmasked exceptions and
 * another rounding mode, and a stack that is off. The target compares (vectors/target.c); the
 * probes count.
 */
#include "harness.h"

#include <fcntl.h>
#include <unistd.h>

#include "dispatcher/user/trampoline.h"
#include "dispatcher/user/vectors_private.h"
#include "fay/verify.h"

static struct victim victim;

static void read_image(unsigned which, struct fay_verdict *verdict)
{
	char path[4096];
	static uint8_t file[1 << 20];
	ssize_t size;
	int fd;

	snprintf(path, sizeof(path), "%s/vectors%u.fay", VECTOR_IMAGES, which);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	size = read(fd, file, sizeof(file));
	close(fd);
	assert_true(size > 0);
	fay_verify(file, (size_t)size, NULL, verdict);
	if (verdict->outcome != FAY_ACCEPTED)
		fail_msg("%s: %s: %s", path, fay_rule_id(verdict->rejection.rule),
			 verdict->rejection.what);
}

/* The target runs with the image's probe; nothing of its state may differ, and every call must have
 * been counted. */
static void run(unsigned which, uint32_t clobbered, bool upper, bool floating)
{
	static const unsigned mxcsrs[] = { 0x1f80, 0x0000, 0x1fbf, 0x7f80, 0x5f80, 0x9fc0, 0x0e05 };
	struct fay_verdict verdict;
	struct fay_target *target;
	struct fay_session *session = NULL;
	struct fay_error error = { 0 };
	uint64_t calls = 0;

	read_image(which, &verdict);
	assert_int_equal(verdict.probes[0].clobbered_vectors, clobbered);
	assert_int_equal(verdict.probes[0].clobbers_upper, upper);
	assert_int_equal(verdict.probes[0].uses_mxcsr, floating);
	if (fay_target_open_pid(victim.pid, &target, &error) ||
	    fay_session_attach(target, &verdict, NULL, &session, &error))
		fail_msg("attach: %s", error.message);
	for (unsigned i = 0; i < sizeof(mxcsrs) / sizeof(*mxcsrs); i++) {
		for (unsigned offset = 0; offset < 32; offset += 8) {
			uint64_t different = victim_ask(&victim, "%x %u 200", mxcsrs[i], offset);

			if (different)
				fail_msg("image %u: MXCSR %#x, stack off by %u: %lu of 200 calls "
					 "found something changed",
					 which, mxcsrs[i], offset, (unsigned long)different);
			calls += 200;
		}
	}
	assert_int_equal(total(session, 0), calls);
	detach(session, target);
	fay_verdict_deinit(&verdict);
}

static void test_legacy(void **state)
{
	run(1, 0xffff, false, true);
}
static void test_avx(void **state)
{
	if (!(fay_cpu_features() & FAY_CPU_AVX)) {
		print_message("skipped: this CPU has no AVX\n");
		skip();
	}
	run(2, 0xffff, true, true);
	run(4, 0xffff, true, false);
}
static void test_aligned_spill(void **state)
{
	run(3, 1u << 5, false, true);
}
static void test_helper(void **state)
{
	run(5, 1u << 6 | 1u << 7, false, false);
}

/* A feature that no CPU has. */
static void test_missing_feature(void **state)
{
	struct fay_verdict verdict;
	struct fay_target *target;
	struct fay_session *session = NULL;
	struct fay_error error = { 0 };

	read_image(1, &verdict);
	verdict.probes[0].cpu_features |= 1u << 30;
	assert_int_equal(fay_target_open_pid(victim.pid, &target, &error), 0);
	assert_int_not_equal(fay_session_attach(target, &verdict, NULL, &session, &error), 0);
	assert_non_null(strstr(error.message, "which this machine does not have"));
	fay_target_close(target);
	fay_verdict_deinit(&verdict);
}

static int setup(void **state)
{
	victim_start_program(&victim, VECTOR_TARGET);
	return 0;
}

static int teardown(void **state)
{
	victim_end(&victim);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_legacy),          cmocka_unit_test(test_avx),
		cmocka_unit_test(test_aligned_spill),   cmocka_unit_test(test_helper),
		cmocka_unit_test(test_missing_feature),
	};

	if (!(fay_cpu_features() & FAY_CPU_AVX)) {
		printf("skipped: the target compares whole registers and needs AVX\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, setup, teardown);
}
