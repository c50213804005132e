/* SPDX-License-Identifier: MIT */
/*
 * FayLINQ: text to a typed plan, and the plan's probe stage to LLVM IR.
 */
#ifndef FAY_QUERY_H
#define FAY_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "fay/aggregator.h"
#include "fay/bpf.h"
#include "fay/compiler.h"
#include "fay/error.h"
#include "fay/event.h"
#include "fay/join.h"
#include "fay/loader.h"
#include "fay/saved.h"
#include "fay/shm.h"
#include "fay/text.h"

/* What an integer's values are called: it is shown so, and may be compared with it. */
struct fay_enumeration {
	const char *name;
	uint32_t type; /* its number among the types that it is of; 0: of system calls */
	struct fay_enumeration *next;
	/* how what has no name is shown */
	enum { FAY_REST_DECIMAL, FAY_REST_HEX, FAY_REST_OCTAL } rest;
	/* what another of the call's arguments decides, whose values `by` names; NULL: none does */
	const struct fay_enumeration *by;
	const struct fay_enumeration_case *cases;
	uint32_t case_count, count;
	struct {
		const char *name;
		int64_t value, mask; /* of the bits of `mask`, which is -1 for the whole value */
	} items[];
};
struct fay_enumeration_case {
	int64_t by; /* of the other argument */
	const struct fay_enumeration *values;
};
/* System calls that queries can name, in the order of their names. */
struct fay_syscall {
	const char *name;
	uint32_t number;
};
const struct fay_syscall *fay_syscalls(size_t *count);
/* Its arguments in C, "int dfd, const char *filename"; NULL: they are known by number alone. */
const char *fay_syscall_arguments(const char *name);

/* A column of the result, in the order of the query's select. Values come from state 0 of the
 * image. */
struct fay_plan_column {
	const char *name;
	/* COMPUTED: not in the state; fay_plan_finish() puts it behind the state's columns */
	enum { FAY_PLAN_KEY, FAY_PLAN_VALUE, FAY_PLAN_COMPUTED } source;
	uint32_t index;            /* of the key or value column in the state */
	uint32_t offset;           /* COMPUTED: in a finished row */
	enum fay_column_type type; /* COMPUTED: also FAY_RESULT_REAL */
	enum fay_merge merge;      /* COMPUTED: FAY_RESULT_COMPUTED */
	bool address;              /* KEY: to be shown by name: what a call returns to */
	bool symbol;               /* KEY: likewise, but of data, or of an instruction itself */
	/* KEY: so many addresses of code, innermost first, zeros behind the last one; 0: it is no
	 * stack */
	uint32_t stack_frames;
	bool kernel_stack; /* of the kernel's code, else of the program's */
	/* KEY: what the values are called; NULL: they are just numbers */
	const struct fay_enumeration *enumeration;
	bool pointer;       /* KEY: the values are pointers, by their types */
	bool maybe_pointer; /* KEY: of no known type; some of the values may be pointers */
	bool nanoseconds;   /* what is fed in is a span of time */
	bool orders;        /* rows are ordered by it, before anything else */
	bool is_quantile;   /* COMPUTED: it is just a quantile, this one */
	double quantile;
};

/* Where the events are that a query is about. */
enum fay_domain { DOMAIN_USER, DOMAIN_KERNEL, DOMAIN_FILE };
/* DOMAIN_KERNEL: what they are. Functions are the native dispatcher's, or BPF's where it may attach
 * to them. */
enum fay_kernel_kind {
	FAY_KERNEL_FUNCTIONS,
	FAY_KERNEL_SYSCALLS,
	FAY_KERNEL_TRACEPOINTS,
	FAY_KERNEL_TIMER
};

/* What joins have done so far. */
struct fay_pairs_counts {
	struct fay_join_counts joins[FAY_JOIN_SOURCES - 1]; /* in the order of the text */
	/* pairs of the last one for which the conditions held */
	uint64_t kept;
};

