/* SPDX-License-Identifier: MIT */
/* A trace: what it is asked, and all that it has while it runs. */
#ifndef FAY_TRACE_TRACE_H
#define FAY_TRACE_TRACE_H

#include <signal.h>

#include "cluster/root/root.h"
#include "fay/bpf.h"
#include "fay/clock.h"
#include "fay/kernel.h"
#include "process/process.h"
#include "trace/functions/functions.h"
#include "trace/names/names.h"
#include "trace/names/view.h"
#include "trace/traps/traps.h"
#include "trust/trust.h"

#define TRACE_COMMS_MAX 16u
#define TRACE_WATCHED_MAX 1024u
#define TRACE_EXECUTED_MAX 64u

#define FAY_TRACE_POLL_MS 5

struct trace;
/* Where results go; all functions are there. */
struct trace_output {
	void *context;
	/* Once it is known what is shown, before anything is attached to. */
	int (*open)(void *context, struct trace *trace, struct fay_error *error);
	void (*schema)(void *context, const struct trace *trace);
	/* The results of so many views that come between these are one picture. */
	void (*begin)(void *context, size_t views, bool final);
	void (*end)(void *context);
	void (*result)(void *context, const struct fay_view *view, const struct fay_result *result,
		       bool final);
	/* One that was there before, if it is `revised`. */
	void (*row)(void *context, const struct fay_view *view, const uint8_t *row, bool revised);
	/* Whether it took everything so far. */
	int (*check)(void *context, struct fay_error *error);
	/* Whether a picture is asked for; `over`: one is made in any case. */
	bool (*due)(void *context, bool over);
	bool pictures; /* while the trace runs, without `every`, too */
};

