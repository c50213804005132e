/* SPDX-License-Identifier: MIT */
/*
 * Other processes, as fay and its agents meet them: found by name, started and stopped before their
 * first instruction, followed over forks and execs, their code named by address, their stacks made
 * walkable, and cleaned of what traces that were killed left there.
 */
#ifndef FAY_PROCESS_H
#define FAY_PROCESS_H

#include <dirent.h>
#include <regex.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "fay/error.h"
#include "fay/kernel.h"
#include "fay/loader.h"
#include "fay/stacks.h"

#define FAY_TARGETS_MAX 256u /* processes that one trace attaches to */

/* --- demangle.c: C++ and Rust --- */

/* What a symbol is called in its source, with its arguments: "shop::Cart::add(int)". malloc'ed.
 * NULL: it is another language's, or too intricate. */
char *fay_demangled(const char *symbol);
/* demangle_rust.c: the same of a symbol `_R...`; the escapes of older names (`$LT$`) as what they
 * stand for. */
char *fay_demangled_rust(const char *symbol);
void fay_demangled_unescape(char *text);
/* Where the name ends in such a text, and its arguments begin. */
size_t fay_demangled_end(const char *text);
/* Whether it is called what the glob matches, with its arguments or without: a fay_names_reader. */
bool fay_demangled_matches(const char *glob, const char *symbol);

/* --- find.c, spawn.c, entry.c: finding and starting --- */

/* The next process of /proc, which is open, or NULL; false: there is no more. */
bool fay_process_next(DIR *proc, pid_t *pid);
/* The name of its first thread; false: it is gone. */
bool fay_process_name(pid_t pid, char comm[FAY_COMM_SIZE]);
/* The line of /proc/PID/status that begins with `key`; pid 0: of the calling process. */
bool fay_process_status(pid_t pid, const char *key, char line[128]);
/* The process that a thread is in; 0: there is no such thread. */
pid_t fay_process_of_thread(pid_t tid);
/* Who holds the process by ptrace; 0: nobody. */
pid_t fay_process_tracer(pid_t pid);
/* Appends the ids of the processes that fit, `max` at most, ended ones (zombies) left out. Returns
 * how many there are. */
size_t fay_process_find(bool (*fits)(const void *context, pid_t pid), const void *context,
			pid_t *pids, size_t max);
/* The same: those whose thread name is `comm`, but not the caller's own. */
size_t fay_process_find_comm(const char *comm, pid_t *pids, size_t max);
/* How many children the process has now, without those that have ended and the caller. */
size_t fay_process_children(pid_t parent);
/* A zombie, or gone. */
bool fay_process_has_ended(pid_t pid);

/* --- select.c --- */

/* Which processes: those of which all holds that is given; what is NULL is not. */
struct fay_selection {
	const char *cmdline; /* a regular expression (POSIX, extended) in the command line */
	const char *user;    /* name or number */
	/* a path of cgroups, with what is below it; without `/` a glob of one part of it */
	const char *cgroup;
	const char *const *comms; /* one of these names, if there are any */
	size_t comm_count;
	regex_t expression;
	uid_t uid;
};
bool fay_selection_is_given(const struct fay_selection *selection);
/* FAY_E_USAGE: what is given means nothing. */
int fay_selection_init(struct fay_selection *selection, struct fay_error *error);
/* As fay_process_find(); neither the caller nor its parents. */
size_t fay_selection_find(const struct fay_selection *selection, pid_t *pids, size_t max);

/*
 * Starts a command and stops it at its executable's first instruction: the dynamic loader has
 * mapped and relocated everything, main has not run. The process is left in a group stop for the
 * session to attach to; kill(pid, SIGCONT) lets it go.
 */
int fay_process_spawn(char **command, pid_t *pid, struct fay_error *error);
/* The same, stopped before its first instruction of all, the dynamic loader's. */
int fay_process_spawn_early(char **command, pid_t *pid, struct fay_error *error);
/* Lets such a command go, and calls `look` on the way, when it has come to its entry point. */
void fay_process_start_early(pid_t pid, void (*look)(void *context, pid_t pid), void *context);

/* entry.c: runs a tracee of the caller's, stopped behind its execve, to its program's entry point.
 * */
int fay_process_run_to_entry(pid_t pid, struct fay_error *error);

/* --- described.c: the file that a query's types come from --- */

struct fay_described {
	struct fay_function_file file; /* fd and path are not valid any more */
	char pattern[256];             /* of the function; "": there is none */
};
bool fay_same_build(const struct fay_function_file *a, const struct fay_function_file *b);
/* FAY_E_REFUSED: the process has another build of the file. */
int fay_described_check(const struct fay_described *described, struct fay_target *target,
			struct fay_error *error);

/* --- addresses.c: where code addresses are --- */

