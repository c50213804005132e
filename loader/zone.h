/* SPDX-License-Identifier: MIT */
/*
 * Code zones as they lie in a target, so that any fay finds, respects and can remove those of any other.
 *
 *	code   MAP_SHARED, r-x, of a sealed memfd named "fay-code": runtime, image, states, trampolines
 *	data   directly behind it, private, r-- for the target: struct fay_zone_header, then struct fay_zone_patch[patch_count]
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
#include "maps.h"
#include "owner.h"
#include "relocate.h"
#include "stop.h"

#define FAY_ZONE_MAGIC 0x4549524e4f5a5946u
#define FAY_ZONE_VERSION 10u
#define FAY_ZONE_MEMFD "fay-code"
#define FAY_ZONE_MAX_PATCHES (1u << 20)
#define FAY_ZONES_MAX 1024u              /* zones in a process that are looked at, those at the lowest addresses */
#define FAY_ZONES_MAX_PATCHES (1u << 21) /* of all zones in a process that are looked at: anybody can make memory that looks like zones */

struct fay_zone_header {
	uint64_t magic;
	uint32_t version;
	uint32_t patch_count;
	uint64_t session;  /* random, the same in all zones of one session */
	uint64_t code, code_size;
	uint64_t data, data_size;
	uint64_t shm, shm_size;     /* the session's state; the same in all its zones */
	uint64_t table, table_size; /* its thread table; likewise */
	struct fay_owner owner;     /* the fay that installed it */
	uint64_t calls, calls_size; /* the session's call stacks (struct fay_call_stack), FAY_CALLS_STRIDE bytes each, then struct fay_others; 0: none */
	uint64_t unwind_step;       /* 1 to FAY_WATCHING_SESSIONS, unlike other sessions'; 0: watches no calls */
};

enum fay_patch_kind {
	FAY_PATCH_PLACE,
	FAY_PATCH_HOOK, /* the unwinder passes here: taken out last */
	FAY_PATCH_BACK, /* a jump back to the function's start: `trampoline` is the displaced instructions */
};

/* One patched place. `link` is read by the trampoline (jmp *link(%rip)) if `linked`. */
struct fay_zone_patch {
	uint64_t site;
	uint64_t trampoline;
	uint64_t displaced; /* this zone's own copy of the displaced instructions */
	uint64_t returns;   /* where watched calls return to; 0: none */
	uint64_t link;      /* where the trampoline goes on if `linked`: another zone's trampoline, or `displaced` */
	uint8_t original[FAY_JUMP_BYTES]; /* bytes that the jump replaced: the program's, or another zone's jump */
	uint8_t linked;
	uint8_t removed; /* nothing leads to it any more; the zone waits for threads to leave */
	uint8_t kind;    /* enum fay_patch_kind */
	uint64_t semaphore; /* of a marker: a 16-bit count of those who trace it; 0: none */
	uint64_t counted;   /* it was incremented for this patch */
	/*
	 * Of a marker that is patched before its place: the trampoline begins with the instructions in between, `inner` is behind them and `back` their
	 * length. Another session's trampoline on the same site, which has run them itself, links to `inner`. 0: the trampoline begins with the probes.
	 */
	uint64_t inner, back;
};
_Static_assert(sizeof(struct fay_zone_patch) == 80, "zone layout");

struct fay_zone {
	struct fay_zone_header header;
	struct fay_zone_patch *patches;
	uint32_t *by_site;      /* indices of patches, sorted by site */
	uint64_t *returns;      /* sorted; return_count of them */
	size_t return_count;
	bool dirty;             /* patches were changed here and not yet there */
	uint64_t device, inode; /* of the code memfd */
};
struct fay_zones {
	struct fay_zone *items;
	size_t count;
	size_t foreign; /* zones of another version: what they hold is not known */
};

