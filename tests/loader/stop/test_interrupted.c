/* SPDX-License-Identifier: MIT */
/*
 * What a program may notice of being stopped, and of system calls run in it: nothing. A child waits
 * in a system call that answers EINTR to every interruption (signal(7): a socket with a time limit,
 * epoll_wait, semop, ...), is stopped and let go several times, and must get the call's answer all
 * the same.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stopping.h"

#define SIZE 8
#define ROUNDS 3
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
		stop_child(child, &stopped);
		if (i > 0)
			assert_int_equal(stop_borrow(&stopped, NULL), 0);
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

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_interrupted_calls) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
