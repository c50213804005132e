/* SPDX-License-Identifier: MIT */
/*
 * kernel_kprobes OFFSET COUNT LINE FUNCTIONS: makes COUNT more kprobes, OFFSET bytes behind the
 * beginnings of the functions that FUNCTIONS lists from its line LINE on, one a line, as one event,
 * fay/all: so that there is one event's worth of files and memory however many there are. Prints
 * how many were made, how many the kernel refused, and the line to go on with.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char function[256], definition[320];
	long made = 0, refused = 0, line = 1;

	if (argc != 5)
		return 2;
	long count = atol(argv[2]), first = atol(argv[3]);
	FILE *functions = fopen(argv[4], "r");
	int events = open("/sys/kernel/tracing/kprobe_events", O_WRONLY | O_APPEND);
	if (!functions || events < 0) {
		perror("kernel_kprobes");
		return 1;
	}
	for (; made < count && fgets(function, sizeof(function), functions); line++) {
		if (line < first)
			continue;
		function[strcspn(function, "\n")] = 0;
		int size = snprintf(definition, sizeof(definition), "p:fay/all %s+%s\n", function,
				    argv[1]);
		if (write(events, definition, (size_t)size) == size)
			made++;
		else
			refused++;
	}
	printf("%ld %ld %ld\n", made, refused, line);
	return 0;
}
