/* SPDX-License-Identifier: MIT */
/* Whose a session is, as it lies in a zone's header, and whether that fay still runs: owner.c,
 * docs/decisions/0016-owners.md. */
#ifndef FAY_LOADER_OWNER_H
#define FAY_LOADER_OWNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "fay/loader.h"
#include "maps.h"

#define FAY_STATE_MEMFD "fay-state"

struct fay_owner {
	uint64_t pid_namespace[2]; /* device and inode; 0: the kernel has none */
	/* clock ticks since the machine was started, in the first time namespace; 0: not known */
	uint64_t start;
	uint32_t pid;    /* as it sees itself */
	uint32_t locked; /* its mapping of the session's state holds the lock */
};

/* This process, `locked` not set. */
void fay_owner_self(struct fay_owner *owner);
/*
 * Maps a session's state here, read-write, so that the mapping holds a lock on it until it is
 * unmapped or this process has ended; forked children do not get it. *locked: false if there can be
 * none. MAP_FAILED: see errno; EBUSY: somebody else has locked it.
 */
void *fay_owner_map(int fd, size_t size, bool *locked);
/* Does the owner still use the session whose state is at `state` in the process? `state_size` 0: it
 * has been unmapped there. */
enum fay_owner_state fay_owner_ask(pid_t pid, const struct fay_maps *maps,
				   const struct fay_owner *owner, uint64_t state,
				   uint64_t state_size);
/* Whether the owner is in this process's PID namespace, where its number means what it says. */
bool fay_owner_is_near(const struct fay_owner *owner);

#endif
