/* SPDX-License-Identifier: MIT */
/*
 * One query on one agent: what its feed counts is told window by window and kept until the root has
 * it; as an inner agent, children's partials are merged on their way.
 */
#ifndef FAY_CLUSTER_JOB_H
#define FAY_CLUSTER_JOB_H

#include "aggregator/live/partial.h"

#include "cluster/bus/bus.h"
#include "cluster/partials/partials.h"

/* partials not acknowledged, beyond which no window is closed */
#define FAY_JOB_KEPT_MAX 512u
#define FAY_JOB_STREAM_MAX (8u << 20) /* bytes of streamed rows of one window; more are shed */
#define FAY_JOB_MEMBERS_MAX 2048u     /* of a combined partial */
/* partials that came before the tree that they are for... */
#define FAY_JOB_EARLY_MAX 64u
#define FAY_JOB_EARLY_BYTES (4u << 20) /* ...and bytes: anybody can send some */

/* Where counts come from: processes (processes.c), the kernel (kernel.c), or made up (tests and
 * benchmarks). All functions get `context`. */
struct fay_feed {
	void *context;
	void (*tick)(void *context);
	bool (*alive)(void *context); /* false: nothing can come any more */
	/* All rows that were counted up to now are wanted, of tables and streams; called right
	 * before a window's snapshots. NULL: tick() does that each time */
	void (*drain)(void *context);
	/* Whether rows come so fast that tick() must be called every few milliseconds. NULL: always
	 * */
	bool (*is_busy)(void *context);
	void (*stop)(void *context); /* nothing is counted after this; snapshots still work */
	int (*snapshot)(void *context, uint32_t state, struct fay_result *result,
			struct fay_error *error);
	/* Groups of windows of time that are over, right behind a snapshot of that state;
	 * fay_changes_forget() says which, and what is in *final. NULL: keeps them */
	void (*forget)(void *context, struct fay_changes *changes, uint32_t state, uint64_t below,
		       struct fay_result *final);
	const char *(*name)(void *context, uint64_t hash);
	/* In a row that is about to be told: hashes of names in place of addresses of code
	 * (codes.h). NULL: it has none */
	void (*translate)(void *context, uint32_t state, uint8_t *row,
			  void (*tell)(void *tell_context, uint64_t hash, const char *name),
			  void *tell_context);
	/* Where streamed rows go; called before the first tick. NULL: there are none. */
	void (*on_row)(void *context, fay_row_function *function, void *function_context);
	void (*destroy)(void *context);
	uint32_t processes, functions;
};

struct fay_kept {
	uint64_t sequence, window, sent; /* sent: monotonic ns */
	uint8_t *bytes;
	size_t size;
};

struct fay_child {
	uint64_t agent;
	uint8_t key[FAY_KEY_BYTES];
	uint64_t window; /* closed */
};

/* A partial of somebody who is told to be a child in a tree that this agent has not heard of yet;
 * looked at again once it has. */
struct fay_early {
	uint8_t *bytes; /* of the whole message */
	size_t size;
};

/* What an inner agent has merged and not yet sent. */
struct fay_pending {
	struct fay_aggregator *rows;
	struct fay_parts parts; /* streamed rows and names */
	struct fay_wire_member members[FAY_JOB_MEMBERS_MAX];
	uint16_t count;
	uint64_t losses[FAY_WIRE_LOSSES], since;
};

/* Ledgers of the agents below, so that nothing is added twice to what is pending. */
struct fay_below {
	uint64_t agent;
	struct fay_ledger ledger;
};

struct fay_job_limits {
	uint64_t memory;           /* bytes: of groups, and again of partials that are kept */
	uint64_t bytes_per_second; /* sent by this job; 0: no limit */
};

struct fay_job {
	uint64_t query, agent;
	const struct fay_keys *keys;
	struct fay_bus *bus;
	struct fay_job_limits limits;
	uint8_t asker[FAY_KEY_BYTES];
	char up[64], signer[64];
	struct fay_verdict *verdict;
	struct fay_feed feed;
	/* stored: the server's acknowledgements, of a durable query; else NULL */
	struct fay_subscription *control, *stored;
	char reply[64]; /* subject of those, without the sequence */
	/* windows */
	/* ns; began: monotonic, of window 0; ended: when `final` was set; ticked: 0 before the
	 * first */
	uint64_t window, lease, life, began, heard, ended, ticked;
	/* ns after which groups of a window of the query's are forgotten; 0: it has none */
	uint64_t horizon;
	uint64_t window_done, sequence, control_number;
	struct fay_changes *changes;
	struct fay_names told;
	bool functions;
	struct fay_parts parts;
	struct fay_writer_buffer out;
	uint64_t losses_told[FAY_WIRE_LOSSES];
	/* streamed rows of this window: u32 state, u32 size, row */
	struct fay_writer_buffer stream;
	uint64_t shed;
	/* not acknowledged, oldest first */
	struct fay_kept *kept;
	size_t kept_count, kept_room, kept_bytes;
	uint64_t budget_at;           /* bytes_per_second: when what was sent is paid for */
	uint64_t connections;         /* of the bus, when last looked at */
	enum fay_final final, ending; /* ending: a last partial is due; final: it was made */
	bool released, done;          /* released: the root wants nothing more */
	/* the tree */
	uint32_t tree;
	uint64_t parent;
	/* former: of the tree before, who may not have heard of this one yet */
	struct fay_child *children, *former;
	size_t child_count, former_count;
	struct fay_early early[FAY_JOB_EARLY_MAX];
	size_t early_count, early_bytes;
	struct fay_pending *pending;
	struct fay_below *below;
	size_t below_count;
	/* figures for `fayd --verbose` and tests */
	uint64_t resent, coarsened, inner_duplicates, inner_refused;
};

/* Takes over the verdict, which is of malloc(3), and the feed; after an error they are still the
 * caller's. */
int fay_job_create(struct fay_bus *bus, const struct fay_keys *keys, uint64_t agent,
		   const struct fay_wire_head *head, const struct fay_wire_start *start,
		   struct fay_verdict *verdict, struct fay_feed *feed,
		   const struct fay_job_limits *limits, struct fay_job **job,
		   struct fay_error *error);
/* Stops the feed if it still runs. */
void fay_job_destroy(struct fay_job *job);
/* Every few milliseconds. `done` is set when nothing is left to do. */
void fay_job_tick(struct fay_job *job);
/* How long the next tick may be put off if no message comes. */
int fay_job_patience_ms(const struct fay_job *job);
/* A message that came for this query. */
void fay_job_receive(struct fay_job *job, const struct fay_wire_head *head, const void *bytes,
		     size_t size);
/* The query ends here; a last partial follows. */
void fay_job_end(struct fay_job *job, enum fay_final why);
/* A streamed row of the feed. */
void fay_job_row(void *job, uint32_t state, const uint8_t *row);

#endif
