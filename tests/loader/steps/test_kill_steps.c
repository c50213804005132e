/* SPDX-License-Identifier: MIT */
/*
 * fay is killed with SIGKILL at its n-th system call, for every n from the first one that touches
 * the target on: while its keeper stops the busy target's threads, runs system calls in it, writes
 * jumps, lets go, and the same in detaching. The target must go on, answer rightly, and be as it
 * was once what was left is removed. So it is while a function is taken out of a trace that goes on
 * (--budget). Likewise the target is killed at each step, and fay must end by itself and say so.
 *
 *	test_kill_steps FAY PROBE.c [STEPS]     STEPS places spread evenly over all; 0: every one
 *
 * The test traces fay and its keepers with PTRACE_SYSCALL; fay knows nothing of it.
 */
#include "../harness.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fay/loader.h"

#define WORKERS 4

static const char *fay_path;
static unsigned long steps_wanted = 30;
static char image_path[] = "/tmp/fay_kill_steps_XXXXXX";
static int fay_errors; /* the file that fay's standard error goes to */

enum whom { NOBODY, FAY, TARGET };

struct scenario {
	const char *duration, *budget;
	/* only steps while this one is at work count; 0: all from the start of the first one on */
	unsigned keeper;
};
static const struct scenario plain = { "10ms", NULL, 0 };
/* the budget is looked at every 20 ms, and what is out comes back after a second */
static const struct scenario taking_out = { "600ms", "0.01%", 2 };
static const struct scenario putting_back = { "2500ms", "5%", 3 };

struct outcome {
	unsigned long steps; /* system calls that count */
	unsigned keepers;    /* that were started */
	bool in_keeper;      /* the kill came while one was at work */
	bool killed;
	int status; /* of fay */
};

static void child_main(const struct scenario *scenario, pid_t target)
{
	char pid[16];
	int null = open("/dev/null", O_RDWR);

	snprintf(pid, sizeof(pid), "%d", (int)target);
	dup2(null, 0), dup2(null, 1), dup2(fay_errors, 2);
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	execl(fay_path, fay_path, "trace", "--for", scenario->duration, "-p", pid, "--probe",
	      image_path, scenario->budget ? "--budget" : NULL, scenario->budget, NULL);
	_exit(127);
}

/* What the last fay wrote to its standard error. */
static const char *last_words(void)
{
	static char words[4096];
	ssize_t length = pread(fay_errors, words, sizeof(words) - 1, 0);

	words[length > 0 ? length : 0] = '\0';
	return words;
}

/*
 * Whether we trace anything still. A fay that is killed in its clone() dies without the event that
 * tells of the keeper, which is ours to let run all the same.
 */
static bool any_tracee(void)
{
	struct dirent *entry;
	bool found = false;
	DIR *proc = opendir("/proc");

	while (proc && !found && (entry = readdir(proc))) {
		char path[300], line[256];
		int tracer = 0;
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%s/status", entry->d_name);
		file = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' ? fopen(path, "re")
									  : NULL;
		while (file && fgets(line, sizeof(line), file))
			if (sscanf(line, "TracerPid: %d", &tracer) == 1)
				break;
		if (file)
			fclose(file);
		found = tracer == getpid();
	}
	if (proc)
		closedir(proc);
	return found;
}

/* Runs fay on the target and kills whom at step `at`. Keepers are traced to their end. */
static struct outcome run_fay(const struct scenario *scenario, pid_t target, enum whom whom,
			      unsigned long at)
{
	struct outcome outcome = { 0 };
	pid_t fay;
	unsigned keepers = 0;
	bool fay_ended = false;
	int status;

	assert_int_equal(ftruncate(fay_errors, 0), 0);
	fay = fork();
	if (fay == 0)
		child_main(scenario, target);
	assert_int_equal(waitpid(fay, &status, 0), fay);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(ptrace(PTRACE_SETOPTIONS, fay, 0,
				PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC | PTRACE_O_TRACECLONE |
					PTRACE_O_TRACEFORK),
			 0);
	assert_int_equal(ptrace(PTRACE_SYSCALL, fay, 0, 0), 0);
	while (!fay_ended || keepers || any_tracee()) {
		pid_t got = waitpid(-1, &status, __WALL | __WNOTHREAD);
		long signal = 0;

		if (got < 0 && errno == ECHILD)
			break;
		if (got == target)
			continue; /* killed by us: reaped */
		if (!WIFSTOPPED(status)) {
			if (got == fay) {
				outcome.status = status;
				fay_ended = true;
			} else if (keepers) {
				keepers--;
			}
			continue;
		}
		if (status >> 16 == PTRACE_EVENT_CLONE || status >> 16 == PTRACE_EVENT_FORK) {
			outcome.keepers++;
			keepers++;
		} else if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
			outcome.steps += scenario->keeper
						 ? keepers && outcome.keepers == scenario->keeper
						 : outcome.keepers > 0;
			if (whom != NOBODY && !outcome.killed && outcome.steps == at) {
				outcome.killed = true;
				outcome.in_keeper = keepers > 0;
				kill(whom == FAY ? fay : target, SIGKILL);
			}
		} else if (status >> 16 == 0 && WSTOPSIG(status) != SIGSTOP) {
			signal = WSTOPSIG(status);
		}
		ptrace(PTRACE_SYSCALL, got, 0, signal);
	}
	return outcome;
}

