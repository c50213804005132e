/* SPDX-License-Identifier: MIT */
/*
 * What fails while a session comes or leaves: the target dies, an image is not what its hash says,
 * the program takes a place first, what was mapped is overwritten or cannot be unmapped, a system
 * call does not end. Nothing is left half done.
 */
#include "../harness.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loader/session/session.h"
#include "loader/stop/stop.h"

#define PROGRAM "fay-test-target"

/* What cannot be found is not taken for removed. */
static void test_zone_overwritten(void **state)
{
	struct scene scene;
	struct fay_error error;
	struct fay_zone_header *header;
	uint64_t magic, zero = 0;
	int memory;
	char path[64];

	scene_start(&scene, PROBE_COUNT, PROGRAM "!fn_plain");
	header = &scene.session->plan.zones[0].header;
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)scene.victim.pid);
	memory = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(pread(memory, &magic, sizeof(magic), (off_t)header->data), sizeof(magic));
	assert_int_equal(pwrite(memory, &zero, sizeof(zero), (off_t)header->data), sizeof(zero));
	assert_int_equal(fay_session_detach(scene.session, &error), FAY_E_REFUSED);
	assert_non_null(strstr(error.message, "was not found"));
	assert_int_equal(pwrite(memory, &magic, sizeof(magic), (off_t)header->data), sizeof(magic));
	close(memory);
	assert_int_equal(victim_ask(&scene.victim, "run fn_plain 1 10"), 10);
	scene_end(&scene);
}

static void test_target_killed(void **state)
{
	struct scene scene;
	struct fay_error error;
	int status;

	scene_start(&scene, PROBE_COUNT, PROGRAM "!fn_c");
	assert_int_equal(victim_ask(&scene.victim, "run fn_c 4 1000"), 4000);
	assert_true(fay_session_target_alive(scene.session));
	kill(scene.victim.pid, SIGKILL);
	waitpid(scene.victim.pid, &status, 0);
	assert_false(fay_session_target_alive(scene.session));
	assert_int_equal(fay_session_detach(scene.session, &error), 0);
	assert_int_equal(total(scene.session, 0), 4000);
	fay_session_destroy(scene.session);
	hand_verdict(&scene.hand, PROBE_COUNT, PROGRAM "!fn_c");
	assert_int_equal(
		fay_session_attach(scene.target, &scene.hand.verdict, NULL, &scene.session, &error),
		FAY_E_USAGE);
	assert_non_null(strstr(error.message, "no such process"));
	fay_target_close(scene.target);
	fclose(scene.victim.to);
	fclose(scene.victim.from);
}

/* The layout is not what its hash says: nothing may be patched, nothing may stay. */
static void test_wrong_hash(void **state)
{
	struct victim victim;
	struct fay_target *target;
	struct fay_session *session;
	struct hand_verdict hand;
	struct fay_error error;
	uint64_t checksum;

	victim_start(&victim);
	checksum = victim_ask(&victim, "checksum");
	hand_verdict(&hand, PROBE_COUNT, PROGRAM "!fn_c");
	hand.verdict.layout.sha256[7] ^= 1;
	assert_int_equal(fay_target_open_pid(victim.pid, &target, &error), 0);
	assert_int_equal(fay_session_attach(target, &hand.verdict, NULL, &session, &error),
			 FAY_E_REFUSED);
	assert_non_null(strstr(error.message, "SHA-256"));
	fay_target_close(target);
	assert_clean(&victim, checksum);
	victim_end(&victim);
}

/*
 * Before the n-th mapping of an attempt (table, state, zone's code, its data) the program maps
 * memory of its own at the end of that place. The attempt is made again elsewhere and the program's
 * memory stays.
 */
static unsigned steal_at, mappings_seen;
static unsigned unmap_fails_at, unmaps_seen; /* that one does not end */
static uint64_t stolen;
int __real_fay_stop_syscall(struct fay_stop *stop, long number, const uint64_t arguments[6],
			    int64_t *result, struct fay_error *error);
int __wrap_fay_stop_syscall(struct fay_stop *stop, long number, const uint64_t arguments[6],
			    int64_t *result, struct fay_error *error);
int __wrap_fay_stop_syscall(struct fay_stop *stop, long number, const uint64_t arguments[6],
			    int64_t *result, struct fay_error *error)
{
	if (number == SYS_mmap && ++mappings_seen == steal_at) {
		uint64_t own[6] = { arguments[0] + arguments[1] - 4096,
				    4096,
				    PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
				    (uint64_t)-1,
				    0 };
		int64_t address;

		assert_int_equal(__real_fay_stop_syscall(stop, number, own, &address, error), 0);
		stolen = (uint64_t)address;
		assert_int_equal(fay_stop_write(stop, stolen, "mine", 4), 0);
	}
	if (number == SYS_munmap && ++unmaps_seen == unmap_fails_at)
		return fay_error_set(error, FAY_E_LIMIT, "did not end");
	return __real_fay_stop_syscall(stop, number, arguments, result, error);
}

