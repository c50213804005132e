/* SPDX-License-Identifier: MIT */
/* Which processes and which file a command line and a query mean. */
#ifndef FAY_TRACE_FUNCTIONS_H
#define FAY_TRACE_FUNCTIONS_H

#include "fay/query.h"
#include "process/process.h"

/* Finds the file whose debug information describes a query's function. */
struct fay_function_search {
	/* where it is looked for: in processes, else in what would be run */
	const pid_t *pids;
	size_t pid_count;
	const char *const *comms;
	size_t comm_count;
	char **command;
	/* it is this one's file, by path and build ID, or none; NULL */
	const struct fay_function_search *known;
	struct fay_described found; /* last */
	char path[4096];            /* of its file */
};
#define FAY_SEARCH_PROCESSES_MAX 64u
/* Those that the query names, or those of the command line. */
size_t fay_search_processes(const struct fay_function_search *functions,
			    const struct fay_query_process *process,
			    pid_t pids[FAY_SEARCH_PROCESSES_MAX]);
/* A fay_query_find_function; context: struct fay_function_search. */
int fay_search_function(void *context, const char *pattern, struct fay_query_function *function,
			struct fay_error *error);

#endif