/* What became of rows on their way; each number is 0 where nothing was measured. --analyze */
#define FAY_MEASURED_OPS 64u
struct fay_measured {
	/* of the probes, estimated as for --budget */
	uint64_t events, probe_ns;
	uint64_t lost;                                  /* events */
	struct fay_traffic handed_on[FAY_JOIN_SOURCES]; /* by the image's state */
	/* still in the threads' tables and cells at the end */
	uint64_t live_rows;
	/* to take over what was handed on, a join and its pairs included */
	uint64_t poll_ns;
	struct fay_pairs_counts joins;
	uint64_t merged_rows, merge_ns; /* of the last picture */
	/* The root's steps of the last picture: in fay_plan_print()'s order, groupings included. */
	struct fay_measured_op {
		uint64_t in, out, nanoseconds; /* rows */
	} ops[FAY_MEASURED_OPS];
	uint32_t op_count;
	uint64_t result_rows;
};

struct fay_plan {
	const char *text; /* the query */
	/* "module!function"; DOMAIN_FILE: the file's name, and what of it */
	const char *pattern;
	struct fay_saved *saved; /* DOMAIN_FILE: opened; the plan's */
	enum fay_domain domain;
	enum fay_kernel_kind kernel;
	/* of functions of the kernel: something is asked that native probes do not have there
	 * (stacks) */
	bool only_bpf;
	/* sources in the kernel: bit 0 the only one or the first one of a join, bit 1 the second
	 * one and so on. With DOMAIN_USER some are not */
	uint32_t kernel_sides;
	/* what runs it on this machine and why, for people; the caller's, NULL: nothing to say */
	const char *back_end;
	const struct fay_query_process *process; /* that the query names; NULL */
	enum fay_when_full when_full;            /* what a thread does whose ring has no room */
	/* that the query names, or a glob (fnmatch) of several; NULL: all */
	const char *machine;
	bool addresses; /* some column is an address of code, or a stack of them */
	/* the probes walk the program's stacks: GLOBAL holds struct fay_stack_tables */
	bool walks_stacks;
	/* names and types are those of the file that fay_query_options.find found: in another build
	 * they would be wrong */
	bool typed;
	/* inlined copies of the function are asked for as well: there may be none, or no other
	 * code of it */
	bool inlined;
	/* what calls began with is kept for lines: who takes out or puts back one of its places has
	 * to take out all, and puts none back */
	bool keeps_calls;
	bool streams; /* rows are events, not groups (no aggregation) */
	bool scalar;  /* one row without keys (Count() and the like) */
	/* the rows go through fay_plan_finish() before they are shown */
	bool finishes;
	bool ordered; /* the query says in which order rows are shown */
	/* groups are grouped again: finished rows have another schema than merged ones */
	bool regroups;
	/* a group stays one: its counts never become smaller */
	bool grows;
	/* streams: the rows are kept and finished, not shown as they come */
	bool collects;
	/* streams: of the rows as they come, skip `first_row`, show `row_limit` (UINT64_MAX: all),
	 * then end */
	uint64_t first_row, row_limit;
	uint64_t takes; /* of a result at most so many rows are left; 0: all */
	/* ns; windows begin at multiples of the step since the epoch, key column 0 of rows is the
	 * start. 0: no windows */
	uint64_t window_width, window_step;
	/*
	 * Windows of so many events, by time; 0: there are none. State 0 of the image is then a
	 * stream of rows of event_size bytes, one for each event, which are put in order by the
	 * time at event_time_offset (fay_order) and counted; fay_plan_event() says what each adds
	 * to its window, a row of the result's state (fay_plan_schema()), and window number n ends
	 * at n + 1 for fay_plan_window().
	 */
	uint64_t window_events;
	uint32_t event_size, event_time_offset;
	/*
	 * Several sources: state n of the image is of source n, each a stream (of sources in the
	 * kernel beside some in programs the image has no probes, and their rows come through BPF,
	 * or from an image of their own); fay_pairs_add() puts them together and makes rows of the
	 * result's state (fay_plan_schema()) of the pairs.
	 */
	bool joins;
	unsigned source_count; /* 1, or of a join 2 or more */
	/* of what was there before and the next source */
	struct fay_join_options join[FAY_JOIN_SOURCES - 1];
	/* the last join makes a row of each left one, with what its pairs come to, also if it has
	 * none */
	bool groups_pairs;
	/* ... and is asked for those alone of which a certain pair is missing: these have their
	 * rows when no such pair can come any more, and nothing is kept of the others */
	bool wants_unpaired;
	/* DOMAIN_FILE: of the other sources; the plan's */
	struct fay_saved *saved_joined[FAY_JOIN_SOURCES - 1];
	/* ns since the epoch after which no event can pass `where`; 0: none */
	uint64_t deadline;
	/* some column may have strings of more than 15 bytes: pieces of them are rows of state
	 * `text_state` (struct fay_text_row), and the cell of state `text_state` + 1 counts what
	 * was not sent for want of room, which is among the lost events, too */
	bool texts;
	uint32_t text_state;
	struct fay_hash_key text_key;
	/* the caller's, or NULL: fay_plan_finish() fills in what the root does */
	struct fay_measured *measured;
	/* functions of C are called: to be compiled with `unfuelled` and `debug_lines` */
	bool extended;
	/* so are strings that are read whole: to be compiled with `unfuelled`, since a probe that
	 * leaves a loop early would lose an event without a word */
	bool unfuelled;
	struct fay_image_spec spec; /* for fay_compile_module(); strings owned by the plan */
	/* of a join of functions of the kernel with something in programs: the former's probes,
	 * with the same states */
	struct fay_image_spec kernel_spec;
	struct fay_plan_column *columns;
	uint32_t column_count;
	void *private_plan;
};

