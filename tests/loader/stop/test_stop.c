/* SPDX-License-Identifier: MIT */
/*
 * Programs that are hard to stop: they execute themselves, are held by another tracer, handle their
 * system calls themselves, have a terabyte of code, or a worker of the kernel's among their
 * threads.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "loader/process/process.h"
#include "stopping.h"

#define SEIZES 300u
#define MANY_THREADS 3000u

/*
 * A program that is stopped while it executes itself: each attempt ends, with the program stopped
 * and a system call run in it, or with the reason why not; and the program goes on. SEIZES are
 * those in which it was stopped.
 */
static void test_executing(void **state)
{
	unsigned stopped = 0;
	int input[2], status;
	pid_t child;

	(void)state;
	assert_int_equal(pipe(input), 0);
	child = fork();
	if (child == 0) {
		dup2(input[0], 0);
		close(input[0]), close(input[1]);
		execl(EXEC_PROGRAM, EXEC_PROGRAM, NULL);
		_exit(127);
	}
	close(input[0]);
	for (unsigned i = 0; stopped < SEIZES && i < 10 * SEIZES; i++) {
		struct fay_error error = { 0 };
		struct fay_stop stop;

		if (fay_stop_all(child, FAY_STOP_TIMEOUT_MS, FAY_TRACER_WAIT_MS, &stop, &error))
			continue;
		stopped += !stop_borrow(&stop, NULL);
		fay_stop_release(&stop);
		usleep(i % 5 * 200);
		if (waitpid(child, &status, WNOHANG) == child)
			fail_msg("after %u stops: wait status %#x", stopped, status);
	}
	close(input[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(stopped == SEIZES);
}

/* In a PID namespace, as its first process, with a /proc of its own: a child is held by a tracer
 * outside. First for too long, then it lets go. */
static int stop_held(int ready, int go, int waits)
{
	struct fay_error error = { 0 };
	struct fay_stop stop;
	char byte = 0;
	pid_t held;

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("proc", "/proc", "proc", 0, NULL))
		return 77;
	held = fork();
	if (held == 0)
		for (;;)
			pause();
	if (write(ready, "r", 1) != 1 || read(go, &byte, 1) != 1)
		return 1;
	if (fay_stop_all(held, FAY_STOP_TIMEOUT_MS, 100, &stop, &error) != FAY_E_REFUSED ||
	    !strstr(error.message, "from another PID namespace"))
		return fprintf(stderr, "held: %s\n", error.message), 2;
	if (write(waits, "w", 1) != 1)
		return 3;
	if (fay_stop_all(held, FAY_STOP_TIMEOUT_MS, 60000, &stop, &error))
		return fprintf(stderr, "let go: %s\n", error.message), 4;
	fay_stop_release(&stop);
	return 0;
}

/* The only child of a process; 0: none. */
static pid_t child_of(pid_t pid)
{
	char path[64];
	int child = 0;
	FILE *list;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
	list = fopen(path, "r");
	if (list) {
		if (fscanf(list, "%d", &child) != 1)
			child = 0;
		fclose(list);
	}
	return child;
}

static void test_held_from_outside(void **state)
{
	int ready[2], go[2], waits[2], status;
	char byte;

	(void)state;
	assert_true(!pipe(ready) && !pipe(go) && !pipe(waits));
	pid_t outer = fork();
	if (outer == 0) {
		if (unshare(CLONE_NEWPID | CLONE_NEWNS))
			_exit(77);
		pid_t first = fork();
		if (first == 0)
			_exit(stop_held(ready[1], go[0], waits[1]));
		close(ready[1]), close(waits[1]);
		if (first < 0 || waitpid(first, &status, 0) != first)
			_exit(1);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
	}
	close(ready[1]), close(waits[1]);
	if (read(ready[0], &byte, 1) == 1) {
		pid_t held = child_of(child_of(outer));

		assert_true(held > 0);
		assert_int_equal(ptrace(PTRACE_SEIZE, held, 0, 0), 0);
		assert_int_equal(write(go[1], "g", 1), 1);
		if (read(waits[0], &byte, 1) == 1)
			usleep(20000);
		assert_int_equal(ptrace(PTRACE_INTERRUPT, held, 0, 0), 0);
		assert_int_equal(waitpid(held, &status, __WALL), held);
		ptrace(PTRACE_DETACH, held, 0, 0);
	}
	assert_int_equal(waitpid(outer, &status, 0), outer);
	close(ready[0]), close(go[0]), close(go[1]), close(waits[0]);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		print_message("skipped: this container does not allow mount namespaces\n");
		skip();
	}
	assert_int_equal(status, 0);
}

