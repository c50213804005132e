/* SPDX-License-Identifier: MIT */
/*
 * What a program may notice of being stopped, and of system calls run in it: nothing. A child waits
 * in a system call that answers EINTR to every interruption (signal(7): a socket with a time limit,
 * epoll_wait, semop, ...), is stopped and let go several times, and must get the call's answer all
 * the same.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#include "maps.h"
#include "stop.h"

#define SIZE 8
#define ROUNDS 3
#define SEIZES 300u
#define LIMIT_S 600 /* of the sockets: none of the calls may come to it */

/* Made before the child: it uses `mine`, the test `others`. */
static int mine, others, file, queue[2], semaphores;
static struct sockaddr_storage address;
static socklen_t address_size;
static char bytes[SIZE];
static struct iovec vector = { bytes, SIZE };
static struct mmsghdr message = { .msg_hdr = { .msg_iov = &vector, .msg_iovlen = 1 } };

static void limit_time(int fd)
{
	struct timeval limit = { LIMIT_S, 0 };

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)), 0);
}

static void make_pair(void)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	mine = fds[0];
	others = fds[1];
	limit_time(mine);
}

/* A socket that takes no more, and where what is written to it comes from. */
static void make_full(void)
{
	make_pair();
	while (send(mine, bytes, SIZE, MSG_DONTWAIT) > 0)
		;
	assert_int_equal(errno, EAGAIN);
	file = memfd_create("source", 0);
	assert_int_equal(ftruncate(file, SIZE), 0);
	assert_int_equal(pipe(queue), 0);
	assert_int_equal(write(queue[1], bytes, SIZE), SIZE);
}

