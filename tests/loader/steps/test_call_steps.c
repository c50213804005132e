/* SPDX-License-Identifier: MIT */
/*
 * Sessions that watch the ends of calls come to a program and leave it while its threads stand at
 * chosen instructions, in the sessions' own code above all: the program goes on, and computes what
 * it does untraced.
 *
 * Nothing here depends on time. The victim is held by this test throughout, and so what the loader
 * does is run here, not in a keeper: where it lets the process go, the threads take as many steps
 * as the test says. The victim is a fork of the test.
 */
#include "../harness.h"

#include <dirent.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime.h"
#include "session.h"

#define THREADS 2
#define TRACED __attribute__((noinline, noclone, visibility("default")))
#define LIVE_MOST 3

static pid_t victim, threads[THREADS];
static struct fay_target *target;
/* probes that are copied into the trampolines, and that are called, with the thread marked as busy
 * */
static struct hand_verdict counts, copies;
/* of each thread's work; shared with the victim, as are the following */
static volatile uint64_t *rounds;
/* whether the test holds the threads; whether they walk their stacks */
static volatile uint64_t *held, *walks;
static volatile uint64_t *walked; /* how many frames each thread came to */
/* that the threads take when the loader lets them go: so many, or, if `random_steps`, at most so
 * many */
static unsigned steps_at_release[THREADS];
static unsigned random_steps;
/* from the second time on they go on to the end of their round, too */
static bool go_on_at_release;
static unsigned releases;

unsigned long steps_leaf(unsigned long x);
unsigned long steps_called_last(unsigned long x);
unsigned long steps_ends_in_call(unsigned long x);
unsigned long steps_again(unsigned long n);
unsigned long steps_walk(unsigned long number);
unsigned long steps_all(unsigned long x);

TRACED unsigned long steps_leaf(unsigned long x)
{
	__asm__ volatile("" : "+r"(x));
	return 3 * x + 1;
}

TRACED unsigned long steps_called_last(unsigned long x)
{
	__asm__ volatile("" : "+r"(x));
	return steps_leaf(x) + 7;
}

TRACED unsigned long steps_ends_in_call(unsigned long x)
{
	__asm__ volatile("" : "+r"(x));
	return steps_called_last(x + 1);
}

TRACED unsigned long steps_again(unsigned long n)
{
	__asm__ volatile("" : "+r"(n));
	return n ? steps_again(n - 1) + steps_leaf(n) : 1;
}

TRACED unsigned long steps_all(unsigned long x)
{
	__asm__ volatile("" : "+r"(x));
	/* first: threads are led to it by single steps */
	unsigned long sum = steps_ends_in_call(x);

	return sum + steps_leaf(x) + steps_again(2) + steps_leaf(x + 1);
}

TRACED unsigned long steps_walk(unsigned long number)
{
	void *frames[64];

	walked[number] = (uint64_t)backtrace(frames, 64);
	return number;
}

static unsigned long wanted;

static void on_signal(int number)
{
}

static void *work(void *number)
{
	for (;;) {
		if (steps_all(5) != wanted)
			_exit(3);
		if (*walks && steps_walk((uintptr_t)number) != (uintptr_t)number)
			_exit(3);
		rounds[(uintptr_t)number]++;
		if (*held)
			__asm__ volatile("int3");
	}
	return NULL;
}

static struct user_regs_struct registers_of(pid_t thread)
{
	struct user_regs_struct registers = { 0 };

	assert_int_equal(ptrace(PTRACE_GETREGS, thread, 0, &registers), 0);
	return registers;
}

/* The thread has stopped, as it should have. */
static void assert_stopped(pid_t thread, int status)
{
	if (!WIFSTOPPED(status))
		fail_msg("the program has ended: %#x", (unsigned)status);
	if ((WSTOPSIG(status) & ~0x80) != SIGTRAP)
		fail_msg("signal %d at %#llx", WSTOPSIG(status), registers_of(thread).rip);
}

static void step(pid_t thread)
{
	int status;

	assert_int_equal(ptrace(PTRACE_SINGLESTEP, thread, 0, 0), 0);
	assert_int_equal(waitpid(thread, &status, __WALL), thread);
	assert_stopped(thread, status);
}

static void steps(pid_t thread, unsigned count)
{
	while (count--)
		step(thread);
}

static unsigned random_below(unsigned limit)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)((state >> 33) % limit);
}

/* Both threads go through all their calls, to the end and once more, and stop between two rounds.
 * */
static void go_on(void)
{
	for (unsigned i = 0; i < THREADS; i++)
		for (uint64_t to = rounds[i] + 2; rounds[i] < to;) {
			int status;

			assert_int_equal(ptrace(PTRACE_CONT, threads[i], 0, 0), 0);
			assert_int_equal(waitpid(threads[i], &status, __WALL), threads[i]);
			assert_stopped(threads[i], status);
		}
}