/* A program without the kernel's vdso, and with a terabyte of code before all other: some `syscall`
 * instruction is found all the same, without reading all that while the program stands. */
static void test_much_code(void **state)
{
	const size_t much = (size_t)1 << 40;
	struct fay_error error = { 0 };
	struct fay_stop stopped;
	struct fay_maps maps;
	int ready[2];
	char byte;
	pid_t child;

	(void)state;
	assert_int_equal(fay_maps_read(getpid(), &maps, &error), 0);
	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (child == 0) {
		bool made = mmap((void *)0x10000000, much, PROT_READ | PROT_EXEC,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
				 -1, 0) == (void *)0x10000000;

		for (size_t i = 0; i < maps.count; i++)
			if (!strcmp(maps.items[i].name, "[vdso]"))
				munmap((void *)maps.items[i].start,
				       maps.items[i].end - maps.items[i].start);
		if (write(ready[1], made ? "y" : "n", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	if (byte == 'y') {
		stop_child(child, &stopped);
		if (stop_borrow(&stopped, &error))
			fail_msg("%s", error.message);
		fay_stop_release(&stopped);
	}
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	close(ready[0]);
	close(ready[1]);
	fay_maps_deinit(&maps);
}

/* A signal that comes right before this system call is made. True: its handler has broken the call
 * off. */
static bool is_broken_off(long request)
{
	static const uint8_t code[] = { 0x0f, 0x05 };
	struct sigaction action;
	ucontext_t context = { 0 };

	if (sigaction(SIGRTMAX - 1, NULL, &action) || !(action.sa_flags & SA_SIGINFO))
		return false;
	context.uc_mcontext.gregs[REG_RIP] = (greg_t)code;
	context.uc_mcontext.gregs[REG_RAX] = SYS_ptrace;
	context.uc_mcontext.gregs[REG_RDI] = request;
	action.sa_sigaction(SIGRTMAX - 1, NULL, &context);
	return context.uc_mcontext.gregs[REG_RAX] == -EINTR;
}

static bool breaking;
static unsigned broken_off; /* seizings, of which the first is */

long __real_ptrace(long request, pid_t pid, void *at, void *data);
long __wrap_ptrace(long request, pid_t pid, void *at, void *data);

long __wrap_ptrace(long request, pid_t pid, void *at, void *data)
{
	if (breaking && (request != PTRACE_SEIZE || broken_off == 0) && is_broken_off(request)) {
		broken_off += request == PTRACE_SEIZE;
		errno = EINTR;
		return -1;
	}
	return __real_ptrace(request, pid, at, data);
}

static void *wait_on(void *ready)
{
	if (write(*(int *)ready, "r", 1) != 1)
		abort();
	for (;;)
		pause();
	return NULL;
}

/* What breaks off seizing breaks off nothing else: a program's second thread, which is told to stop
 * once only, is. */
static void test_broken_off(void **state)
{
	struct fay_stop stopped;
	int ready[2];
	pid_t child;
	char byte;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (child == 0) {
		pthread_t second;

		if (!pthread_create(&second, NULL, wait_on, &ready[1]))
			pthread_join(second, NULL);
		_exit(1);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	breaking = true;
	stop_child(child, &stopped);
	breaking = false;
	assert_int_equal(broken_off, 1);
	assert_int_equal(stopped.count, 2);
	fay_stop_release(&stopped);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	close(ready[0]), close(ready[1]);
}

/* Opens a FIFO by a worker of io_uring, which waits until somebody else opens it. Exit status 0: it
 * was opened; 77: no io_uring here. */
static int open_by_worker(const char *fifo)
{
	struct io_uring_params ring = { 0 };
	int fd = (int)syscall(SYS_io_uring_setup, 1, &ring);
	struct io_uring_sqe *request;
	char *submit, *complete;

	if (fd < 0)
		return 77;
	submit = mmap(NULL, ring.sq_off.array + 4, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		      IORING_OFF_SQ_RING);
	complete = mmap(NULL, ring.cq_off.cqes + sizeof(struct io_uring_cqe),
			PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_CQ_RING);
	request = mmap(NULL, sizeof(*request), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		       IORING_OFF_SQES);
	if (submit == MAP_FAILED || complete == MAP_FAILED || request == MAP_FAILED)
		return 1;
	*request = (struct io_uring_sqe){ .opcode = IORING_OP_OPENAT,
					  .flags = IOSQE_ASYNC,
					  .fd = AT_FDCWD,
					  .addr = (uint64_t)fifo,
					  .open_flags = O_RDONLY };
	*(uint32_t *)(submit + ring.sq_off.array) = 0;
	__atomic_store_n((uint32_t *)(submit + ring.sq_off.tail), 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1)
		return 2;
	return ((struct io_uring_cqe *)(complete + ring.cq_off.cqes))->res < 0 ? 3 : 0;
}

static size_t thread_count(pid_t pid)
{
	char path[64];
	size_t count = 0;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	while (tasks && readdir(tasks))
		count++;
	if (tasks)
		closedir(tasks);
	return count > 2 ? count - 2 : 0;
}

/* A worker of the kernel's among a program's threads is not stopped, and what it does does not
 * fail. */
static void test_worker(void **state)
{
	char fifo[] = "/tmp/fay-worker-XXXXXX";
	struct fay_stop stopped;
	int status = 0, end;
	pid_t child, ended = 0;

	(void)state;
	assert_non_null(mkdtemp(fifo));
	assert_int_equal(rmdir(fifo), 0);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	child = fork();
	if (child == 0)
		_exit(open_by_worker(fifo));
	while (thread_count(child) < 2 && (ended = waitpid(child, &status, WNOHANG)) == 0)
		usleep(1000);
	if (ended == 0) {
		usleep(50000);
		stop_child(child, &stopped);
		assert_int_equal(stopped.count, 1);
		assert_int_equal(stop_borrow(&stopped, NULL), 0);
		fay_stop_release(&stopped);
		while ((end = open(fifo, O_WRONLY | O_NONBLOCK)) < 0 &&
		       (ended = waitpid(child, &status, WNOHANG)) == 0)
			usleep(1000);
		if (ended == 0)
			assert_int_equal(waitpid(child, &status, 0), child);
		close(end);
	}
	unlink(fifo);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		print_message("skipped: no io_uring here\n");
		skip();
	}
	assert_int_equal(status, 0);
}

/* A program that handles its system calls itself would get ours, too, and end by the signal. */
static void test_dispatched(void **state)
{
	const uint64_t none[6] = { 0 };
	struct fay_error error = { 0 };
	struct fay_stop stop;
	int64_t result;
	int status;
	volatile char *shared =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child;

	(void)state;
	assert_true(shared != MAP_FAILED);
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0, &shared[1]))
			_exit(77);
		shared[1] = SYSCALL_DISPATCH_FILTER_BLOCK;
		for (shared[0] = 1;;)
			;
	}
	while (!shared[0] && waitpid(child, &status, WNOHANG) == 0)
		usleep(1000);
	if (!shared[0]) {
		print_message("skipped: no Syscall User Dispatch here\n");
		skip();
	}
	assert_int_equal(
		fay_stop_all(child, FAY_STOP_TIMEOUT_MS, FAY_TRACER_WAIT_MS, &stop, &error), 0);
	assert_true(fay_stop_confined(&stop));
	assert_int_equal(fay_stop_syscall(&stop, SYS_getpid, none, &result, &error), FAY_E_REFUSED);
	assert_non_null(strstr(error.message, "Syscall User Dispatch"));
	fay_stop_release(&stop);
	usleep(10000);
	assert_int_equal(waitpid(child, &status, WNOHANG), 0);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	munmap((void *)shared, 4096);
}

