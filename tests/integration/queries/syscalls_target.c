/* SPDX-License-Identifier: MIT */
/*
 * System calls whose numbers and sizes are known: for i from 1 to N, reads i bytes of /dev/zero and
 * writes them to /dev/null, fails to open a file that is not there, and fails to read from a file
 * that is not open. With a second argument so many threads do it at once. Prints nothing.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static int rounds, zero, null;

static void *work(void *unused)
{
	static __thread char buffer[1 << 16];
	for (int i = 1; i <= rounds; i++) {
		ssize_t got = read(zero, buffer, (size_t)i);
		if (got != i || write(null, buffer, (size_t)got) != got)
			abort();
		if (open("/nonexistent/file", O_RDONLY) >= 0 || read(-1, buffer, 1) >= 0)
			abort();
	}
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t threads[64];
	int count = argc > 2 ? atoi(argv[2]) : 0;
	rounds = atoi(argv[1]);
	zero = open("/dev/zero", O_RDONLY);
	null = open("/dev/null", O_WRONLY);
	if (count == 0)
		work(NULL);
	for (int i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