int __wrap_fay_keeper_run(int (*transaction)(void *context), void *context,
			  struct fay_error *error);
int __wrap_fay_stop_all(pid_t pid, uint32_t stop_timeout_ms, uint32_t tracer_wait_ms,
			struct fay_stop *stop, struct fay_error *error);
uint64_t __wrap_fay_stop_release(struct fay_stop *stop);
int __wrap_usleep(useconds_t microseconds);

int __wrap_fay_keeper_run(int (*transaction)(void *context), void *context, struct fay_error *error)
{
	return transaction(context);
}

int __wrap_usleep(useconds_t microseconds)
{
	return 0;
}

int __wrap_fay_stop_all(pid_t pid, uint32_t stop_timeout_ms, uint32_t tracer_wait_ms,
			struct fay_stop *stop, struct fay_error *error)
{
	char path[64];

	*stop = (struct fay_stop){ .pid = pid,
				   .syscall_rounds = FAY_SYSCALL_ROUNDS,
				   .count = THREADS,
				   .capacity = THREADS };
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	stop->memory = open(path, O_RDWR | O_CLOEXEC);
	stop->threads = calloc(THREADS, sizeof(*stop->threads));
	assert_int_equal(pid, victim);
	assert_true(stop->memory >= 0 && stop->threads);
	for (unsigned i = 0; i < THREADS; i++)
		stop->threads[i] = (struct fay_stopped_thread){
			.tid = threads[i], .stopped = true, .registers = registers_of(threads[i])
		};
	return 0;
}

uint64_t __wrap_fay_stop_release(struct fay_stop *stop)
{
	for (unsigned i = 0; i < THREADS; i++)
		if (stop->threads[i].dirty)
			assert_int_equal(
				ptrace(PTRACE_SETREGS, threads[i], 0, &stop->threads[i].registers),
				0);
	close(stop->memory);
	free(stop->threads);
	for (unsigned i = 0; i < THREADS; i++)
		steps(threads[i], random_steps ? random_below(random_steps) : steps_at_release[i]);
	if (releases++ && go_on_at_release)
		go_on();
	return 1;
}

static void victim_main(void)
{
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGUSR1, on_signal);
	for (uintptr_t i = 1; i < THREADS; i++)
		if (pthread_create(&thread, NULL, work, (void *)i))
			_exit(2);
	work(NULL);
}

static int hold_victim(void **state)
{
	struct fay_error error;
	struct dirent *entry;
	char path[64];
	unsigned count = 0;
	DIR *tasks;
	int status;

	rounds = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(rounds != MAP_FAILED);
	walked = rounds + THREADS;
	held = walked + THREADS;
	walks = held + 1;
	wanted = steps_all(5);
	steps_walk(0); /* what it needs is loaded */
	victim = fork();
	if (victim == 0)
		victim_main();
	assert_true(victim > 0);
	for (unsigned i = 0; i < THREADS; i++)
		while (!rounds[i])
			nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
	snprintf(path, sizeof(path), "/proc/%d/task", (int)victim);
	tasks = opendir(path);
	assert_non_null(tasks);
	while (count < THREADS && (entry = readdir(tasks))) {
		pid_t thread = (pid_t)strtol(entry->d_name, NULL, 10);

		if (thread <= 0)
			continue;
		assert_int_equal(
			ptrace(PTRACE_SEIZE, thread, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL),
			0);
		assert_int_equal(ptrace(PTRACE_INTERRUPT, thread, 0, 0), 0);
		assert_int_equal(waitpid(thread, &status, __WALL), thread);
		threads[count++] = thread;
	}
	closedir(tasks);
	assert_int_equal(count, THREADS);
	*held = 1;
	go_on();
	if (fay_target_open_pid(victim, &target, &error))
		fail_msg("open: %s", error.message);
	return 0;
}

static int end_victim(void **state)
{
	fay_target_close(target);
	kill(victim, SIGKILL);
	while (waitpid(-1, NULL, __WALL) > 0)
		;
	munmap((void *)rounds, 4096);
	return 0;
}

static void prepare_probes(void)
{
	hand_verdict(&counts, PROBE_COUNT, "test_call_steps!steps_*");
	counts.probes[0].kind = FAY_PROBE_RETURN;
	hand_verdict(&copies, PROBE_EVENT, "test_call_steps!steps_*");
	copies.probes[0].kind = FAY_PROBE_RETURN;
	copies.probes[0].event_fields = FAY_FIELD_DURATION | FAY_FIELD_RETVAL | FAY_FIELD_FUNCTION;
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
	bool gone = remove_id(session->id);

	session->attached = false;
	fay_session_destroy(session);
	return gone;
}

static bool is_in(const struct fay_session *session, uint64_t address)
{
	for (size_t i = 0; i < session->zone_count; i++)
		if (address - session->zones[i].header.code < session->zones[i].header.code_size)
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
	uint64_t id = session->id;

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
		left = standing->id;
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

			left[left_count] = live[which]->id;
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
