/* SPDX-License-Identifier: MIT */
/*
 * Others' uprobes (the kernel's, of perf and BPF) beside fay's patches: an int3 that is there
 * already is not displaced, one that comes later is not lost when fay goes, nor one that comes
 * while fay attaches, and in the end the text is what it was.
 */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ROUNDS 20u
#define CPUS_MAX 256

static uint64_t place; /* of fn_c in the program's file */

/* The file offset of a function of the target, whose code lies in memory as it lies in the file. */
static uint64_t offset_of(struct fay_target *target, const char *pattern)
{
	struct fay_function_list list = { 0 };
	struct fay_function_file file;
	struct fay_error error = { 0 };
	uint64_t address;

	if (fay_target_find(target, pattern, &list, &error))
		fail_msg("%s", error.message);
	assert_true(fay_target_file_of(target, &list.items[0], &file));
	address = file.address;
	fay_function_list_deinit(&list);
	return address;
}

/* The kernel sets uprobes in every process that has mapped the file: ours is a copy of the program
 * that nobody else runs. */
static char directory[] = "/tmp/fay_uprobe_XXXXXX", program[64];

struct uprobe {
	int fds[CPUS_MAX];
	int count;
};

static void uprobe_end(struct uprobe *uprobe)
{
	while (uprobe->count)
		close(uprobe->fds[--uprobe->count]);
}

/* Counts the calls at a place of the program's file; one counter for each processor. False: not
 * possible here. */
static bool uprobe_begin(struct uprobe *uprobe)
{
	struct perf_event_attr attributes = { .size = sizeof(attributes),
					      .config1 = (uint64_t)program,
					      .config2 = place };
	FILE *file = fopen("/sys/bus/event_source/devices/uprobe/type", "re");

	uprobe->count = 0;
	if (!file)
		return false;
	if (fscanf(file, "%u", &attributes.type) != 1)
		attributes.type = 0;
	fclose(file);
	for (int cpu = 0; attributes.type && cpu < CPUS_MAX; cpu++) {
		int fd = (int)syscall(SYS_perf_event_open, &attributes, -1, cpu, -1,
				      PERF_FLAG_FD_CLOEXEC);

		if (fd >= 0)
			uprobe->fds[uprobe->count++] = fd;
		else if (errno != ENODEV && errno != EINVAL) /* no such processor */
			break;
	}
	return uprobe->count > 0;
}

static uint64_t hits(const struct uprobe *uprobe)
{
	uint64_t sum = 0, count = 0;

	for (int i = 0; i < uprobe->count; i++) {
		assert_int_equal(read(uprobe->fds[i], &count, sizeof(count)), sizeof(count));
		sum += count;
	}
	return sum;
}

/* The program, and whether uprobes can be set in it. */
static bool begin(struct victim *victim)
{
	struct fay_target *target;
	struct fay_error error = { 0 };
	struct uprobe probe;

	victim_start_program(victim, program);
	assert_int_equal(fay_target_open_pid(victim->pid, &target, &error), 0);
	place = offset_of(target, "fay-test-target!fn_c");
	fay_target_close(target);
	if (!uprobe_begin(&probe)) {
		print_message("skipped: the kernel grants no uprobe: %s\n", strerror(errno));
		victim_end(victim);
		return false;
	}
	uprobe_end(&probe);
	return true;
}

static void test_there_before(void **state)
{
	struct hand_verdict hand;
	struct victim victim;
	struct fay_target *target;
	struct fay_session *session = NULL;
	struct fay_error error = { 0 };
	struct uprobe probe;
	uint64_t checksum;

	(void)state;
	if (!begin(&victim))
		skip();
	checksum = victim_ask(&victim, "checksum");
	hand_verdict(&hand, PROBE_COUNT, "fay-test-target!fn_c");
	assert_true(uprobe_begin(&probe));
	assert_int_equal(fay_target_open_pid(victim.pid, &target, &error), 0);
	assert_int_not_equal(fay_session_attach(target, &hand.verdict, NULL, &session, &error), 0);
	assert_non_null(strstr(error.message, "int3"));
	fay_target_close(target);
	assert_int_equal(victim_ask(&victim, "run fn_c 1 100"), 100);
	assert_int_equal(hits(&probe), 100);
	uprobe_end(&probe);
	assert_true(victim_ask(&victim, "checksum") == checksum);
	victim_end(&victim);
}

static void test_comes_later(void **state)
{
	struct hand_verdict hand;
	struct victim victim;
	struct fay_target *target;
	struct fay_installed_sessions list;
	struct fay_session *session;
	struct fay_error error = { 0 };
	struct uprobe probe;
	uint64_t checksum;

	(void)state;
	if (!begin(&victim))
		skip();
	checksum = victim_ask(&victim, "checksum");
	hand_verdict(&hand, PROBE_COUNT, "fay-test-target!fn_c");
	session = attach(&victim, &target, &hand);
	assert_true(uprobe_begin(&probe));
	detach(session, target);
	assert_int_equal(fay_installed_sessions(victim.pid, &list, &error), 0);
	assert_int_equal(list.count, 0);
	fay_installed_sessions_deinit(&list);
	assert_int_equal(victim_ask(&victim, "run fn_c 1 100"), 100);
	assert_int_equal(hits(&probe), 100);
	uprobe_end(&probe);
	assert_true(victim_ask(&victim, "checksum") == checksum);
	assert_int_equal(victim_ask(&victim, "run fn_c 1 100"), 100);
	victim_end(&victim);
}

static volatile bool ended;

static void *attach_often(void *context)
{
	struct victim *victim = context;
	struct hand_verdict hand;

	hand_verdict(&hand, PROBE_COUNT, "fay-test-target!fn_plain");
	while (!ended) {
		struct fay_target *target;
		struct fay_session *session = attach(victim, &target, &hand);

		detach(session, target);
	}
	return NULL;
}

/* Another function of the same page is attached to and detached from again and again. */
static void test_comes_meanwhile(void **state)
{
	struct victim victim;
	uint64_t checksum;
	pthread_t thread;

	(void)state;
	if (!begin(&victim))
		skip();
	checksum = victim_ask(&victim, "checksum");
	ended = false;
	assert_int_equal(pthread_create(&thread, NULL, attach_often, &victim), 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct uprobe probe;

		assert_true(uprobe_begin(&probe));
		usleep(20000);
		assert_int_equal(victim_ask(&victim, "run fn_c 1 100"), 100);
		assert_int_equal(hits(&probe), 100);
		uprobe_end(&probe);
	}
	ended = true;
	pthread_join(thread, NULL);
	assert_true(victim_ask(&victim, "checksum") == checksum);
	victim_end(&victim);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_there_before),
					    cmocka_unit_test(test_comes_later),
					    cmocka_unit_test(test_comes_meanwhile) };
	char command[512];
	int result;

	if (!mkdtemp(directory))
		return 1;
	snprintf(program, sizeof(program), "%s/fay-test-target", directory);
	snprintf(command, sizeof(command), "cp %s %s", TARGET_PROGRAM, program);
	if (system(command))
		return 1;
	result = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(program);
	rmdir(directory);
	return result;
}
