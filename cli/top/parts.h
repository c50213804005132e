/* SPDX-License-Identifier: MIT */
/* What the files of `fay top` share. */
#ifndef FAY_CLI_TOP_PARTS_H
#define FAY_CLI_TOP_PARTS_H

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "fay/trace.h"
#include "process/process.h"

/* --- table.c: the rows of a view, and how fast they grow --- */

#define FAY_TOP_VALUES 4u

struct fay_top_row {
	char *name;    /* by which it is known, and chosen */
	char *shown;   /* NULL: the name */
	char **frames; /* of a stack, the innermost first */
	size_t frame_count;
	uint64_t values[FAY_TOP_VALUES];
	uint64_t base[FAY_TOP_VALUES]; /* what they had before the view was left */
	double rate;                   /* of value 0, a second in which it was traced */
	double before;                 /* the rate in the picture before */
	bool out; /* the budget has left it out: its rate is the last one that is known */
	uint64_t absent,
		absent_now; /* ns that it was out, by the picture before, and by this one */
	uint64_t picture;   /* that it was in last */
};
struct fay_top_table {
	struct fay_top_row *rows; /* by name */
	size_t count, room;
	struct fay_top_row **shown; /* of fay_top_table_arrange() */
	size_t shown_count;
	size_t out_count;        /* rows of what is left out */
	uint64_t picture, taken; /* the number of the last one, and when that came, ns */
	double seconds;          /* between it and the one before, or the beginning */
};
void fay_top_table_clear(struct fay_top_table *table);
/* Another trace goes on with its rows: its pictures count from 0. */
void fay_top_table_resume(struct fay_top_table *table);
/* The row of that name in the picture; NULL: no memory. `values`: of which the first gives the
 * rate, and those in `sums` are added to what was counted before. */
struct fay_top_row *fay_top_table_put(struct fay_top_table *table, uint64_t picture,
				      const char *name, const uint64_t values[FAY_TOP_VALUES],
				      unsigned sums);
/* The row with that name, or all (NULL), was left out for so long, and is or is not now. */
void fay_top_table_left_out(struct fay_top_table *table, const char *name, bool out,
			    uint64_t absent_ns);
/* All of the picture has been put, and said to be left out: its rates are right from now on. */
void fay_top_table_complete(struct fay_top_table *table);
/* Chooses what is shown: rows whose names have the text, by column (0 the rate, n + 1 value n, the
 * greatest first; past these: by name). */
void fay_top_table_arrange(struct fay_top_table *table, unsigned column, const char *text);

/* --- view.c: what is asked --- */

#define FAY_TOP_INPUT 64u /* bytes of what is typed */

enum fay_top_kind { FAY_TOP_PROCESSES, FAY_TOP_FUNCTIONS, FAY_TOP_STACKS };
#define FAY_TOP_KINDS 3u

struct fay_top_column {
	const char *name;
	bool span; /* ns */
	bool sum;  /* of events: it goes on where a view was left */
};
struct fay_top_view {
	enum fay_top_kind kind;
	const pid_t *pids; /* of FAY_TOP_PROCESSES: only these */
	size_t pid_count;
	const char *const *comms;
	size_t comm_count;
	double budget;
	pid_t pid;                  /* of the others: whose functions */
	char wanted[FAY_TOP_INPUT]; /* of FAY_TOP_FUNCTIONS: a pattern; "": the executable's own */
	char function[1024]; /* of FAY_TOP_STACKS: "module!function", as a query's string has it */
	char query[2048];
	char message[512];         /* what was said last */
	bool paused;               /* rows stay as they are */
	bool failed;               /* the message is why there are no rows */
	struct fay_tracer *tracer; /* NULL: nothing is traced; signal handlers see it */
	struct fay_top_table table;
};
/* What its rows have behind the rate; returns how many. */
size_t fay_top_columns(enum fay_top_kind kind, const struct fay_top_column **columns);
/* Says what will be asked. */
void fay_top_view_ask(struct fay_top_view *view);
/* Traces it; if that cannot be, it has failed. */
void fay_top_view_open(struct fay_top_view *view);
/* The function that a row is named after is what stacks are asked of; false: the process is gone.
 */
bool fay_top_view_function(struct fay_top_view *view, const char *name);
/* Takes up what has come, once something is due, or when the word is not `seen` any more. */
void fay_top_view_wait(struct fay_top_view *view, const uint32_t *word, uint32_t seen);
/* The program is as before it was opened; the rows stay. */
void fay_top_view_stop(struct fay_top_view *view);
/* Likewise, and there are no rows. */
void fay_top_view_close(struct fay_top_view *view);

/* --- terminal.c --- */

/* Whether the cursor can be moved to any place. */
bool fay_top_can_draw(void);

/* --- screen.c --- */

enum fay_top_input { FAY_TOP_NO_INPUT, FAY_TOP_FILTER, FAY_TOP_SAVE, FAY_TOP_WANTED };

/* A view that was left for one of its rows: as it was. */
struct fay_top_left {
	struct fay_top_table table;
	size_t chosen, first;
	unsigned column;
	char filter[FAY_TOP_INPUT];
};
struct fay_top_screen {
	struct fay_top_view *view;
	struct fay_top_left left[FAY_TOP_KINDS]; /* by kind */
	size_t chosen, first;                    /* of the rows that are shown */
	unsigned column;                         /* by which they are sorted */
	char filter[FAY_TOP_INPUT];              /* names of rows that are shown have it */
	enum fay_top_input input;                /* what is being typed into `typed` */
	char typed[FAY_TOP_INPUT];
	char notice[256]; /* in place of the view's message */
};
/* FAY_E_REFUSED: nothing can be drawn on the terminal. */
int fay_top_screen_begin(struct fay_error *error);
/* The terminal is as before. May be called at any time. */
void fay_top_screen_end(void);
void fay_top_screen_draw(struct fay_top_screen *screen);
/* A key (getch(3)); -1: none was pressed. */
int fay_top_screen_key(void);
/* Rows that fit. */
size_t fay_top_screen_page(const struct fay_top_screen *screen);

/* --- input.c --- */

/* What is typed wakes who waits for something else. */
struct fay_top_watch {
	uint32_t word; /* changes when there is something to read (futex(2)) */
	uint32_t seen; /* its value when all was read */
	sem_t go_on;
	pthread_t thread;
};
int fay_top_watch_begin(struct fay_top_watch *watch, struct fay_error *error);
/* Now all has been read that was there before it was called. */
void fay_top_watch_seen(struct fay_top_watch *watch, uint32_t seen);
void fay_top_watch_end(struct fay_top_watch *watch);

/* --- keys.c --- */

/* What a key does; false: the end. */
bool fay_top_key(struct fay_top_screen *screen, int key);
/* Nothing is left to go back to. */
void fay_top_screen_forget(struct fay_top_screen *screen);

#endif