/* How a code address is written. */
enum fay_address_form {
	FAY_ADDRESS_READABLE = 1, /* for people */
	FAY_ADDRESS_EXACT = 2,    /* it is an instruction's own, not what a call returns to */
	FAY_ADDRESS_BARE = 4,     /* the function's name alone: flame graphs */
	FAY_ADDRESS_KERNEL = 8,
};
#define FAY_ADDRESSES_KNOWN 4096u
struct fay_addresses {
	struct fay_target **snapshots; /* processes, as they were mapped */
	size_t count;
	/* once some address of the kernel's was asked for; none if they are hidden */
	struct fay_kernel_symbols kernel;
	bool kernel_read;
	struct {
		uint64_t address;
		bool exact;
		struct fay_code_place place; /* module NULL: not known */
	} known[FAY_ADDRESSES_KNOWN];        /* what was looked up last */
};
/* What the process has mapped now; quietly nothing if it is gone, or has what another one has. */
void fay_addresses_take(struct fay_addresses *addresses, pid_t pid);
void fay_addresses_deinit(struct fay_addresses *addresses);
/* Where an address is, of which `form` says EXACT and KERNEL; module NULL: not known. Valid until
 * the next call. */
const struct fay_code_place *fay_addresses_place(struct fay_addresses *addresses, uint64_t address,
						 unsigned form);

/* --- stacks.c: what probes walk the stacks of traced processes by, made of the unwind tables of
 * their modules --- */

/* Files that were read; zero at first. */
struct fay_stacks {
	struct fay_stacks_file *files;
	size_t count;
	struct fay_stacks_file *kernel; /* the object that the kernel gives to each process */
	size_t left_out;                /* mappings for which there was no room */
};
void fay_stacks_deinit(struct fay_stacks *stacks);
/* Fills the tables, zero at first, for what the process has mapped; again: for what it has mapped
 * by now. */
void fay_stacks_fill(struct fay_stacks *stacks, struct fay_target *target,
		     struct fay_stack_tables *tables);
/* Tables of malloc(3) for a session that is about to be attached to the process, into `options`. */
int fay_stacks_make(struct fay_stacks *stacks, struct fay_target *target,
		    struct fay_attach_options *options, struct fay_stack_tables **tables,
		    struct fay_error *error);
/* Brings a session's tables up to date while its probes run: the process has loaded modules. */
void fay_stacks_renew(struct fay_stacks *stacks, struct fay_target *target,
		      struct fay_stack_tables *tables, struct fay_session *session);

/* --- follow.c: a process of ours holds others by ptrace, to learn of their forks and execs --- */

struct fay_follow {
	pid_t follower;     /* 0: not following */
	int orders, events; /* pipes */
	/* another number once the follower has written an event, who then wakes those that wait for
	 * that (futex(2)); NULL: not following. And what it was before events were last read. */
	uint32_t *told, seen;
	bool ended; /* no process is left to follow */
	bool holds; /* fay_follow_hold() */
	struct fay_followed {
		pid_t pid;
		/* it has been forked by that process, and waits at its first instruction; 0: it
		 * runs another program, and waits before its main */
		pid_t parent;
	} kept[64]; /* events not told yet */
	size_t kept_count;
};

int fay_follow_start(struct fay_follow *follow, struct fay_error *error);
void fay_follow_take(struct fay_follow *follow, pid_t pid);
/* Instead of taking one that fay_follow_next() has told, or that was released. Of one that was
 * forked, always: it is followed already. */
void fay_follow_leave(struct fay_follow *follow, pid_t pid);
/* Returns when nobody holds it any more. An event that comes meanwhile is kept for
 * fay_follow_next(). */
void fay_follow_release(struct fay_follow *follow, pid_t pid);
/* Takes one that was released; returns when it is held, with the children that it has by then. */
void fay_follow_retake(struct fay_follow *follow, pid_t pid);
/* From now on processes that are forked, with memory of their own, are told by fay_follow_next(),
 * too, and wait. */
void fay_follow_hold(struct fay_follow *follow);
/* The next process that runs another program, or was forked; false: none now. */
bool fay_follow_next(struct fay_follow *follow, struct fay_followed *followed);
/* Lets all go. */
void fay_follow_end(struct fay_follow *follow);

/* --- leftovers.c: fay's code in processes --- */

struct fay_leftovers {
	/* sessions: of a fay that runs; of one that is gone; of one of which that cannot be told */
	size_t traced, abandoned, unknown;
	char abandoned_in[160], unknown_in[160]; /* " 12 13": the processes */
	struct fay_leftover {
		pid_t pid;
		/* has code of a fay of another version, whose sessions are not known */
		bool foreign;
		struct fay_installed_session session;
	} *items; /* count of them */
	size_t count;
};
/* Of all processes that can be looked into. */
void fay_leftovers_find(struct fay_leftovers *all);
void fay_leftovers_deinit(struct fay_leftovers *all);
/* Removes what is abandoned, everywhere; says on standard error what was done. */
int fay_leftovers_clean(void);
/* The same of one process, said in `messages`. `unknown`: also what is of a fay of which it cannot
 * be told whether it runs; else that is said. */
int fay_leftovers_clean_pid(pid_t pid, bool unknown, FILE *messages, struct fay_error *error);

/* --- printable.c: what others' names would do to a terminal --- */

/* In place, each byte that a terminal would not show as it is becomes `?`; the same,
 * written. */
void fay_printable(char *text);
void fay_printable_put(FILE *out, const char *text);
/* A JSON string of so many bytes, or of those up to a NUL. */
void fay_json_string(FILE *out, const char *bytes, size_t size);
/* Likewise behind what is to stand before it; NULL: null. */
void fay_json_text(FILE *out, const char *before, const char *text);
/* Is called before something is written to standard error; NULL. */
extern void (*fay_messages_before)(void);
/* From now on standard error passes such a filter, which lets lines and tabulators through. */
void fay_messages_guard(void);

#endif
