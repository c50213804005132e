/* SPDX-License-Identifier: MIT */
/* timeline_target CALLS: the k-th call of work() makes k reads, less the hundreds, and returns k;
 * each is followed by a read outside. Around all of them a millisecond passes. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void read_some(int fd, long count)
{
	char byte;

	while (count-- > 0)
		syscall(SYS_read, fd, &byte, 1);
}

long work(int fd, long reads);

__attribute__((noinline)) long work(int fd, long reads)
{
	usleep(1000);
	read_some(fd, reads % 100);
	usleep(1000);
	return reads;
}

int main(int argc, char **argv)
{
	long calls = argc > 1 ? atol(argv[1]) : 10;
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	for (long k = 1; k <= calls; k++) {
		work(fd, k);
		usleep(1000);
		read_some(fd, 1);
		usleep(1000);
	}
	return 0;
}
