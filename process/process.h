/* SPDX-License-Identifier: MIT */
/*
 * What the subcommands share: option values, the view of results, and the writers.
 */
#ifndef FAY_CLI_H
#define FAY_CLI_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "fay/aggregator.h"
#include "fay/error.h"
#include "fay/kernel.h"
#include "fay/loader.h"
#include "fay/query.h"
#include "fay/verify.h"

#define FAY_CLI_MAX_TARGETS 256u

int fay_trace_main(int argc, char **argv);
int fay_explain_main(int argc, char **argv);
int fay_list_main(int argc, char **argv);
int fay_doctor_main(int argc, char **argv);
int fay_bench_main(int argc, char **argv);
int fay_export_main(int argc, char **argv);

/* "10s", "500ms", "2m", "1h", "250us" to nanoseconds; a bare number means seconds. false: not a
 * duration. */
bool fay_cli_duration(const char *text, uint64_t *nanoseconds);
/* "64MB", "1GiB"; false: it is no size, or none of at least a byte. */
bool fay_cli_size(const char *text, uint64_t *bytes);
/* Prints "fay: MESSAGE" to standard error and returns the exit code. */
int fay_cli_fail(const struct fay_error *error);
uint64_t fay_cli_monotonic(void); /* ns */
uint64_t fay_cli_realtime(void);  /* ns since the epoch */
uint64_t fay_cli_boottime(void);  /* ns since the machine was started, also while it slept */

/* --- hints.c: what may have been meant
 * ---------------------------------------------------------------------------------- */

struct option;
/* getopt_long(3); of an option that is none the nearest one is named on standard error, too. */
int fay_cli_getopt(int argc, char **argv, const char *letters, const struct option *options);
/* The name of a process that is most like this one; NULL. Valid until the next call. */
const char *fay_cli_nearest_comm(const char *comm);
bool fay_cli_is_number(const char *text);
/* Adds to an error in a query what may be behind it: a shell that took the quotes away, a program
 * of another tool. */
void fay_cli_query_hint(const char *query, struct fay_error *error);

/* The process that a thread is in; 0: there is no such thread. */
pid_t fay_cli_process_of(pid_t tid);
/* Who holds the process by ptrace; 0: nobody. */
pid_t fay_cli_tracer_of(pid_t pid);
/* Appends the ids of the processes whose thread name is `comm`, the caller's own and ended ones
 * (zombies) left out. Returns how many there are. */
size_t fay_cli_find_comm(const char *comm, pid_t *pids, size_t max);

/*
 * Starts a command and stops it at its executable's first instruction: the dynamic loader has
 * mapped and relocated everything, main has not run. The process is left in a group stop for the
 * session to attach to; kill(pid, SIGCONT) lets it go.
 */
int fay_cli_spawn(char **command, pid_t *pid, struct fay_error *error);
/* The same, stopped before its first instruction of all, the dynamic loader's. */
int fay_cli_spawn_early(char **command, pid_t *pid, struct fay_error *error);

/* entry.c: runs a tracee of the caller's, stopped behind its execve, to its program's entry point.
 * */
int fay_cli_run_to_entry(pid_t pid, struct fay_error *error);

/* doctor_bpf.c: what runs a query about the kernel on this machine, and why; or why it does not
 * run. Overwritten by the next call. */
/* Whether BPF is granted functions of the kernel. */
bool fay_cli_kernel_bpf_functions(void);
const char *fay_cli_kernel_back_end(enum fay_kernel_kind kind);

/* --- functions.c: the file whose debug information describes a query's function
 * --------------------------------------- */

struct fay_cli_functions {
	/* where it is looked for: in processes, else in what would be run */
	const pid_t *pids;
	size_t pid_count;
	const char *const *comms;
	size_t comm_count;
	char **command;
	/* it is this one's file, by path and build ID, or none; NULL */
	const struct fay_cli_functions *known;
	/* what was found last */
	struct fay_function_file file; /* fd and path are not valid any more */
	char pattern[256], path[4096];
};
#define FAY_CLI_PROCESSES_MAX 64u
/* Those that the query names, or those of the command line. */
size_t fay_cli_processes(const struct fay_cli_functions *functions,
			 const struct fay_query_process *process,
			 pid_t pids[FAY_CLI_PROCESSES_MAX]);
