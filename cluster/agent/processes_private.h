/* SPDX-License-Identifier: MIT */
/* Between processes.c, a feed of counts from processes, and attach.c, which finds and attaches to
 * them. */
#ifndef FAY_CLUSTER_AGENT_PROCESSES_PRIVATE_H
#define FAY_CLUSTER_AGENT_PROCESSES_PRIVATE_H

#include "codes_private.h"
#include "feeds_private.h"
#include "process/process.h"

#define SESSIONS_MAX FAY_TARGETS_MAX
#define FAILED_MAX 1024u

struct traced {
	struct fay_target *target;
	struct fay_session *session;
	struct fay_stack_tables *tables; /* NULL: the probes walk no stacks */
	uint64_t modules; /* fay_process_modules() when it was attached to, or last looked at */
};

struct processes {
	const struct fay_verdict *verdict;
	struct fay_aggregator *aggregator;
	/* sessions; a process that loaded modules later has several */
	struct traced traced[SESSIONS_MAX];
	size_t count;
	struct fay_files *files;  /* of a query that follows or waits; else NULL */
	struct fay_target **gone; /* of sessions that were retired: their functions' names */
	size_t gone_count;
	char comms[FAY_WIRE_COMMS_MAX][FAY_COMM_SIZE + 1];
	size_t comm_count;
	struct {
		pid_t pid;
		uint64_t modules;
	} failed[FAILED_MAX]; /* not tried again while they run, unless they load modules */
	size_t failed_count;
	bool wait, some, stopped;
	const struct fay_role *role; /* NULL: any process */
	struct fay_trust_log log;    /* of what is installed */
	/* the function whose types the query uses, of one build; pattern "": there is none */
	struct fay_described described;
	struct fay_follow follower;
	bool followed; /* any process was found to follow */
	enum fay_when_full when_full;
	struct fay_codes codes;
	int64_t clock; /* ns added to events' times */
	/* asked: when a ring was half full last */
	uint64_t next_look, next_drain, next_alive, asked;
	struct fay_error first; /* failure; code 0: none */
	struct fay_error over;  /* the limit of memory that was hit; code 0: none */
	/* why the role does not include the process that was tried last; code 0: it does */
	struct fay_error excluded;
	unsigned messages; /* about processes that are not traced */
};

static inline bool follows(const struct processes *processes)
{
	return processes->follower.follower != 0;
}

/* A debugger or a vfork can hold a process for a while. False: it stays patched. */
bool fay_processes_detach(struct fay_session *session, pid_t pid);
/* The signer hears the same of other users' processes as of none; what they are is for the agent's
 * own output. */
int fay_processes_say_excluded(const struct fay_role *role, struct fay_error *error);
/* Attaches to the process unless it is traced already; says so if it cannot be. */
void fay_processes_try(struct processes *processes, pid_t pid);
void fay_processes_look_for_names(struct processes *processes);
/* Another program runs in a followed process; it stands still until it is taken again. */
void fay_processes_look_for_executed(struct processes *processes);
/* Of traced processes, and of those that did not have what is asked for: it may be there now. */
void fay_processes_look_for_modules(struct processes *processes);

#endif
