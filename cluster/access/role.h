/* SPDX-License-Identifier: MIT */
/*
 * What a signer may have a machine do, beyond what the policy of its probes says: whose processes,
 * which programs, the kernel, how much of the agent. A line of the signers file names it:
 *
 *     role NAME [policy=FILE] [users=A,B..] [programs=GLOB,GLOB..] [kernel=yes|no] [queries=N]
 *       [memory=MIB] [bytes-per-second=N]
 *
 * Without users= and programs= any process; with either the kernel only if kernel=yes, as its
 * events are those of all processes.
 */
#ifndef FAY_CLUSTER_ROLE_H
#define FAY_CLUSTER_ROLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "fay/error.h"

#define FAY_ROLE_USERS_MAX 16u
#define FAY_ROLE_PROGRAMS_MAX 16u
#define FAY_ROLE_WORDS_MAX 9u /* of a line */

struct fay_role {
	char name[64], policy[256]; /* policy "": none */
	uid_t users[FAY_ROLE_USERS_MAX];
	size_t user_count; /* 0: anybody's processes */
	/* globs; with a '/' of the executable's whole path, else of its name */
	char programs[FAY_ROLE_PROGRAMS_MAX][64];
	size_t program_count; /* 0: any program */
	bool kernel;
	uint32_t queries; /* at once; 0: what the agent admits, as below */
	uint64_t memory, bytes_per_second;
};

/* words[0] is "role". A user that the machine does not know is an error: a role must not silently
 * mean somebody else, once there is one. */
int fay_role_read(char *const *words, size_t count, struct fay_role *role, struct fay_error *error);
/*
 * FAY_E_REFUSED: the role does not include the process. All its users count, also those that it
 * could still become (set-user-ID programs). To be asked behind attaching, too, before anything is
 * read from the process: it may have executed another program meanwhile. `role` NULL: any.
 */
int fay_role_admits(const struct fay_role *role, pid_t pid, struct fay_error *error);

#endif
