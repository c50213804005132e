/* SPDX-License-Identifier: MIT */
/* Opens below /etc, by reading the path out of the traced program's memory; and how long the paths
 * are. */
#include <fay/probe.h>

FAY_COUNT(unreadable);
FAY_COUNT(below_etc);
FAY_HISTOGRAM(lengths);

FAY_ENTRY("libc!open")
{
	char path[64];
	unsigned length = 0;

	if (fay_try_read(path, sizeof(path), event->arg[0])) {
		fay_count(&unreadable);
		return;
	}
	while (length < sizeof(path) && path[length])
		length++;
	fay_hist(&lengths, length);
	if (path[0] == '/' && path[1] == 'e' && path[2] == 't' && path[3] == 'c' && path[4] == '/')
		fay_count(&below_etc);
}
