/* SPDX-License-Identifier: MIT */
/* Which process may have been meant by a name that none has. */
#include <stdlib.h>
#include <string.h>

#include "fay/query.h"

#include "names.h"

#define CANDIDATES_MAX 2048u

/* Processes' and threads' names are those of others: they are shown as text only. */
const char *fay_nearest_comm(const char *comm, char nearest[FAY_COMM_SIZE])
{
	char(*names)[FAY_COMM_SIZE] = calloc(CANDIDATES_MAX, sizeof(*names));
	const char *candidates[CANDIDATES_MAX], *found;
	size_t count = 0;
	pid_t pid;
	DIR *proc = opendir("/proc");
	while (names && proc && count < CANDIDATES_MAX && fay_process_next(proc, &pid))
		if (fay_process_name(pid, names[count])) {
			candidates[count] = names[count];
			count++;
		}
	if (proc)
		closedir(proc);
	found = fay_query_suggest(comm, candidates, count);
	if (found)
		memcpy(nearest, found, FAY_COMM_SIZE);
	free(names);
	return found ? nearest : NULL;
}

bool fay_is_number(const char *text)
{
	return *text && strspn(text, "0123456789") == strlen(text);
}
