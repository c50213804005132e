/* SPDX-License-Identifier: MIT */
/*
 * Traces as a library, libfay_trace: a FayLINQ query (docs/faylinq.md) runs as verified native code
 * in live processes, and its rows and results come as typed values. It is what `fay trace` does,
 * without output, exit and signal handlers; rights are those of the calling process.
 *
 * The caller drives a tracer: while it is open, fay_tracer_step() is to be called whenever
 * fay_tracer_fd() can be read, or in a loop. Its callbacks are called from within
 * fay_tracer_step(), fay_tracer_finish() and fay_tracer_close(), messages from fay_tracer_open(),
 * too, by the thread that calls these. They may ask for columns, and call fay_tracer_stop(), and
 * no other function of any tracer.
 *
 * Threads: a tracer is used by one thread at a time, fay_tracer_stop() excepted; different tracers
 * may be used by different threads, which take turns within the library. The process may have an
 * LLVM of its own: code generation sets options of LLVM 19 that hold for the whole process.
 */
#ifndef FAY_TRACE_H
#define FAY_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "fay/error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct fay_tracer;

enum fay_cell_kind {
	FAY_CELL_NONE = 0, /* there is no value, as of the least of nothing */
	FAY_CELL_I64 = 1,
	FAY_CELL_U64 = 2,
	FAY_CELL_BOOL = 3,
	FAY_CELL_DOUBLE = 4,
	FAY_CELL_TIME = 5, /* u64: ns since the epoch */
	FAY_CELL_TEXT = 6, /* also names: of functions, of places in code, of values */
	/* lists of items */
	FAY_CELL_HISTOGRAM = 7, /* label "8..15", count; ranges without values are left out */
	FAY_CELL_QUANTILES = 8, /* label "p50", value */
	FAY_CELL_TOP = 9,       /* label: the key, count; the most frequent first */
	FAY_CELL_SAMPLE = 10,   /* label: the value */
	FAY_CELL_STACK = 11,    /* label: the frame's function, the innermost first */
};

struct fay_cell_item {
	const char *label; /* UTF-8 unless a name is not; ends with a NUL */
	uint64_t count;
	double value;
};

struct fay_cell {
	enum fay_cell_kind kind;
	int64_t i64;       /* of I64 */
	uint64_t u64;      /* of U64, BOOL and TIME */
	double real;       /* of DOUBLE */
	const char *bytes; /* of TEXT: as the program has them, a NUL behind them */
	size_t size;       /* bytes of TEXT; items of lists */
	const struct fay_cell_item *items;
};

/* All of it is valid until the callback returns. */
struct fay_row {
	size_t result; /* which of the results it belongs to; a query has one */
	/* 0: a row of an event or a window, as it comes. Else the number of the picture of the
	 * whole result that it is a part of; each replaces the one before. */
	uint64_t picture;
	bool final;   /* of the last picture */
	bool revised; /* of a window that was told before, with other values */
	size_t count; /* of cells, one for each column */
	const struct fay_cell *cells;
};

struct fay_tracer_options {
	size_t size;       /* sizeof(struct fay_tracer_options) */
	const pid_t *pids; /* processes by number */
	size_t pid_count;
	const char *const *comms; /* processes by name */
	size_t comm_count;
	char *const *command;    /* a program that is started and traced; ends with NULL */
	uint64_t duration_ns;    /* 0: until it is stopped, or what is traced has ended */
	uint64_t every_ns;       /* a picture of the result each so often; 0: at the end alone */
	double budget;           /* share of the processor time that probes may take; 0: any */
	const char *policy_path; /* docs/policy.md; NULL: the built-in policy */
	void *context;           /* of the callbacks, each of which may be NULL */
	void (*row)(void *context, const struct fay_row *row);
	/* What users would be told meanwhile: a line, without its end. */
	void (*message)(void *context, const char *text);
};

struct fay_tracer_statistics {
	size_t size; /* sizeof(struct fay_tracer_statistics), set by the caller */
	uint64_t rows;
	uint32_t threads;        /* whose events are counted */
	uint64_t lost_reentrant; /* events of probes within probes */
	uint64_t lost_full;      /* a table or ring was full */
	uint64_t lost_no_slot;   /* threads beyond the most */
	uint64_t lost_calls;     /* calls whose end is no event */
	uint64_t late;           /* events that came after their window was closed */
};

/*
 * Plans and compiles the query, proves its probes, and attaches to what is named; a command is
 * started. Outputs *tracer at once, so that fay_tracer_stop() may end this, too; NULL after an
 * error. Returns FAY_OK, or the error's code and nothing is installed: FAY_E_USAGE a query or name
 * that means nothing, FAY_E_REFUSED what cannot be traced, or was stopped, FAY_E_LIMIT,
 * FAY_E_INTERNAL. What the options point to must stay until fay_tracer_close().
 */
int fay_tracer_open(const char *query, const struct fay_tracer_options *options,
		    struct fay_tracer **tracer, struct fay_error *error);
/* The results, the columns of one, and what column `index` is called; NULL: there is none. */
size_t fay_tracer_results(const struct fay_tracer *tracer);
size_t fay_tracer_columns(const struct fay_tracer *tracer, size_t result);
const char *fay_tracer_column(const struct fay_tracer *tracer, size_t result, size_t index);
/* A descriptor that can be read (poll(2)) when it is time for fay_tracer_step(). The tracer's. */
int fay_tracer_fd(const struct fay_tracer *tracer);
/* Waits for `timeout_ms` at most (negative: until there is something to do) and takes up what has
 * come. FAY_OK, or the error's code: then fay_tracer_finish() is to be called, too. */
int fay_tracer_step(struct fay_tracer *tracer, int timeout_ms, struct fay_error *error);
/* Why the trace is over ("time is up"); NULL: it goes on. */
const char *fay_tracer_over(const struct fay_tracer *tracer);
/* The next step finds it over. May be called by any thread, and in signal handlers. */
void fay_tracer_stop(struct fay_tracer *tracer);
/* The process of `command`, a child of the caller's; 0: there is none, or it has ended and was
 * waited for. If it runs on after fay_tracer_close(), it is the caller's to wait for. */
pid_t fay_tracer_command(const struct fay_tracer *tracer);
/* Detaches from all processes, whose code is as before, and hands on the final result. The error is
 * that of a process that is still patched, or of the result. Once. */
int fay_tracer_finish(struct fay_tracer *tracer, struct fay_error *error);
/* So far, or in the end. */
int fay_tracer_statistics(struct fay_tracer *tracer, struct fay_tracer_statistics *statistics,
			  struct fay_error *error);
/* Finishes, if that was not done, and frees all. NULL is allowed. */
void fay_tracer_close(struct fay_tracer *tracer);

#ifdef __cplusplus
}
#endif

#endif
