/* SPDX-License-Identifier: MIT */
/* The asking side: finds agents, starts a query on them, merges what they send exactly once, and
 * says what the result covers. */
#ifndef FAY_CLUSTER_ROOT_H
#define FAY_CLUSTER_ROOT_H

#include <sys/types.h>

#include "aggregator/live/partial.h"
#include "fay/shm.h"

#include "cluster/bus/bus.h"
#include "cluster/partials/partials.h"
#include "cluster/wire/wire.h"

#define FAY_ROOT_FANOUT 16u

struct fay_root_options {
	struct fay_bus_options bus;
	const char *machines; /* file of the machines that may answer; NULL: all */
	/* only machines whose name this glob (fnmatch) matches are asked; NULL: all */
	const char *named;
	const char *text;         /* of the query, for the agents' audit logs */
	const char *const *comms; /* names of processes */
	size_t comm_count;
	const pid_t *pids;
	size_t pid_count;
	/* the asking side goes away; agents send to a stream, without a tree */
	bool durable;
	/* ns after which the query ends by itself; 0: when it is told to */
	uint64_t life;
	bool is_bpf;                  /* the image is a BPF object (object.h) */
	bool is_query;                /* text is a query; else a file's name */
	bool wait;                    /* processes that come later, too */
	enum fay_when_full when_full; /* what threads do whose rings are full */
	bool some;                    /* a process need not have all that is asked for */
	bool follow;                  /* forked children, and programs that are executed */
	const char *function;         /* whose types the query uses, module!function; NULL: none */
	const uint8_t *build_id; /* of the file it is in; machines that have another one refuse */
	size_t build_id_size;    /* 1 to FAY_WIRE_BUILD_ID_MAX, if there is a function */
	const char *path;        /* of that file, for who attaches to a detached query */
	/* events have times by our clock, as far as the machines' can be measured before they
	 * begin; else by their own */
	bool one_clock;
	/* begin when so many machines were found, however long that takes; 0: those that answer at
	 * once */
	unsigned await;
	uint64_t window, lease, lost_after; /* ns */
	/* of a query with windows of time: ns after which agents forget a window's groups; 0: it
	 * has none */
	uint64_t horizon;
	/* columns of the image that hold addresses of code */
	struct fay_wire_code codes[FAY_WIRE_CODES_MAX];
	uint16_t code_count;
	/* of the image, for machines that ask for them */
	uint8_t signatures[FAY_WIRE_SIGNATURES_MAX][FAY_WIRE_SIGNATURE];
	uint16_t signature_count;
	bool stacks;               /* the probes walk stacks: struct fay_stack_tables in GLOBAL */
	uint32_t fanout;           /* 0: no tree */
	uint32_t bytes_per_second; /* of each agent; 0: the agent's own limit */
};

enum fay_machine_state {
	FAY_MACHINE_ASKED,
	FAY_MACHINE_REFUSED,
	FAY_MACHINE_TRACING,
	FAY_MACHINE_FINISHED
};

struct fay_machine {
	uint64_t id;
	uint8_t key[FAY_KEY_BYTES];
	char name[64], kernel[128], labels[128], version[32], reason[FAY_WIRE_REASON_MAX + 1];
	uint32_t cpus, queries, processes, functions;
	enum fay_machine_state state;
	bool late, lost, inner;
	uint8_t why; /* FINISHED: enum fay_final */
	struct fay_ledger ledger;
	uint64_t window; /* all up to this one is merged */
	/* by sequence modulo FAY_LEDGER_AHEAD: the window that it ended; 0: none */
	uint64_t ends[FAY_LEDGER_AHEAD];
	uint64_t final; /* the last sequence; 0: not known yet */
	/* monotonic ns; when START, or with one_clock a PING before it, was last sent */
	uint64_t heard, asked;
	bool started; /* START was sent */
	int64_t clock_offset;
	uint64_t clock_error; /* UINT64_MAX: not measured */
	/* by how much its events' times are off: the offset when it began to trace, or 0 with
	 * one_clock */
	int64_t event_clock;
	uint64_t pong; /* the time of the last PING that it answered */
	uint32_t tree; /* version that it has, as far as known */
	uint64_t told; /* monotonic ns: when ASSIGN was last sent */
	/* where rows replace; settled: those that are final */
	struct fay_aggregator *own, *settled;
};

struct fay_coverage {
	unsigned asked, tracing, refused, late, lost, finished, incomplete;
	uint64_t windows; /* complete on all that are not lost */
	uint64_t messages, bytes, hellos, merged, combined, duplicates, conflicts, early, unknown,
		malformed, rows_shed;
	uint64_t rows_late; /* of windows of time that were settled */
	/* of the messages, that some machine speaks, which is not asked; 0: none was heard */
	uint16_t other_version;
	bool beyond;          /* more machines are there than can be asked: FAY_WIRE_AGENTS_MAX */
	int64_t clock_offset; /* ns, the largest */
	uint64_t clock_error; /* of that one; UINT64_MAX: not measured */
	uint64_t clock_bound; /* ns, the largest error of any machine that was measured */
	unsigned clocks_unknown; /* machines that were not */
};

