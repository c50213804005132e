/* SPDX-License-Identifier: MIT */
/* See held.h. */
#include "held.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "loader/stop/stop.h"

#define TRACED __attribute__((noinline, noclone, visibility("default")))

pid_t victim, threads[THREADS];
struct fay_target *target;
/* of each thread's work; shared with the victim, as are the following */
static volatile uint64_t *rounds;
static volatile uint64_t *held; /* whether the test holds the threads */
unsigned steps_at_release[THREADS], random_steps, releases;
bool go_on_at_release;

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

static unsigned long wanted;

void on_signal(int number)
{
}

static void *work(void *number)
{
	for (;;) {
		if (steps_all(5) != wanted)
			_exit(3);
		rounds[(uintptr_t)number]++;
		if (*held)
			__asm__ volatile("int3");
	}
	return NULL;
}

struct user_regs_struct registers_of(pid_t thread)
{
	struct user_regs_struct registers = { 0 };

	assert_int_equal(ptrace(PTRACE_GETREGS, thread, 0, &registers), 0);
	return registers;
}

void assert_stopped(pid_t thread, int status)
{
	if (!WIFSTOPPED(status))
		fail_msg("the program has ended: %#x", (unsigned)status);
	if ((WSTOPSIG(status) & ~0x80) != SIGTRAP)
		fail_msg("signal %d at %#llx", WSTOPSIG(status), registers_of(thread).rip);
}

void step(pid_t thread)
{
	int status;

	assert_int_equal(ptrace(PTRACE_SINGLESTEP, thread, 0, 0), 0);
	assert_int_equal(waitpid(thread, &status, __WALL), thread);
	assert_stopped(thread, status);
}

void steps(pid_t thread, unsigned count)
{
	while (count--)
		step(thread);
}

unsigned random_below(unsigned limit)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)((state >> 33) % limit);
}

void go_on(void)
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
	fay_maps_deinit(&stop->maps);
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

int hold_victim(void **state)
{
	struct fay_error error;
	struct dirent *entry;
	char path[64];
	unsigned count = 0;
	DIR *tasks;
	int status;

	rounds = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(rounds != MAP_FAILED);
	held = rounds + THREADS;
	wanted = steps_all(5);
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

int end_victim(void **state)
{
	fay_target_close(target);
	kill(victim, SIGKILL);
	while (waitpid(-1, NULL, __WALL) > 0)
		;
	munmap((void *)rounds, 4096);
	return 0;
}
