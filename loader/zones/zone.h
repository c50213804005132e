/* SPDX-License-Identifier: MIT */
/*
 * Code zones as they lie in a target, so that any fay finds, respects and can remove those of any
 * other.
 *
 *	code   MAP_SHARED, r-x, of a sealed memfd named "fay-code": runtime, image, states,
 *	       trampolines
 *	data   directly behind it, private, r-- for the target: struct fay_zone_header, then struct
 *	       fay_zone_patch[patch_count]
 *
 * Only a fay that holds the target stopped writes the data.
 */
#ifndef FAY_LOADER_ZONE_H
#define FAY_LOADER_ZONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "fay/error.h"
#include "fay/loader.h"
#include "loader/flow/flow.h"
#include "loader/flow/relocate.h"
#include "loader/process/process.h"
#include "loader/stop/stop.h"

/* --- owner.c: whose a session is, and whether that fay still runs: docs/decisions/0016-owners.md
 * --- */
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
/*
 * Of a new memfd of the target's, by the target's own open file: has the kernel tell from now on
 * whether any process has it mapped. What is returned is the caller's to close; -1: it cannot be
 * told.
 */
int fay_users_watch(int fd);
/* In doubt true. */
bool fay_users_any(int watch);
/* Does the owner still use the session whose state is at `state` in the process? `state_size` 0: it
 * has been unmapped there. */
enum fay_owner_state fay_owner_ask(pid_t pid, const struct fay_maps *maps,
				   const struct fay_owner *owner, uint64_t state,
				   uint64_t state_size);
/* Whether the owner is in this process's PID namespace, where its number means what it says. */
bool fay_owner_is_near(const struct fay_owner *owner);

/* --- zone.c, remove.c --- */
#define FAY_ZONE_MAGIC 0x4549524e4f5a5946u
#define FAY_ZONE_VERSION 11u
#define FAY_ZONE_MEMFD "fay-code"
#define FAY_ZONE_MAX_PATCHES (1u << 20)
/* zones in a process that are looked at, those at the lowest addresses */
#define FAY_ZONES_MAX 1024u
/* of all zones in a process that are looked at: anybody can make memory that looks like zones */
#define FAY_ZONES_MAX_PATCHES (1u << 21)

struct fay_zone_header {
	uint64_t magic;
	uint32_t version;
	uint32_t patch_count;
	uint64_t session; /* random, the same in all zones of one session */
	uint64_t code, code_size;
	uint64_t data, data_size;
	uint64_t shm, shm_size;     /* the session's state; the same in all its zones */
	uint64_t table, table_size; /* its thread table; likewise */
	struct fay_owner owner;     /* the fay that installed it */
	/* of the session's calls under way (struct fay_records); 0: none */
	uint64_t records, records_size;
};

enum fay_patch_kind {
	FAY_PATCH_PLACE,
	FAY_PATCH_EXIT,
	/* a jump that leads to a copy of where it led; it stays conditional if it is */
	FAY_PATCH_REDIRECT,
	/* padding: another patch of the same page leads here with FAY_HOP_BYTES */
	FAY_PATCH_HOLE,
	/* nothing is written: of a function that is whole within what is overwritten at its entry,
	 * the part in front of its exit, `inner`; `trampoline` is the exit's copy */
	FAY_PATCH_PART,
};

/* One patched place. `link` is read by the trampoline (jmp *link(%rip)) if `linked`. */
struct fay_zone_patch {
	uint64_t site;
	uint64_t trampoline;
	uint64_t displaced; /* this zone's own copy of the displaced instructions */
	/* where the trampoline goes on if `linked`: another zone's trampoline, or `displaced` */
	uint64_t link;
	/* bytes that the jump replaced: the program's, or another zone's jump */
	uint8_t original[FAY_JUMP_BYTES];
	uint8_t linked;
	uint8_t removed; /* nothing leads to it any more; the zone waits for threads to leave */
	uint8_t kind;    /* enum fay_patch_kind */
	/*
	 * Of a marker that is patched before its place, and of an exit: the trampoline begins with
	 * the instructions in between, `inner` is behind them and `back` their length. Another
	 * session's trampoline on the same site, which has run them itself, links to `inner`. 0:
	 * the trampoline begins with the probes.
	 */
	uint8_t back;
	uint8_t length;   /* bytes from the site that are not run there any more */
	uint8_t first;    /* it is the first of those of a place that somebody asked for */
	uint8_t size;     /* bytes that are overwritten: FAY_JUMP_BYTES, or FAY_HOP_BYTES */
	uint32_t counted; /* the semaphore was incremented for this patch */
	/* of a place: the function is whole within what is overwritten. Its trampoline goes on at
	 * `link`, whether another lies below or not (zone.c) */
	uint8_t whole;
	int8_t hop; /* of FAY_HOP_BYTES: the distance from behind them to where they lead */
	uint64_t inner;
	uint64_t semaphore; /* of a marker: a 16-bit count of those who trace it; 0: none */
};
_Static_assert(sizeof(struct fay_zone_patch) == 72, "zone layout");