/*
 * Parses, types and plans. `now` is what `Now` means, in ns since the epoch. An error's message has
 * the form
 *
 *   query:2:10: unknown field `tme` of event `io`; did you mean `time`?
 *       where io.tme < Now.AddMinutes(5)
 *                ^~~
 */
int fay_query_plan(const char *text, uint64_t now, struct fay_plan **plan, struct fay_error *error);

/* The process that a query names by process(...). */
struct fay_query_process {
	const char *comm; /* its name; NULL: it is named by its number */
	int pid;
};

/* The file that a function of a program lies in. */
struct fay_query_function {
	const struct fay_query_process *process; /* given: that the query names; NULL */
	int fd;                                  /* open for reading; the query closes it */
	char path[4096];                         /* for people */
	char name[256];                          /* the function's symbol */
	uint64_t address;                        /* its virtual address in the file */
	size_t count; /* functions that the pattern matches; of several this is the first */
};
/* Finds what "module!function" means to the trace that the query is for. An error says why that is
 * not known. */
typedef int fay_query_find_function(void *context, const char *pattern,
				    struct fay_query_function *function, struct fay_error *error);

struct fay_query_options {
	uint64_t now;
	/* C files that the query names by `extend` are compiled (clang-19 is run); else refused */
	bool extend;
	/* an event as a row of its own has all that is known of it, not only what one wants to see
	 * first */
	bool whole_events;
	/* strings of programs, and those of events that come through BPF, are read whole, up to
	 * FAY_TEXT_MAX bytes; else the first 15 bytes. The key is of their hashes in rows
	 * (fay/text.h) */
	bool long_strings, long_kernel_strings;
	struct fay_hash_key text_key;
	/* NULL: arguments of programs' functions are not known by name */
	fay_query_find_function *find;
	void *find_context;
	/* NULL, or told what may stand in the place of a word that means nothing: completion */
	void (*candidates)(void *context, const char *word, const char *const *names, size_t count);
	void *candidates_context;
	/* NULL, or told of the text's bytes from `start` up to `end` what they are ("an integer"),
	 * for each expression that is checked; `what` NULL: the error is about them */
	void (*part)(void *context, size_t start, size_t end, const char *what);
	void *part_context;
};
int fay_query_plan_with(const char *text, const struct fay_query_options *options,
			struct fay_plan **plan, struct fay_error *error);
/*
 * What --save keeps of the rows of `schema`, which the plan's probes fill (whole_events): of a join
 * both sources' events, not the pairs. The streams are numbered as the states. layout->text is the
 * plan's.
 */
int fay_plan_save_layout(const struct fay_plan *plan, const struct fay_schema *schema,
			 struct fay_save_layout *layout, struct fay_error *error);
/* The saved trace that a source is. */
static inline struct fay_saved *fay_plan_saved(const struct fay_plan *plan, unsigned side)
{
	return side ? plan->saved_joined[side - 1] : plan->saved;
}
/* The event that a row of fay_plan_saved() stands for, and which of the image's probes is for it;
 * false: none. */