/* A fay_query_find_function; context: struct fay_cli_functions. */
int fay_cli_find_function(void *context, const char *pattern, struct fay_query_function *function,
			  struct fay_error *error);
/* FAY_E_REFUSED: the process has another build of the file that was found. */
int fay_cli_check_function(const struct fay_cli_functions *functions, struct fay_target *target,
			   struct fay_error *error);

/* --- addresses.c: code addresses by name
 * ----------------------------------------------------------------------------- */

#define FAY_CLI_ADDRESSES_KNOWN 4096u
struct fay_cli_addresses {
	struct fay_target **snapshots; /* processes, as they were mapped */
	size_t count;
	/* once some address of the kernel's was asked for; none if they are hidden */
	struct fay_kernel_symbols kernel;
	bool kernel_read;
	struct {
		uint64_t address;
		bool exact;
		struct fay_code_place place; /* module NULL: not known */
	} known[FAY_CLI_ADDRESSES_KNOWN];    /* what was looked up last */
};
/* What the process has mapped now; quietly nothing if it is gone, or has what another one has. */
void fay_cli_addresses_take(struct fay_cli_addresses *addresses, pid_t pid);
void fay_cli_addresses_deinit(struct fay_cli_addresses *addresses);
/* Where an address is, of which `form` says EXACT and KERNEL; module NULL: not known. Valid until
 * the next call. */
const struct fay_code_place *fay_cli_address_place(struct fay_cli_addresses *addresses,
						   uint64_t address, unsigned form);
/* address_names.c: "libc!qsort+0x1c", or "0x7f..." */
void fay_cli_address_name(struct fay_cli_addresses *addresses, uint64_t address, unsigned form,
			  char *text, size_t size);

/* Likewise of what a machine of a cluster said of a place in code (docs/cluster.md, PARTIAL);
 * `code` NULL: it said nothing of this hash. */
void fay_cli_code_name(const char *code, uint64_t hash, unsigned form, char *text, size_t size);

/* --- leftovers.c: fay's code in processes
 * ---------------------------------------------------------------------------- */

/* dispatch.c: a line for each probe of an accepted image. */
void fay_cli_print_dispatch(FILE *out, const char *indent, const struct fay_verdict *verdict);
/* The same as JSON objects. */
void fay_cli_print_dispatch_json(FILE *out, const struct fay_verdict *verdict);
/* What would be done to the functions of a process, which stays as it is: one line, or a JSON
 * object for each function. */
void fay_cli_print_points(FILE *out, bool json, pid_t pid, const struct fay_verdict *verdict);

struct fay_cli_leftovers {
	/* sessions: of a fay that runs; of one that is gone; of one of which that cannot be told */
	size_t traced, abandoned, unknown;
	char abandoned_in[160], unknown_in[160]; /* " 12 13": the processes */
	struct fay_cli_leftover {
		pid_t pid;
		/* has code of a fay of another version, whose sessions are not known */
		bool foreign;
		struct fay_installed_session session;
	} *items; /* count of them */
	size_t count;
};
/* Of all processes that can be looked into. */
void fay_cli_leftovers_find(struct fay_cli_leftovers *all);
void fay_cli_leftovers_deinit(struct fay_cli_leftovers *all);
/* One line each, or a JSON object. */
void fay_cli_leftovers_print(const struct fay_cli_leftovers *all, bool json);
/* Removes what is abandoned, everywhere; says on standard error what was done. */
int fay_cli_leftovers_clean(void);
/* The same of one process. `unknown`: also what is of a fay of which it cannot be told whether it
 * runs; else that is said. */
int fay_cli_leftovers_clean_pid(pid_t pid, bool unknown, struct fay_error *error);

/* --- results
 * -------------------------------------------------------------------------------------------------
 * */

enum fay_format { FAY_FORMAT_TABLE, FAY_FORMAT_JSON, FAY_FORMAT_CSV, FAY_FORMAT_FOLDED };