static void test_place_taken(void **state)
{
	for (steal_at = 1; steal_at <= 4; steal_at++) {
		struct scene scene;
		char text[4] = "";
		struct iovec here = { text, 4 }, there;

		mappings_seen = 0;
		stolen = 0;
		scene_start(&scene, PROBE_COUNT, PROGRAM "!fn_c");
		assert_true(stolen != 0);
		there = (struct iovec){ (void *)stolen, 4 };
		assert_int_equal(process_vm_readv(scene.victim.pid, &here, 1, &there, 1, 0), 4);
		assert_memory_equal(text, "mine", 4);
		assert_int_equal(victim_ask(&scene.victim, "run fn_c 1 100"), 100);
		assert_int_equal(total(scene.session, 0), 100);
		scene_end(&scene);
	}
	steal_at = 0;
}

/* The program maps a page of its own, if nothing is there. */
static bool map_own(const struct victim *victim, uint64_t address)
{
	const uint64_t own[6] = { address,
				  4096,
				  PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
				  (uint64_t)-1,
				  0 };
	struct fay_stop stop;
	struct fay_error error;
	int64_t result = 0;

	assert_int_equal(fay_stop_all(victim->pid, 20000, 20000, &stop, &error), 0);
	assert_int_equal(__real_fay_stop_syscall(&stop, SYS_mmap, own, &result, &error), 0);
	if (result == (int64_t)address)
		assert_int_equal(fay_stop_write(&stop, address, "mine", 4), 0);
	fay_stop_release(&stop);
	return result == (int64_t)address;
}

/* The n-th unmapping (table, state, zone) fails: another attempt removes the rest, and not what the
 * program has mapped meanwhile where the table was. */
static void test_unmapping_fails(void **state)
{
	for (unsigned n = 1; n <= 3; n++) {
		struct scene scene;
		struct fay_error error;
		char text[4] = "";
		struct iovec here = { text, 4 }, there;

		scene_start(&scene, PROBE_COUNT, PROGRAM "!fn_c");
		there = (struct iovec){ (void *)scene.session->plan.table_address, 4 };
		unmaps_seen = 0;
		unmap_fails_at = n;
		assert_int_equal(fay_session_detach(scene.session, &error), FAY_E_LIMIT);
		unmap_fails_at = 0;
		assert_int_equal(victim_ask(&scene.victim, "run fn_c 1 100"), 100);
		assert_int_equal(map_own(&scene.victim, scene.session->plan.table_address), n > 1);
		assert_int_equal(fay_session_detach(scene.session, &error), 0);
		if (n > 1) {
			assert_int_equal(process_vm_readv(scene.victim.pid, &here, 1, &there, 1, 0),
					 4);
			assert_memory_equal(text, "mine", 4);
		}
		scene_end(&scene);
	}
}

/* A system call in the target that does not end is given up; the thread that was borrowed for it is
 * as it was, and further calls run. */
static void test_system_call_without_end(void **state)
{
	static const uint64_t none[6];
	struct victim victim;
	struct fay_stop stop;
	struct fay_error error;
	int64_t result;

	victim_start(&victim);
	assert_int_equal(fay_stop_all(victim.pid, 20000, 20000, &stop, &error), 0);
	stop.syscall_rounds = FAY_SYSCALL_ROUNDS_AGAIN + 1; /* is less from the first one on */
	for (int i = 0; i < 3; i++) {
		assert_int_equal(__real_fay_stop_syscall(&stop, SYS_pause, none, &result, &error),
				 FAY_E_LIMIT);
		assert_non_null(strstr(error.message, "did not return"));
		assert_int_equal(stop.syscall_rounds, FAY_SYSCALL_ROUNDS_AGAIN);
	}
	assert_int_equal(stop.looks_missed, 2); /* nobody looks on where that is in vain */
	stop.syscall_rounds = FAY_SYSCALL_ROUNDS;
	assert_int_equal(__real_fay_stop_syscall(&stop, SYS_getpid, none, &result, &error), 0);
	assert_int_equal(result, victim.pid);
	fay_stop_release(&stop);
	assert_int_equal(victim_ask(&victim, "run fn_c 2 100"), 200);
	assert_int_equal(victim_ask(&victim, "registers"), 0);
	victim_end(&victim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_zone_overwritten),
		cmocka_unit_test(test_target_killed),
		cmocka_unit_test(test_wrong_hash),
		cmocka_unit_test(test_place_taken),
		cmocka_unit_test(test_unmapping_fails),
		cmocka_unit_test(test_system_call_without_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