bool fay_plan_saved_event(const struct fay_plan *plan, unsigned side, const uint8_t *row,
			  struct fay_event *event, uint32_t *probe);
/* What a probe of that event reads at an address: strings of the row, by which the event was made.
 * false: nothing is there. */
bool fay_plan_saved_read(const struct fay_plan *plan, unsigned side, const uint8_t *row, void *to,
			 uint64_t size, uint64_t address);
/*
 * Of a plan with windows of so many events: what one adds to window number `window`, from 0 up, as
 * a row of the result's state (at most 4096 bytes). false: nothing, the query's conditions on a
 * window's events do not hold; it is one of the window's events all the same.
 */
bool fay_plan_event(const struct fay_plan *plan, uint64_t window, const uint8_t *event,
		    uint8_t *row);
/* Of a plan that joins: from rows of its sources to rows of the result's state. */
struct fay_pairs;
/* A row (at most 4096 bytes) for fay_aggregator_take_row(); valid until the function returns. */
typedef void fay_pairs_row_function(void *context, const uint8_t *row);
int fay_pairs_create(const struct fay_plan *plan, fay_pairs_row_function *function, void *context,
		     struct fay_pairs **pairs, struct fay_error *error);
void fay_pairs_destroy(struct fay_pairs *pairs);
/* A row of the image's state `source`. */
void fay_pairs_add(struct fay_pairs *pairs, unsigned source, const uint8_t *row);
/* As fay_join_advance(). */
void fay_pairs_advance(struct fay_pairs *pairs, uint64_t horizon);
void fay_pairs_counts(const struct fay_pairs *pairs, struct fay_pairs_counts *counts);
void fay_plan_destroy(struct fay_plan *plan);
/* "Did you mean": the candidate that `word` was probably meant to be, or NULL. */
const char *fay_query_suggest(const char *word, const char *const *candidates, size_t count);
/* The probes in programs as a module in `context`, for fay_compile_module() with plan->spec; of a
 * query about functions of the kernel alone, those for all processes. */
int fay_plan_generate(const struct fay_plan *plan, LLVMContextRef context, LLVMModuleRef *module,
		      struct fay_error *error);

/* Whose events an image in the kernel lets through. */
struct fay_event_filter {
	const pid_t *pids; /* only events of these processes; none: of all */
	size_t pid_count;
	const pid_t *tids; /* only events of these threads; none: of all */
	size_t tid_count;
};
/* The probes in the kernel, as a module for fay_compile_module() with fay_plan_kernel_spec(). Only
 * of functions of the kernel. */
const struct fay_image_spec *fay_plan_kernel_spec(const struct fay_plan *plan);
int fay_plan_generate_kernel(const struct fay_plan *plan, const struct fay_event_filter *filter,
			     LLVMContextRef context, LLVMModuleRef *module,
			     struct fay_error *error);

/* What a BPF object is made for. */
struct fay_bpf_options {
	/* of a join: whose events, by the source's number from 0 on */
	unsigned side;
	bool not_self; /* events of the process that runs the object do not count */
	/* only events of these processes, and of those that are named; neither: of all */
	const pid_t *pids;
	size_t pid_count;
	bool follow;       /* and of their children */
	const pid_t *tids; /* only events of these threads; none: of all */
	size_t tid_count;
	/* only events of processes with one of these names, and of `pids` */
	const char *const *comms;
	size_t comm_count;
	/* of a query about programs: places in them at which the kernel traps, a program each, in
	 * this order; all else but `tids` means nothing then */
	const struct fay_trap *const *traps;
	size_t trap_count;
	/* once it is not 0 no further trap's program is compiled: FAY_E_REFUSED; NULL: all are */
	const volatile int *given_up;
};
/* A kernel query (system calls, tracepoints) as BPF programs, for this kernel and machine. *object
 * is to be given to fay_bpf_object_deinit(); it refers to options->pids. */
int fay_plan_generate_bpf(const struct fay_plan *plan, const struct fay_bpf_options *options,
			  struct fay_bpf_object *object, struct fay_error *error);
/* Why traps cannot answer a query about programs; NULL: they can. */
const char *fay_plan_trap_refusal(const struct fay_plan *plan);
/* The state of the result: what the image or the BPF object fills, or of a join its pairs. For the
 * aggregator; refers to the plan. */