/* Each is stopped once, and found again by its number. */
static void *waits(void *argument)
{
	for (;;)
		pause();
	return argument;
}

static void make_threads(int ready)
{
	pthread_attr_t small;
	pthread_t thread;
	unsigned made = 0;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 32768);
	while (made < MANY_THREADS && !pthread_create(&thread, &small, waits, NULL))
		made++;
	if (write(ready, &made, sizeof(made)) != sizeof(made))
		_exit(1);
	waits(NULL);
}

static void test_many_threads(void **state)
{
	struct fay_stop stop;
	int ready[2], status;
	unsigned made, stopped = 0;
	pid_t child;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (child == 0)
		make_threads(ready[1]);
	assert_int_equal(read(ready[0], &made, sizeof(made)), sizeof(made));
	stop_child(child, &stop);
	for (size_t i = 0; i < stop.count; i++)
		stopped += stop.threads[i].stopped;
	assert_int_equal(stopped, made + 1);
	assert_int_equal(stop_borrow(&stop, NULL), 0);
	fay_stop_release(&stop);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	close(ready[0]), close(ready[1]);
}

static volatile unsigned frames; /* found where one is: above the handler's own */

static void find_frame(int number, siginfo_t *info, void *context)
{
	const ucontext_t *interrupted = context;
	const uint64_t *selectors = (const uint64_t *)&interrupted->uc_mcontext.gregs[REG_CSGSFS];
	uint64_t before[2] = { 0 }, rip = (uint64_t)interrupted->uc_mcontext.gregs[REG_RIP];

	(void)number;
	(void)info;
	for (const uint64_t *word = selectors - 8; word < selectors + 8; word++)
		frames += fay_stop_interrupted_at(before, *word) == rip;
}