struct fay_view_column {
	const char *name;
	const struct fay_schema_column *column;
	const struct fay_enumeration *enumeration; /* what its values are called; NULL */
	bool address;                              /* of code: shown by name */
	uint32_t stack_frames; /* so many addresses of code, innermost first; 0: it is no stack */
	bool kernel_stack;
};

/* One state of the image as the user sees it. */
struct fay_view {
	uint32_t state;
	const char *title; /* NULL: do not print one */
	bool streams;      /* rows are shown as they come */
	bool ordered;      /* the query says in which order rows are shown */
	uint32_t row_size; /* of the image's state */
	struct fay_view_column *columns;
	/* of columns that the image has not; by the same index */
	struct fay_schema_column *computed;
	uint32_t column_count;
};

typedef const char *fay_name_function(void *context, uint64_t hash);
/* How a code address is written. */
enum fay_address_form {
	FAY_ADDRESS_READABLE = 1, /* for people */
	FAY_ADDRESS_EXACT = 2,    /* it is an instruction's own, not what a call returns to */
	FAY_ADDRESS_BARE = 4,     /* the function's name alone: flame graphs */
	FAY_ADDRESS_KERNEL = 8,
};
typedef void fay_address_function(void *context, uint64_t address, unsigned form, char *text,
				  size_t size);

/* Which buckets of a histogram a heat map shows; `end` 0: none yet. */
struct fay_heat {
	size_t first, end, buckets; /* buckets: of the histogram */
};

#define FAY_LIVE_LINES 1024u

struct fay_writer {
	FILE *out;
	enum fay_format format;
	bool live; /* a terminal: redraw in place */
	/* output_live.c */
	/* where a picture goes that is being made, while `out` is memory; NULL: none is */
	FILE *screen;
	char *picture;                /* that memory */
	size_t picture_size, view_at; /* view_at: where the last view begins in it */
	bool limited;                 /* it is cut to the terminal's size */
	unsigned lines_left;          /* that views which come may take */
	size_t views_left;
	unsigned lines_drawn; /* of the last picture; how many columns each has */
	uint16_t drawn[FAY_LIVE_LINES];
	bool header_written; /* of a stream or of CSV */
	bool revised;        /* rows were shown before, with other values */
	/* histograms of a table are lines of a heat map; of rows that come one by one they are in
	 * any case */
	bool heat_map;
	struct fay_heat heat; /* of rows that come one by one */
	fay_name_function *function_name;
	void *name_context;
	fay_address_function *address_name; /* NULL: addresses are shown as numbers */
};

void fay_write_schema(struct fay_writer *writer, const char *query, const struct fay_view *views,
		      size_t count);
/* One picture of the result of one view; `final` marks the last. */
void fay_write_result(struct fay_writer *writer, const struct fay_view *view,
		      const struct fay_result *result, bool final);
void fay_write_row(struct fay_writer *writer, const struct fay_view *view, const uint8_t *row);
/*
 * The results of so many views that are written between these are one picture, drawn over the last
 * one if the output is a terminal. `final`: it is printed whole, and stays. Between them
 * writer->out is not the terminal.
 */
void fay_live_begin(struct fay_writer *writer, size_t views, bool final);
void fay_live_end(struct fay_writer *writer);
/* Clears the picture, if the terminal shows this writer's: something else is written there, and it
 * is to be drawn below. */
void fay_live_clear(struct fay_writer *writer);
/* The terminal has another size, or a message took the picture's place: it is to be drawn. Set by
 * whoever takes SIGWINCH, too. */
extern volatile sig_atomic_t fay_live_due;

/*
 * A C++ or Rust function's name as people write it, without its arguments, or the name itself;
 * demangle.c. Cut to `size` with "..."; lives as long as `buffer` and `name`.
 */
const char *fay_cli_readable(const char *name, char *buffer, size_t size);

/* printable.c: in place, each byte that a terminal would not show as it is becomes `?`; the same,
 * written. */
void fay_cli_printable(char *text);
void fay_cli_put(FILE *out, const char *text);
/* Is called before something is written to standard error; NULL. */
extern void (*fay_cli_before_message)(void);
/* From now on standard error passes such a filter, which lets lines and tabulators through. */
void fay_cli_guard_messages(void);

void fay_json_string(FILE *out, const char *bytes, size_t size);

#endif