struct fay_zone {
	struct fay_zone_header header;
	struct fay_zone_patch *patches;
	uint32_t *by_site;      /* indices of patches, sorted by site */
	bool dirty;             /* patches were changed here and not yet there */
	uint64_t device, inode; /* of the code memfd */
};
struct fay_zones {
	struct fay_zone *items;
	size_t count;
	size_t foreign; /* zones of another version: what they hold is not known */
};

/* All zones in a process. `memory` is /proc/PID/mem. */
int fay_zones_read(const struct fay_maps *maps, int memory, struct fay_zones *zones,
		   struct fay_error *error);
/* The same, while none begins and any may end: all as they were at one moment, so that under each
 * one's jumps is what another one of them, or the program, has there. */
int fay_zones_settle(pid_t pid, const struct fay_maps *maps, int memory, struct fay_zones *zones,
		     struct fay_error *error);
void fay_zones_deinit(struct fay_zones *zones);
/* Those of one session only, which are taken off the list. */
void fay_zones_forget(struct fay_zones *zones, uint64_t session);
/* The session's zone whose code the address is in; NULL: none. */
const struct fay_zone *fay_zones_around(const struct fay_zones *zones, uint64_t session,
					uint64_t address);
/* Into by_site: the first patch whose site is not below the address; patch_count if there is
 * none. */
uint32_t fay_zone_first_at(const struct fay_zone *zone, uint64_t site);
/* The next of the patches at a site; *at begins as fay_zone_first_at() says. NULL: no more. */
struct fay_zone_patch *fay_zone_next_at(const struct fay_zone *zone, uint64_t site, uint32_t *at);
/* The bytes that a patch puts at its site, patch->size of them: a jump to its trampoline,
 * conditional if it is a conditional one that goes elsewhere, or a short one to its hole. */
void fay_patch_encode(const struct fay_zone_patch *patch, uint8_t jump[FAY_JUMP_BYTES]);
/* Adds 1 or -1 to a marker's semaphore. False: it cannot be written, or would wrap around. */
bool fay_semaphore_add(struct fay_stop *stop, uint64_t address, int step);
/* The patch whose jump is exactly these bytes at `site`; NULL: it is none of ours. */
const struct fay_zone_patch *fay_zones_patch_at(const struct fay_zones *zones, uint64_t site,
						const uint8_t bytes[FAY_JUMP_BYTES]);
/* Replaces, in a copy of the bytes at `site`, patches by what is under them: the program's own
 * bytes. */
void fay_zones_uncover(const struct fay_zones *zones, uint64_t site, uint8_t bytes[FAY_JUMP_BYTES]);
/*
 * Of the chain of sessions whose jumps lie at `site`, one over the other, these bytes being the
 * uppermost: the lowest, and the uppermost that has the function whole. False: there is no jump, or
 * the lowest has not the function whole.
 */
struct fay_zone_chain {
	struct fay_zone_patch *top, *lowest; /* whole ones */
	const struct fay_zone_patch *part;   /* top's */
	uint64_t lowest_link;                /* address of lowest->link in the process */
};
bool fay_zones_chain(const struct fay_zones *zones, uint64_t site,
		     const uint8_t bytes[FAY_JUMP_BYTES], struct fay_zone_chain *chain);
/* Whether these bytes at `site`, `size` of them, are this jump, or other sessions' jumps over
 * it. */
bool fay_zones_cover(const struct fay_zones *zones, uint64_t site,
		     const uint8_t bytes[FAY_JUMP_BYTES], const uint8_t jump[FAY_JUMP_BYTES],
		     size_t size);

/* One session to be removed from a process. */
struct fay_zone_removal {
	uint64_t session;
	bool found; /* it has code there */
	/* still mapped, because a thread is inside or someone else's bytes lie over ours */
	bool left;
};
/*
 * Removes sessions from one process, all in the same stops: bytes back, memory unmapped. pid may be
 * gone (0 is returned). An error, the first one's, does not keep the others from being removed, but
 * is the end of further attempts on what is left.
 */
int fay_zones_remove(pid_t pid, struct fay_zone_removal *removals, size_t count,
		     uint32_t stop_timeout_ms, uint32_t tracer_wait_ms, uint64_t *longest_pause,
		     struct fay_error *error);

/*
 * Removes some of a session's places from one process, those whose copy of the program's
 * instructions is at one of these addresses (sorted): bytes back, everything stays mapped. *left:
 * not all could be.
 */
int fay_zone_take_out(pid_t pid, uint64_t session, const uint64_t *copies, size_t count,
		      uint32_t stop_timeout_ms, uint32_t tracer_wait_ms, bool *left,
		      uint64_t *longest_pause, struct fay_error *error);

#endif