static void make_listener(int family)
{
	struct sockaddr_in internet = { .sin_family = AF_INET,
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_un here = { .sun_family = AF_UNIX };
	bool is_local = family == AF_UNIX;

	others = socket(family, SOCK_STREAM, 0);
	assert_int_equal(bind(others, is_local ? (void *)&here : (void *)&internet,
			      is_local ? sizeof(here.sun_family) : sizeof(internet)),
			 0);
	assert_int_equal(listen(others, 0), 0);
	address_size = sizeof(address);
	assert_int_equal(getsockname(others, (void *)&address, &address_size), 0);
	mine = socket(family, SOCK_STREAM, 0);
	limit_time(mine);
	limit_time(others);
}

/* One that has all the connections that it takes. */
static void make_busy_listener(int family)
{
	make_listener(family);
	queue[0] = socket(family, SOCK_STREAM, 0);
	assert_int_equal(connect(queue[0], (void *)&address, address_size), 0);
}

static void make_busy_local(void)
{
	make_busy_listener(AF_UNIX);
}

static void make_busy_internet(void)
{
	make_busy_listener(AF_INET);
}

static void make_local(void)
{
	make_listener(AF_UNIX);
}

static void make_epoll(void)
{
	struct epoll_event event = { .events = EPOLLIN };

	make_pair();
	file = epoll_create1(0);
	assert_int_equal(epoll_ctl(file, EPOLL_CTL_ADD, mine, &event), 0);
}

static void make_semaphores(void)
{
	semaphores = semget(IPC_PRIVATE, 1, 0600);
	assert_true(semaphores >= 0);
}

static void make_signal(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static void wake_reader(pid_t child)
{
	(void)child;
	assert_int_equal(write(others, bytes, SIZE), SIZE);
}

static void wake_writer(pid_t child)
{
	char buffer[1 << 16];

	(void)child;
	while (recv(others, buffer, sizeof(buffer), MSG_DONTWAIT) > 0)
		;
}

static void wake_connecting(pid_t child)
{
	(void)child;
	close(accept(others, NULL, NULL));
}

static void wake_accepting(pid_t child)
{
	(void)child;
	assert_int_equal(connect(mine, (void *)&address, address_size), 0);
}

static void wake_semaphore(pid_t child)
{
	struct sembuf up = { 0, 1, 0 };

	(void)child;
	assert_int_equal(semop(semaphores, &up, 1), 0);
}

static void wake_signal(pid_t child)
{
	kill(child, SIGUSR1);
}

#define READ make_pair, wake_reader
#define WRITE make_full, wake_writer

static const struct waiting {
	const char *name;
	long number;
	void (*make)(void);
	void (*wake)(pid_t child);
	long answer; /* at least */
} calls[] = {
	{ "read", SYS_read, READ, SIZE },
	{ "readv", SYS_readv, READ, SIZE },
	{ "preadv2", SYS_preadv2, READ, SIZE },
	{ "recvfrom", SYS_recvfrom, READ, SIZE },
	{ "recvmsg", SYS_recvmsg, READ, SIZE },
	{ "recvmmsg", SYS_recvmmsg, READ, 1 },
	{ "write", SYS_write, WRITE, SIZE },
	{ "writev", SYS_writev, WRITE, SIZE },
	{ "pwritev2", SYS_pwritev2, WRITE, SIZE },
	{ "sendto", SYS_sendto, WRITE, SIZE },
	{ "sendmsg", SYS_sendmsg, WRITE, SIZE },
	{ "sendmmsg", SYS_sendmmsg, WRITE, 1 },
	{ "sendfile", SYS_sendfile, WRITE, SIZE },
	{ "splice", SYS_splice, WRITE, SIZE },
	{ "accept", SYS_accept, make_local, wake_accepting, 0 },
	{ "accept4", SYS_accept4, make_local, wake_accepting, 0 },
	{ "connect to a path", SYS_connect, make_busy_local, wake_connecting, 0 },
	{ "connect to an address", SYS_connect, make_busy_internet, wake_connecting, 0 },
	{ "epoll_wait", SYS_epoll_wait, make_epoll, wake_reader, 1 },
	{ "epoll_pwait", SYS_epoll_pwait, make_epoll, wake_reader, 1 },
	{ "semop", SYS_semop, make_semaphores, wake_semaphore, 0 },
	{ "semtimedop", SYS_semtimedop, make_semaphores, wake_semaphore, 0 },
	{ "rt_sigtimedwait", SYS_rt_sigtimedwait, make_signal, wake_signal, SIGUSR1 },
};

static long call(long number)
{
	struct timespec limit = { LIMIT_S, 0 };
	struct sembuf down = { 0, -1, 0 };
	struct epoll_event event;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	switch (number) {
	case SYS_read:
	case SYS_write: return syscall(number, mine, bytes, SIZE);
	case SYS_readv:
	case SYS_writev: return syscall(number, mine, &vector, 1);
	case SYS_preadv2:
	case SYS_pwritev2: return syscall(number, mine, &vector, 1, -1l, -1l, 0);
	case SYS_recvfrom:
	case SYS_sendto: return syscall(number, mine, bytes, SIZE, 0, NULL, NULL);
	case SYS_recvmsg:
	case SYS_sendmsg: return syscall(number, mine, &message.msg_hdr, 0);
	case SYS_recvmmsg:
	case SYS_sendmmsg: return syscall(number, mine, &message, 1, 0, NULL);
	case SYS_sendfile: return syscall(number, mine, file, NULL, SIZE);
	case SYS_splice: return syscall(number, queue[0], NULL, mine, NULL, SIZE, 0);
	case SYS_accept:
	case SYS_accept4: return syscall(number, others, NULL, NULL, 0);
	case SYS_connect: return syscall(number, mine, &address, address_size);
	case SYS_epoll_wait:
	case SYS_epoll_pwait: return syscall(number, file, &event, 1, -1, NULL, 8);
	case SYS_semop:
	case SYS_semtimedop: return syscall(number, semaphores, &down, 1, &limit);
	case SYS_rt_sigtimedwait: return syscall(number, &set, NULL, &limit, 8);
	default: abort();
	}
}

/* Whether the child waits in this call now. False, too, when it has ended. */
static bool is_waiting(pid_t child, long number)
{
	char path[64], text[128] = "";
	FILE *file_of;

	snprintf(path, sizeof(path), "/proc/%d/syscall", (int)child);
	file_of = fopen(path, "r");
	if (!file_of)
		return false;
	if (!fgets(text, sizeof(text), file_of))
		text[0] = 0;
	fclose(file_of);
	return text[0] >= '0' && text[0] <= '9' && strtol(text, NULL, 10) == number;
}

static void await_waiting(pid_t child, const struct waiting *waiting)
{
	int status;

	while (!is_waiting(child, waiting->number)) {
		if (waitpid(child, &status, WNOHANG) == child)
			fail_msg("%s: interrupted by the stop: %s", waiting->name,
				 strerror(WEXITSTATUS(status)));
		usleep(1000);
	}
}

static void stop(pid_t child, struct fay_stop *stopped)
{
	struct fay_error error = { 0 };

	if (fay_stop_all(child, FAY_STOP_TIMEOUT_MS, FAY_TRACER_WAIT_MS, stopped, &error))
		fail_msg("stop: %s", error.message);
}

/* A system call in the stopped child: fay_stop_syscall()'s answer. */
static int borrow(struct fay_stop *stopped, struct fay_error *error)
{
	const uint64_t none[6] = { 0 };
	int64_t result = 0;
	int code = fay_stop_syscall(stopped, SYS_getpid, none, &result, error);

	if (!code)
		assert_int_equal(result, stopped->pid);
	return code;
}

static void goes_on_waiting(const struct waiting *waiting)
{
	pid_t child;
	int status;

	mine = others = file = queue[0] = queue[1] = semaphores = -1;
	waiting->make();
	child = fork();
	if (child == 0) {
		long answer = call(waiting->number);

		_exit(answer < 0 ? errno : answer < waiting->answer ? 255 : 0);
	}
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct fay_stop stopped;

		await_waiting(child, waiting);
		stop(child, &stopped);
		if (i > 0)
			assert_int_equal(borrow(&stopped, NULL), 0);
		fay_stop_release(&stopped);
	}
	await_waiting(child, waiting);
	waiting->wake(child);
	assert_int_equal(waitpid(child, &status, 0), child);
	if (status)
		fail_msg("%s: wait status %#x", waiting->name, status);
	for (const int *fd = (int[]){ mine, others, file, queue[0], queue[1], -2 }; *fd != -2; fd++)
		if (*fd >= 0)
			close(*fd);
	if (semaphores >= 0)
		semctl(semaphores, 0, IPC_RMID);
}

static void test_interrupted_calls(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		goes_on_waiting(&calls[i]);
}

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
		stopped += !borrow(&stop, NULL);
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
		stop(child, &stopped);
		if (borrow(&stopped, &error))
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
	stop(child, &stopped);
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
		stop(child, &stopped);
		assert_int_equal(stopped.count, 1);
		assert_int_equal(borrow(&stopped, NULL), 0);
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

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_interrupted_calls),
					    cmocka_unit_test(test_executing),
					    cmocka_unit_test(test_held_from_outside),
					    cmocka_unit_test(test_dispatched),
					    cmocka_unit_test(test_much_code),
					    cmocka_unit_test(test_broken_off),
					    cmocka_unit_test(test_worker) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