/* What stays on stacks for good, and looks like the end of a signal frame at a glance, would keep
 * a session's memory mapped for as long. */
static void test_frames(void **state)
{
	static const uint64_t none[][3] = {
		{ 0x560b08f7d5ab, 0x206, 0xa00000033 },      /* its end is another's now */
		{ 0x560b08f7d5ab, 0x55a9d6712220, 0x33 },    /* addresses, and 51 */
		{ 0x560b08f7d5ab, 0, 0x33 },                 /* flags without bit 1 */
		{ 0x560b08f7d5ab, 0x206, 0x2b00000000002b }, /* another selector */
	};
	uint64_t before[2] = { 0x560b08f7d5ab, 0x10206 };
	struct sigaction action = { .sa_sigaction = find_frame, .sa_flags = SA_SIGINFO };

	(void)state;
	assert_int_equal(fay_stop_interrupted_at(before, 0x2b000000000033), 0x560b08f7d5ab);
	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++) {
		memcpy(before, none[i], sizeof(before));
		assert_int_equal(fay_stop_interrupted_at(before, none[i][2]), 0);
	}
	assert_int_equal(sigaction(SIGUSR2, &action, NULL), 0);
	assert_int_equal(raise(SIGUSR2), 0);
	assert_int_equal(frames, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_executing),    cmocka_unit_test(test_held_from_outside),
		cmocka_unit_test(test_dispatched),   cmocka_unit_test(test_much_code),
		cmocka_unit_test(test_broken_off),   cmocka_unit_test(test_worker),
		cmocka_unit_test(test_many_threads), cmocka_unit_test(test_frames)
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