struct fay_root;
/* Asks all machines that are found and returns when they have answered, or after some seconds.
 * `aggregator` gets the merged rows; it and the verdict must outlive the root. */
int fay_root_create(const struct fay_root_options *options, const struct fay_keys *keys,
		    const struct fay_verdict *verdict, const void *image, size_t image_size,
		    struct fay_aggregator *aggregator, struct fay_root **root,
		    struct fay_error *error);
void fay_root_destroy(struct fay_root *root);
/* Of a durable query: stores what fay_detached_open() needs. Destroying the root then leaves the
 * query running. */
int fay_root_detach(struct fay_root *root, struct fay_error *error);

/* A detached query as its stream tells. */
struct fay_detached {
	struct fay_bus *bus;
	struct fay_stream *stream;
	struct fay_message message;
	struct fay_wire_meta meta;
	uint64_t query;
};
int fay_detached_open(const struct fay_bus_options *options, const struct fay_keys *keys,
		      uint64_t query, struct fay_detached *detached, struct fay_error *error);
void fay_detached_close(struct fay_detached *detached);
/* A root that merges what is in the stream. The detached query must outlive it. */
int fay_root_attach(const struct fay_root_options *options, const struct fay_keys *keys,
		    struct fay_detached *detached, const struct fay_verdict *verdict,
		    struct fay_aggregator *aggregator, struct fay_root **root,
		    struct fay_error *error);
/* Merges what came into the stream since the last time. */
int fay_root_replay(struct fay_root *root, struct fay_error *error);
/* The server did not give all that is in the stream; the next fay_root_replay() asks again. Until
 * then nobody can be said to be lost. */
bool fay_root_is_behind(const struct fay_root *root);
/* ns since anything came of any machine that had not been read before; at first since it was
 * attached. */
uint64_t fay_root_silence(const struct fay_root *root);
/* Machines that have not finished, and of which nothing has come for `silence` ns (0: all), are
 * lost. true: nothing more is waited for. */
bool fay_root_give_up(struct fay_root *root, uint64_t silence);
/* Tells the agents to end the query. */
void fay_root_end(struct fay_root *root);

/* Serves messages for up to timeout_ms. FAY_E_LIMIT: the result is too large. FAY_E_REFUSED: the
 * connection has ended for good. */
int fay_root_tick(struct fay_root *root, int timeout_ms, struct fay_error *error);
/* Whether all machines that trace have finished by themselves. */
bool fay_root_finished(const struct fay_root *root);
/* Stops the query everywhere and merges what comes until all have finished or are lost. */
int fay_root_stop(struct fay_root *root, struct fay_error *error);
/* Where rows replace: puts the machines' rows together in `fresh`, an empty aggregator. Does
 * nothing otherwise. */
int fay_root_gather(const struct fay_root *root, struct fay_aggregator *fresh,
		    struct fay_error *error);
bool fay_root_replaces(const struct fay_root *root);
/* Where rows replace: forgets the machines' rows whose first key is below. */
void fay_root_forget(struct fay_root *root, uint32_t state, uint64_t below);
/*
 * Of a query with windows of time. The time, ns since the epoch by the machines' own clocks, up to
 * which all events are merged that machines counted which are neither late nor lost, nor have
 * clocks that are astray; UINT64_MAX: there is no such machine.
 */
uint64_t fay_root_complete_until(const struct fay_root *root);
/* ns by which the clock is behind ours of the machine whose clock is furthest behind, but not
 * astray; 0: none is, or none was measured. */
uint64_t fay_root_clock_behind(const struct fay_root *root);
/* Its clock is so far behind ours that windows of time neither wait for it nor have its events. */
#define FAY_ROOT_BEHIND_MAX 3600000000000 /* ns */
bool fay_root_is_astray(const struct fay_machine *machine);
/* The earliest first key of rows merged since the last call; UINT64_MAX: none. Rows that come from
 * now on with one below `settled` are counted as late. */
uint64_t fay_root_earliest(struct fay_root *root, uint64_t settled);
void fay_root_coverage(const struct fay_root *root, struct fay_coverage *coverage);
const char *fay_root_function_name(const struct fay_root *root, uint64_t hash);
size_t fay_root_machine_count(const struct fay_root *root);
const struct fay_machine *fay_root_machine(const struct fay_root *root, size_t index);
uint64_t fay_root_query(const struct fay_root *root);

#endif