/* All zones in a process. `memory` is /proc/PID/mem. */
int fay_zones_read(const struct fay_maps *maps, int memory, struct fay_zones *zones, struct fay_error *error);
/* The same without their patches. */
int fay_zones_read_headers(const struct fay_maps *maps, int memory, struct fay_zones *zones, struct fay_error *error);
void fay_zones_deinit(struct fay_zones *zones);
/* Those of one session only, which are taken off the list. */
void fay_zones_forget(struct fay_zones *zones, uint64_t session);
/* The session's zone whose code the address is in; NULL: none. */
const struct fay_zone *fay_zones_around(const struct fay_zones *zones, uint64_t session, uint64_t address);
/* Into by_site: the first patch whose site is not below the address; patch_count if there is none. */
uint32_t fay_zone_first_at(const struct fay_zone *zone, uint64_t site);
/* The next of the patches at a site; *at begins as fay_zone_first_at() says. NULL: no more. */
struct fay_zone_patch *fay_zone_next_at(const struct fay_zone *zone, uint64_t site, uint32_t *at);
/* The bytes that a patch puts at its site: a jump to its trampoline, conditional if it is a conditional one that goes elsewhere. */
void fay_patch_encode(const struct fay_zone_patch *patch, uint8_t jump[FAY_JUMP_BYTES]);
/* Adds 1 or -1 to a marker's semaphore. False: it cannot be written, or would wrap around. */
bool fay_semaphore_add(struct fay_stop *stop, uint64_t address, int step);
/* The patch whose jump is exactly these bytes at `site`; NULL: it is none of ours. */
const struct fay_zone_patch *fay_zones_patch_at(const struct fay_zones *zones, uint64_t site, const uint8_t bytes[FAY_JUMP_BYTES]);
/* Replaces, in a copy of the bytes at `site`, patches by what is under them: the program's own bytes. */
void fay_zones_uncover(const struct fay_zones *zones, uint64_t site, uint8_t bytes[FAY_JUMP_BYTES]);
/* Whether these bytes at `site` are this jump, or other sessions' jumps over it. */
bool fay_zones_cover(const struct fay_zones *zones, uint64_t site, const uint8_t bytes[FAY_JUMP_BYTES], const uint8_t jump[FAY_JUMP_BYTES]);
/* Where the sessions whose jumps lie there, one over the other, have watched calls return to. Returns how many do, `most` at most. */
unsigned fay_zones_lower_returns(const struct fay_zones *zones, uint64_t site, const uint8_t bytes[FAY_JUMP_BYTES], uint64_t *returns, unsigned most);

/* calls.c: tells each session that watches calls where the code of the others is, but for that of the session `gone` (0: all). The process is stopped. */
int fay_others_write(struct fay_stop *stop, const struct fay_zones *zones, uint64_t gone, struct fay_error *error);
/*
 * After this, calls under way that the session watches return straight to their callers, or to the other sessions that watch them, too. *doubt: not all could be
 * followed, or the unwinder is just passing some; then the session must stay mapped.
 */
int fay_calls_return(struct fay_stop *stop, const struct fay_zones *zones, const struct fay_zone_header *header, bool *doubt, struct fay_error *error);

/* One session to be removed from a process. */
struct fay_zone_removal {
	uint64_t session;
	bool found; /* it has code there */
	bool left;  /* still mapped, because a thread is inside or someone else's bytes lie over ours */
};
/*
 * Removes sessions from one process, all in the same stops: bytes back, memory unmapped. pid may be gone (0 is returned). An error, the first one's, does not keep the
 * others from being removed, but is the end of further attempts on what is left.
 */
int fay_zones_remove(pid_t pid, struct fay_zone_removal *removals, size_t count, uint32_t stop_timeout_ms, uint32_t tracer_wait_ms, uint64_t *longest_pause,
		     struct fay_error *error);

/*
 * Removes some of a session's places from one process, those whose copy of the program's instructions is at one of these addresses (sorted): bytes back,
 * everything stays mapped. *left: not all could be.
 */
int fay_zone_take_out(pid_t pid, uint64_t session, const uint64_t *copies, size_t count, uint32_t stop_timeout_ms, uint32_t tracer_wait_ms, bool *left,
		      uint64_t *longest_pause, struct fay_error *error);

/* fay_zones_remove() in a keeper: a fay that is killed meanwhile does not interrupt it (leftovers.c). */
int fay_zones_remove_kept(pid_t pid, struct fay_zone_removal *removals, size_t count, uint32_t stop_timeout_ms, uint32_t tracer_wait_ms, uint64_t *longest_pause,
			  struct fay_error *error);

#endif