void fay_plan_schema(const struct fay_plan *plan, struct fay_schema *schema);
/* Of a join: the states that its sources fill; of windows of so many events: the state of the
 * events. Refers to the plan. */
void fay_plan_sources_schema(const struct fay_plan *plan, struct fay_schema *schema);
/* What the events of a source in the kernel are. `side`: as in `kernel_sides`. */
enum fay_kernel_kind fay_plan_kernel_kind(const struct fay_plan *plan, unsigned side);
/* Adds the states that texts come by, if the plan has any, to that of BPF programs. false: out of
 * memory. */
bool fay_plan_add_texts(const struct fay_plan *plan, struct fay_schema *schema);
/* Of the finished rows: the same, unless groups are grouped again. */
void fay_plan_result_schema(const struct fay_plan *plan, struct fay_schema *schema);
/* Which of the columns that the probes fill, of a plan that does not join, hold addresses of code,
 * or stacks of them. Returns how many. */
#define FAY_PLAN_CODES_MAX 64u
struct fay_plan_code {
	uint32_t column; /* of the image's */
	/* the first address is an instruction's own; the others, or all, are what calls return to
	 * */
	bool exact;
	bool kernel; /* they are the kernel's */
};
uint32_t fay_plan_codes(const struct fay_plan *plan,
			struct fay_plan_code codes[FAY_PLAN_CODES_MAX]);
/* Whether the probes compute something with such addresses (count different ones, for instance),
 * which then is of one machine's. */
bool fay_plan_computes_codes(const struct fay_plan *plan);
/* A kernel event's `function` by its hash, or NULL. */
const char *fay_plan_kernel_name(const struct fay_plan *plan, uint64_t hash);
/* The name of a function by its hash, by which it is ordered, or NULL. */
typedef const char *fay_plan_name_function(void *context, uint64_t hash);
/*
 * The root stage of a plan that `finishes`: conditions on aggregates, order, Take, computed columns
 * ... of merged rows (of a plan that `collects`: of all rows so far). *out: rows of its own, to be
 * given to fay_result_deinit().
 */
int fay_plan_finish(const struct fay_plan *plan, const struct fay_result *merged,
		    fay_plan_name_function *name, void *name_context, struct fay_result *out,
		    struct fay_error *error);
/* Where the root stage finds texts, from now on; to be kept as long as the plan is used. */
void fay_plan_set_texts(const struct fay_plan *plan, const struct fay_texts *texts);
/* Of a plan with windows: whether a window without events has a row. */
bool fay_plan_shows_empty_windows(const struct fay_plan *plan);
/* Where in merged rows the number of all their events lies, 8 bytes; false: the query does not
 * count them all. */
bool fay_plan_window_count(const struct fay_plan *plan, uint32_t *offset);
/*
 * Of a plan with windows: the rows of the window [end - width, end) among merged rows, as
 * fay_plan_finish() takes them; a query for one value has a row even if there was no event (an
 * aggregate over groups gets its row from fay_plan_finish()). fay_plan_finish() then works on that
 * one window. *out is to be given to fay_result_deinit().
 */
int fay_plan_window(const struct fay_plan *plan, const struct fay_schema *schema,
		    const struct fay_result *merged, uint64_t end, struct fay_result *out,
		    struct fay_error *error);
/* Of collected rows, drops those that no later row can bring into the result. false: there are
 * none, or memory is short. */
bool fay_plan_prune(const struct fay_plan *plan, struct fay_result *rows,
		    fay_plan_name_function *name, void *name_context);
/* `fay explain`: what each tier does: probe, process, machine, cluster. */
void fay_plan_print(FILE *out, const struct fay_plan *plan);
void fay_plan_print_json(FILE *out, const struct fay_plan *plan);
/* What is kept, in some words: "a row of 24 bytes a key". */
void fay_plan_print_brief(FILE *out, const struct fay_plan *plan);
/* The tree of the plan, from the result down to the probes, with what was measured at each edge; as
 * text, or as one JSON object's members. */
void fay_plan_print_measured(FILE *out, const struct fay_plan *plan,
			     const struct fay_measured *measured);
void fay_plan_print_measured_json(FILE *out, const struct fay_plan *plan,
				  const struct fay_measured *measured, bool final);

#endif
