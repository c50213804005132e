// SPDX-License-Identifier: MIT
// replayed_target THREADS TURNS [DEPTH]: says "ready" and waits for a line; then its threads take
// turns, in each of which the same calls are made at each run: of work_one() and work_two(), which
// return or throw, and of lseek and read, which succeed or fail. Turns lie in the middle of tenths
// of a second, apart from each other, so that the calls' order and the windows
// that they lie in do not hang on how long a call takes. Then the first thread calls deeper() so
// many times inside itself.
// Says "done" and waits for another line.
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TRACED extern "C" __attribute__((noinline, noclone, used))
#define AFTER() asm volatile("" ::: "memory") // no tail call

static int threads, turns, zero, file;
static int now_turn;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;

static long finish(long kind, long value)
{
	if (value % 7 == 3)
		throw 1;
	if (value % 10 == 0)
		usleep(1000);
	return value * 3 - kind;
}

TRACED long work_one(long kind, long value)
{
	long result = finish(kind, value);
	AFTER();
	return result;
}

TRACED long work_two(long kind, long value)
{
	long result = finish(kind, value + 1);
	AFTER();
	return result;
}

TRACED void odd(long kind, long value)
{
	work_one(kind, value);
	AFTER();
	if (value % 3 == 0)
		work_two(kind, value - 40);
	AFTER();
}

TRACED void even(long kind, long value)
{
	work_two(kind, value);
	AFTER();
}

// A turn's calls; lseek takes any offset that is not negative.
TRACED void calls(long thread, long turn)
{
	char buffer[32];
	for (long i = 0; i < 12; i++) {
		long value = turn * 13 % 60 + i * i * 7 - 20;
		try {
			if (i % 2)
				odd((thread + i) % 3, value);
			else
				even((thread + i) % 3, value);
		} catch (int) {
		}
		syscall(SYS_lseek, file, value, SEEK_SET);
		syscall(SYS_read, i % 5 == 4 ? -1 : zero, buffer, (i + turn) % 9);
	}
}

TRACED long deeper(long depth)
{
	long result = depth ? deeper(depth - 1) : 0;
	AFTER();
	return result + 1;
}

static void wait_for_the_middle(void)
{
	struct timespec now;
	do {
		usleep(2000);
		clock_gettime(CLOCK_REALTIME, &now);
	} while (now.tv_nsec % 100000000 < 20000000 || now.tv_nsec % 100000000 > 50000000);
}

static void *run(void *argument)
{
	long thread = reinterpret_cast<long>(argument);
	char name[16];
	snprintf(name, sizeof(name), "worker-%ld", thread);
	pthread_setname_np(pthread_self(), name);
	pthread_mutex_lock(&mutex);
	for (;;) {
		while (now_turn < turns && now_turn % threads != thread)
			pthread_cond_wait(&turned, &mutex);
		if (now_turn >= turns)
			break;
		wait_for_the_middle();
		calls(thread, now_turn++);
		pthread_cond_broadcast(&turned);
	}
	pthread_mutex_unlock(&mutex);
	return nullptr;
}

int main(int argc, char **argv)
{
	pthread_t all[16];
	threads = argc > 1 ? atoi(argv[1]) : 3;
	turns = argc > 2 ? atoi(argv[2]) : 40;
	zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	file = memfd_create("file", MFD_CLOEXEC);
	if (threads < 1 || threads > 16 || zero < 0 || file < 0)
		return 2;
	printf("ready\n");
	fflush(stdout);
	getchar();
	for (long i = 0; i < threads; i++)
		pthread_create(&all[i], nullptr, run, reinterpret_cast<void *>(i));
	for (int i = 0; i < threads; i++)
		pthread_join(all[i], nullptr);
	if (argc > 3)
		deeper(atol(argv[3]));
	printf("done\n");
	fflush(stdout);
	getchar();
	return 0;
}
