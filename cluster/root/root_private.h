/* SPDX-License-Identifier: MIT */
/* Between root.c (messages, begin and end), machines.c, clock.c, coverage.c, merge.c, tree.c and
 * detached.c. */
#ifndef FAY_CLUSTER_ROOT_PRIVATE_H
#define FAY_CLUSTER_ROOT_PRIVATE_H

#include "root.h"

/* ns for which a healthy machine may be silent that sends to an inner agent which has died: after a
 * window and its patience of a second and four windows (kept.c) it sends to the root. */
#define FAY_ROOT_SILENCE(window) (5 * (window) + 2000000000u)

struct fay_root {
	struct fay_root_options options;
	const struct fay_keys *keys;
	const struct fay_verdict *verdict;
	struct fay_aggregator *aggregator;
	const void *image; /* NULL: machines are only looked for */
	size_t image_size;
	struct fay_bus *bus;
	struct fay_subscription *hello, *up;
	uint64_t query, began, found, pinged, ping_time;
	struct fay_key_file allowed;
	struct fay_machine **machines; /* in the order they were found */
	size_t machine_count;
	/* by number: open addressing, position in `machines` + 1; of the first `indexed` of them */
	uint32_t *index;
	size_t index_size, indexed;
	struct fay_names names;
	struct fay_result losses;      /* of all machines; no rows */
	struct fay_coverage coverage;  /* the counters in it */
	struct fay_stream *stream;     /* of a durable query; else NULL */
	struct fay_detached *detached; /* NULL: not attached to one */
	uint64_t replayed;             /* up to this number of the stream */
	uint64_t seen;                 /* read up to this number, once or more */
	/* the message was read before: that it is there says nothing of whether its sender is */
	bool again;
	bool behind;                /* one of them could not be read, and is tried again */
	uint64_t earliest, settled; /* fay_root_earliest() */
	bool is_detached;
	bool others; /* machines answer that the query is not about */
	bool replaces, stopping, membership_changed;
	uint32_t tree;   /* version */
	uint64_t looked; /* at the machines, last; monotonic ns, 0: not yet */
	uint64_t planted, next_control, control_number, last_window;
	struct fay_error failure; /* code 0: none */
	struct fay_writer_buffer out;
};

/* machines.c. NULL: none, or no memory to look for it. */
struct fay_machine *fay_root_find(struct fay_root *root, uint64_t id);
/* Asks it to trace; whose clock must be known first is asked for the time. */
void fay_root_invite(struct fay_root *root, struct fay_machine *machine);
void fay_root_receive_hello(struct fay_root *root, const struct fay_wire_head *head);
void fay_root_receive_answer(struct fay_root *root, const struct fay_wire_head *head);
/* root.c. Any message of the query. */
void fay_root_receive(struct fay_root *root, const struct fay_message *message);
void fay_root_send_control(struct fay_root *root, uint32_t flags);
/* At each look at the machines. Who stood still itself did not listen meanwhile: that machines were
 * silent for what is over the limit says nothing. */
void fay_root_excuse(struct fay_root *root, uint64_t now);
/* Serves HELLOs. */
void fay_root_hear(struct fay_root *root, int timeout_ms);
/* clock.c. To all agents: they say that they are there, and their time; how often else, so
 * that no more come in all. */
#define FAY_ROOT_HELLOS_A_SECOND 20u
void fay_root_ping(struct fay_root *root);
/* These only; an agent looks at once at what is for it alone. */
void fay_root_ask_clocks(struct fay_root *root, struct fay_machine *const *machines, size_t count);
/* Of all machines that are known, several times. */
void fay_root_measure_clocks(struct fay_root *root);
void fay_root_note_clock(struct fay_root *root, struct fay_machine *machine,
			 const struct fay_wire_hello *hello);
/* merge.c: a PARTIAL of this query. */
void fay_root_merge(struct fay_root *root, const struct fay_wire_head *head);
/* tree.c: a new tree if machines came or went; tells those that have an old one. */
void fay_root_plant(struct fay_root *root, uint64_t now);
/* A CONTROL, if one is due. */
void fay_root_control(struct fay_root *root, uint64_t now);
/* The last CONTROL: nothing more is wanted. */
void fay_root_release(struct fay_root *root);

#endif
