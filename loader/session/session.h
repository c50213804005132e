/* SPDX-License-Identifier: MIT */
/* An image's probes in one process, from fay_session_attach() to fay_session_destroy(): the plan,
 * what is installed of it, and what the session needs while it lives. Private to this room. */
#ifndef FAY_LOADER_SESSION_H
#define FAY_LOADER_SESSION_H

#include "loader/install/install.h"

/* Where code of a module that was looked at begins. */
struct fay_known {
	uint64_t start, device, inode;
};

struct fay_session {
	struct fay_plan plan;
	struct fay_install install; /* of that plan */
	size_t points; /* fay_plan_point_count() once it is attached: these are the plan's first */
	size_t beside; /* usable ones without probes: those behind them */
	struct fay_verdict counted; /* while it attaches, with counts_only */
	uint64_t pid_start;
	uint64_t attach_ticks; /* when attaching began, as fay_process_start() counts */
	/* /proc/PID/mem: bound to the address space that was patched, so reading fails after exit
	 * and after exec; -1 none */
	int memory;
	bool no_room; /* the last attempt found no room in the process */
	/* that an event with no probe appears to take; 0: not measured yet (cost.c) */
	uint64_t stamp_cycles;
	bool reads_time;         /* or measures costs: the time stamp counter's rate is known */
	struct fay_host *host;   /* begin, end and timer probes; NULL: none */
	struct fay_known *known; /* known_count of them */
	size_t known_count;
	uint64_t longest_pause;
	bool attached, left_mapped;
	bool permitted; /* by fay_attach_options.permit, if there is one */
};

/* session.c: the plan's points and sites, which a session whose plan was lent does not have until
 * it needs them (loader/plan/ready.c). False: out of memory, there are none. */
bool fay_session_own(const struct fay_session *session);

/*
 * beside.c: marks the target's modules that the sessions beside this one know; adds those that are
 * not marked to what a session knows; takes off what is no longer mapped, and the module at `site`
 * (0: none).
 */
void fay_known_mark(const struct fay_session *session);
void fay_known_remember(struct fay_session *session, const struct fay_target *target);
void fay_known_forget(struct fay_session *session, const struct fay_maps *maps, uint64_t site);

/* turn.c: while no other session is planned or installed in the process; after a while all the
 * same. */
int fay_turn_begin(struct fay_session *session,
		   int (*begin)(struct fay_session *session, struct fay_error *error),
		   struct fay_error *error);

/* Leaves to the sessions beside this one what they have; hooks stay, each session needs its own. */
int fay_session_leave_to_others(struct fay_session *session, struct fay_error *error);

/*
 * counting.c: what a verdict becomes where calls are counted and no probe runs: the same places,
 * and nothing of the image's own. `counted` has the probes' patterns and the layout of `verdict`.
 */
int fay_counting_make(const struct fay_verdict *verdict, struct fay_verdict *counted,
		      struct fay_error *error);
void fay_counting_deinit(struct fay_verdict *counted);
/* No byte of a probe's code goes into a trampoline, or is called. */
void fay_counting_choose(const struct fay_verdict *counted, struct fay_dispatch *dispatch);

/* cost.c: takes places out in one stop, by their numbers. *left: not all could be. */
int fay_session_remove_points(struct fay_session *session, const size_t *points, size_t count,
			      bool *left, struct fay_error *error);

/* rendezvous.c: nobody waits there any longer. The other one: for a session of a fay that is
 * gone. */
void fay_rendezvous_release(struct fay_session *session);
void fay_rendezvous_release_other(pid_t pid, uint64_t id);

/* leftovers.c: fay_zones_remove() in a keeper: a fay that is killed meanwhile does not interrupt
 * it. */
int fay_zones_remove_kept(pid_t pid, struct fay_zone_removal *removals, size_t count,
			  uint32_t stop_timeout_ms, uint32_t tracer_wait_ms,
			  uint64_t *longest_pause, struct fay_error *error);

/* host.c. *host is NULL if the image has no probe that runs here. */
int fay_host_create(struct fay_session *session, struct fay_host **host, struct fay_error *error);
void fay_host_destroy(struct fay_host *host);

#endif