static size_t installed(pid_t pid)
{
	struct fay_installed_sessions list;
	struct fay_error error;
	size_t count;

	if (fay_installed_sessions(pid, &list, &error))
		fail_msg("%s", error.message);
	count = list.count;
	fay_installed_sessions_deinit(&list);
	return count;
}

static unsigned long stride_of(unsigned long steps)
{
	return steps_wanted && steps > steps_wanted ? steps / steps_wanted : 1;
}

/* What the killed fay has left is removed; then the target must be as it was. */
static void recover(struct victim *victim, uint64_t checksum, unsigned long step)
{
	size_t removed = 0, kept = 1;
	struct fay_error error;

	for (int round = 0; kept && round < 10; round++)
		if (fay_leftovers_remove(victim->pid, false, &removed, &kept, &error))
			fail_msg("step %lu: %s", step, error.message);
	assert_int_equal(installed(victim->pid), 0);
	/* Its threads check what each call returns. */
	assert_true(victim_ask(victim, "stop") > 0);
	if (victim_ask(victim, "checksum") != checksum)
		fail_msg("step %lu: the text is not what it was", step);
	assert_int_equal(victim_ask(victim, "registers"), 0);
}

static void kill_at_steps(const struct scenario *scenario)
{
	struct victim victim;
	uint64_t checksum;
	unsigned long steps, stride, in_keeper = 0, runs = 0, left = 0;
	struct outcome whole;

	victim_start(&victim);
	checksum = victim_ask(&victim, "checksum");
	victim_ask(&victim, "start fn_c %d", WORKERS);
	/* On a machine that stands still meanwhile the time can be up before the budget was looked
	 * at. */
	for (unsigned tries = 0; tries == 0 || (scenario->budget && tries < 5 && whole.keepers < 3);
	     tries++)
		whole = run_fay(scenario, victim.pid, NOBODY, 0);
	steps = whole.steps;
	assert_true(steps > 100); /* the transactions were seen */
	if (scenario->budget &&
	    (whole.keepers < 3 ||
	     !strstr(last_words(), "left out from now on: fay-test-target!fn_c")))
		fail_msg("%u keepers, not 3, for attaching, taking out and detaching: %s",
			 whole.keepers, last_words());
	assert_int_equal(installed(victim.pid), 0);
	stride = stride_of(steps) * (scenario->budget ? 2 : 1);
	for (unsigned long at = 1; at <= steps; at += stride, runs++) {
		struct outcome outcome = run_fay(scenario, victim.pid, FAY, at);

		if (!outcome.killed)
			continue; /* it needed fewer steps this time */
		assert_true(WIFSIGNALED(outcome.status));
		in_keeper += outcome.in_keeper;
		left += installed(victim.pid) != 0;
		recover(&victim, checksum, at);
		victim_ask(&victim, "start fn_c %d", WORKERS);
	}
	victim_ask(&victim, "stop");
	victim_end(&victim);
	printf("fay killed %lu times over %lu steps, %lu times under its keeper; %lu times "
	       "something was left, and removed\n",
	       runs, steps, in_keeper, left);
	assert_true(in_keeper > 0);
}

static void test_fay_killed(void **state)
{
	(void)state;
	kill_at_steps(&plain);
}

static void test_fay_killed_taking_out(void **state)
{
	(void)state;
	kill_at_steps(&taking_out);
}

static void test_fay_killed_putting_back(void **state)
{
	(void)state;
	kill_at_steps(&putting_back);
}

static void test_target_killed(void **state)
{
	struct victim victim;
	unsigned long steps, stride, runs = 0;

	(void)state;
	victim_start(&victim);
	steps = run_fay(&plain, victim.pid, NOBODY, 0).steps;
	victim_end(&victim);
	stride = 2 * stride_of(steps);
	for (unsigned long at = 1; at <= steps; at += stride, runs++) {
		struct outcome outcome;

		victim_start(&victim);
		victim_ask(&victim, "start fn_c %d", WORKERS);
		outcome = run_fay(&plain, victim.pid, TARGET, at);
		kill(victim.pid, SIGKILL);
		waitpid(victim.pid, NULL, 0);
		fclose(victim.to);
		fclose(victim.from);
		if (!WIFEXITED(outcome.status) || WEXITSTATUS(outcome.status) > 1)
			fail_msg("target killed at step %lu: fay ended with wait status %#x: %s",
				 at, outcome.status, last_words());
	}
	printf("target killed %lu times over %lu steps\n", runs, steps);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_fay_killed),
					    cmocka_unit_test(test_fay_killed_taking_out),
					    cmocka_unit_test(test_fay_killed_putting_back),
					    cmocka_unit_test(test_target_killed) };
	char command[512];
	int result;

	if (argc < 3) {
		fprintf(stderr, "usage: test_kill_steps FAY PROBE.c [STEPS]\n");
		return 2;
	}
	fay_path = argv[1];
	if (argc > 3)
		steps_wanted = strtoul(argv[3], NULL, 10);
	close(mkstemp(image_path));
	fay_errors = open("/tmp", O_TMPFILE | O_RDWR | O_APPEND, 0600);
	if (fay_errors < 0) {
		perror("test_kill_steps: /tmp");
		return 1;
	}
	snprintf(command, sizeof(command), "%s cc %s -o %s", fay_path, argv[2], image_path);
	if (system(command))
		return 1;
	result = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(image_path);
	return result;
}