struct trace {
	struct trace_output output;
	FILE *messages;           /* what is said meanwhile */
	FILE *json;               /* figures go there as lines of JSON; NULL: they are said */
	bool may_ask;             /* whoever started it, on standard input */
	const char *usual_budget; /* what is said if --budget is not; NULL */
	bool needs_stack;         /* the result must have one */
	/* set by whoever wants to end it, from any thread or signal handler: the signal */
	volatile sig_atomic_t interrupted;
	volatile sig_atomic_t interrupts;         /* how often since the trace began, by signals */
	volatile sig_atomic_t asked_for_figures;  /* of --analyze */
	volatile sig_atomic_t asked_for_snapshot; /* of --save */
	/* run.c, monotonic ns */
	uint64_t run_since, run_until, next_picture, next_spending;
	uint64_t attached_since; /* since when there are events, run_since or before */
	bool awaits_first;       /* event, for --timing */
	/* of the last picture, for who shows it */
	struct trace_pictured {
		uint64_t at, counted, lost; /* monotonic ns; events, if it counts them */
		bool counts;
		double rate;       /* a second, since the picture before */
		double spent, cpu; /* as below, by then */
		double share;      /* since the picture before; negative: not known */
	} pictured;
	/* options */
	const char *query;
	const char *probe_path;
	const char *policy_path;
	char **command;
	uint64_t duration, every;
	/* pictures, and looks at what probes cost, that take long are made more rarely: no more
	 * than their part of a processor's time, as long as a picture comes each few seconds */
	bool calm; /* fay_trace_be_calm() */
	/* a step's waiting ends, too, when this word is not `also_seen` any more (futex(2)); NULL:
	 * there is none. Not with `follow` */
	const uint32_t *also;
	uint32_t also_seen;
	uint32_t share; /* fay_attach_options.shared_from */
	double budget;  /* share of the programs' processor time that the probes may take; 0: any */
	bool budget_given, budget_by_default; /* by --budget; since nobody said anything */
	bool unbounded;                       /* `none` */
	double spent, spent_cpu; /* ns that probes took, of the programs' time; 0: not known */
	bool only_inline;
	bool timing, verbose, analyze;
	struct fay_measured measured; /* analyze.c */
	bool analyze_due;             /* it is printed with this picture */
	const char *save_path;        /* of --save */
	/* of --rotate: after so many bytes, ns a new file begins; 0: never */
	uint64_t save_bytes, save_age;
	uint64_t save_keep; /* so many files stay; 0: all */
	bool follow, wait, no_follow;
	pid_t tids[FAY_TIDS_MAX]; /* of --tid */
	size_t tid_count;
	const char *comms[TRACE_COMMS_MAX]; /* of --comm */
	size_t comm_count;
	/* of --cmdline, --user, --cgroup, which narrow --comm: comm_count is 0 then */
	struct fay_selection select;
	size_t selected; /* of `pids`, the last ones */
	/* what is traced */
	pid_t pids[FAY_TARGETS_MAX];
	size_t pid_count;
	size_t pid_named; /* so many of them, the first ones, were named by number */
	pid_t child;      /* of `-- COMMAND`; 0 once it has ended */
	int child_status; /* wait status, valid if child_ended */
	bool child_ended;
	struct fay_files *files; /* with --follow and --wait; else NULL */
	struct fay_target *targets[FAY_TARGETS_MAX];
	struct fay_session *sessions[FAY_TARGETS_MAX];
	size_t session_count;
	/* processes of whom it is to be known whether they executed another program
	 * (executed.c); none with --follow */
	struct trace_executed {
		pid_t pid;
		int counter;  /* negative: not allowed */
		int children; /* of a command, with its children; negative: none */
		/* a command's name while it is traced, of need without counter only, and when it
		 * has ended; "": unknown */
		char traced[FAY_COMM_SIZE], last[FAY_COMM_SIZE];
	} executed[TRACE_EXECUTED_MAX];
	size_t executed_count;
	/* following (follow.c) */
	struct fay_follow follower;
	size_t kept_sessions;     /* when those of programs that are gone were last let go of */
	size_t new_points;        /* of sessions that have come since */
	struct fay_target **gone; /* of sessions that were retired: their functions' names */
	size_t gone_count;
	pid_t *seen; /* processes of that name which are, or cannot be, traced */
	size_t seen_count;
	struct trace_watched {
		pid_t pid;
		/* fay_process_modules() before it was attached to, or last looked at */
		uint64_t modules;
		/* fay_process_start(): another process of that number is not watched */
		uint64_t born;
		/* the program has nothing of what is asked for, and waits when it loads modules
		 * (modules.c); NULL */
		struct fay_session *waits;
		struct fay_target *target; /* of `waits` */
		/* processes that may load more of what is asked for, traced already or not */
	} watched[TRACE_WATCHED_MAX];
	size_t watched_count;
	uint64_t next_look, next_names, next_children, next_mappings; /* monotonic ns */
	bool children_run;              /* when that was last looked at */
	struct fay_error first_failure; /* code 0: none */
	size_t later, later_failures;   /* processes and modules that came later */
	/* times that a program that changed its modules went on before they were attached to; of
	 * sessions that are gone */
	uint64_t modules_late;
	struct fay_addresses addresses; /* processes whose addresses are shown */
	bool shows_programs;            /* bpf.c: ... though they are not attached to */
	uint64_t mapped_since;          /* fay_ticks_now() when that was last done */
	struct fay_stacks stacks;       /* stacks.c */
	/* of each session; NULL: its probes walk no stacks */
	struct fay_stack_tables *stack_tables[FAY_TARGETS_MAX];
	struct fay_function_search
		described; /* whose types the query uses, if the plan is `typed` */
	/* of a detached query: what that was when it was asked; path "": there is none */
	struct fay_function_search known;
	/* pipeline */
	struct fay_plan *plan;
	struct fay_buffer image;
	struct fay_verdict verdict;
	struct fay_trust_log log; /* of this trace: what was verified and installed */
	bool verified;
	const struct fay_schema *schema; /* of the image, or of the kernel's object */
	struct fay_aggregator *aggregator;
	struct fay_texts *texts;     /* what long strings in rows stand for; NULL: there are none */
	struct fay_trace_join *join; /* join.c; NULL: the query has one source */
	/* rows.c; NULL: the query has no windows of so many events */
	struct fay_trace_counted *counted;
	/* of a query with a join or windows of so many events, or that groups groups */
	struct fay_schema result_schema;
	const struct fay_schema *shown; /* what views show: `schema` or `result_schema` */
	struct fay_view *views;
	size_t view_count;
	/* rows of events (rows.c) */
	struct fay_names readable;   /* functions' names by which rows were ordered */
	struct fay_result collected; /* kept for the end; memory for collected_room rows */
	size_t collected_room;
	bool collect_failed;
	uint64_t rows_seen, rows_shown;
	/* queries about the kernel (bpf.c) */
	struct fay_schema kernel_schema;
	struct trace_bpf {
		unsigned side; /* of a join: whose events */
		struct fay_bpf_object object;
		struct fay_bpf_session *session; /* NULL: not attached */
	} bpf[FAY_JOIN_SOURCES + FAY_TRAP_OBJECTS_MAX];
	size_t bpf_count;
	struct fay_traps traps; /* where the kernel traps instead of a jump */
	bool traps_refused;     /* their programs could not be loaded, and are not again */
	struct fay_error
		traps_failure; /* why, where that was found before anything was installed */
	struct trace_trapped { /* processes in which no jump fits: nothing is installed */
		struct fay_session *session;
		struct fay_target *target;
	} trapped[FAY_TARGETS_MAX];
	size_t trapped_count;
	struct fay_trace_save *save;       /* save.c; NULL: rows are shown */
	struct fay_trace_windows *windows; /* windows.c; NULL: the query has none */
	struct fay_trace_budget *spending; /* budget.c; NULL: there is no budget */
	struct fay_trace_estimate {        /* estimate.c */
		bool made;
		bool idle;          /* the processes hardly ran meanwhile */
		double share;       /* of the processor time */
		size_t functions;   /* of the processes that were looked at */
		uint64_t calls, ns; /* so many in so long */
		double call_ns;     /* what the probes of one would take */
		char most[256];     /* functions that are called most */
		size_t processes;   /* that were looked at */
		/* of a dry run: all functions of these processes, by which none is traced;
		 * `reason`: why that one cannot be, or NULL */
		struct fay_trace_would {
			pid_t pid;
			char *function; /* "module!name" */
			char *reason;
			uint64_t calls; /* while they were counted */
		} *would;
		size_t would_count;
	} estimate;
	bool dry_run; /* nothing is traced: what would be, is told */
	/* kernel functions through fay.ko (native.c) */
	bool native; /* known once the query is planned, or the image verified */
	struct fay_kernel_session *functions; /* NULL: not attached */
	/* The same of a source in the kernel beside one in programs: an image of its own. */
	bool native_side;
	bool functions_off; /* they were switched off while they were traced, and that is said */
	bool traps_slow;    /* what is executed is not given so many traps, and that is said */
	uint64_t functions_looked; /* when it was looked for; fay_monotonic() */
	struct fay_buffer side_image;
	struct fay_verdict side_verdict;
	bool side_verified;
	/* the cluster (cluster.c); root NULL: this machine alone */
	struct fay_root_options remote; /* remote.bus.url NULL: no cluster */
	struct fay_root *root;
	bool detach;                         /* the query goes on without us */
	uint64_t asked;                      /* ns since the epoch: what `Now` means; 0: now */
	struct fay_aggregator *cluster_rows; /* what the root merges into */
	/* bookkeeping */
	/* ns from the boot clock to the epoch of the system's clock when the trace began */
	uint64_t epoch;
	uint64_t started; /* monotonic ns at main */
	struct stage {
		const char *name;
		uint64_t nanoseconds;
	} stages[16];
	size_t stage_count;
	/* that are in no window since all of theirs had been looked at for the last time; where the
	 * query counts */
	uint64_t events_late;
	uint64_t texts_unsent; /* times that a string had no room in a ring */
	const char *end_reason;
	char reason[256]; /* where end_reason is made up */
};

#endif
