/* SPDX-License-Identifier: MIT */
/*
 * The loader: finds functions in live processes and files, installs accepted probes at their
 * entries, removes them.
 *
 * fay_session_attach() takes a verdict, not bytes: nothing that was not accepted can be installed.
 * It checks the layout's SHA-256 against what it copied before the first patch.
 */
#ifndef FAY_LOADER_H
#define FAY_LOADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "fay/error.h"
#include "fay/event.h"
#include "fay/shm.h"
#include "fay/verify.h"

/* A USDT marker, as its note says, or a place that debug information tells
 * (fay_places_read_by()). Strings are owned by the target. */
struct fay_marker {
	const char *provider, *name;
	/* of a place that debug information tells: the function that the source has there. There
	 * may be any instruction, where a USDT marker is a nop. NULL: a USDT marker */
	const char *function;
	/* "8@%rax -4@12(%rsp)": GNU as operands with their sizes; "-" signed */
	const char *arguments;
	uint64_t address; /* virtual address in the object */
	/* likewise, of a 16-bit count that is not 0 while somebody traces; 0: none */
	uint64_t semaphore;
};

/* A function, or a marker, that a pattern matched. Strings are owned by the list's target or file.
 * */
struct fay_function {
	/* short name: "redis-server", "libc" (for libc.so.6), "libpthread-2.31" ... see
	 * docs/internals/loader.md */
	const char *module;
	const char *name;
	const char *path; /* of the object file */
	uint64_t address; /* in the process; in a file: virtual address in the object */
	uint64_t size;    /* bytes; from the symbol, else up to the next function; 0 unknown */
	/* NULL: a function. Else `name` is "provider:name", or the marker's function, `address` the
	 * marker's, `size` the bytes from there to its function's end */
	const struct fay_marker *marker;
	uint64_t start; /* of the function that the marker is in */
	/* has no symbol, only an entry in the unwind table; the name is made from the address
	 * (docs/internals/symbols.md) */
	bool unnamed;
	bool guessed; /* its symbol has no size: other code may lie in `size` */
};

struct fay_function_list {
	/* sorted by address, aliases (same address) folded to the first by name length, then
	 * alphabet */
	struct fay_function *items;
	size_t count;
};
void fay_function_list_deinit(struct fay_function_list *list);

/* Splits "module!function"; without '!' the module is "*". Globs are fnmatch(3)'s. Returns 0 or
 * FAY_E_USAGE. */
int fay_pattern_split(const char *pattern, char module[256], char function[256],
		      struct fay_error *error);

/* Whether programs on this machine can read the base of their fs segment (FSGSBASE), by which their
 * threads find what is theirs: no process can be attached to where they cannot. The kernel says so,
 * or, where a hypervisor enabled it and the kernel does not know, a child of ours tries. */
bool fay_reads_fs_base(void);

/* A process, or one object file, as a set of modules with symbols. Reading it stops nothing. */
struct fay_target;
int fay_target_open_pid(pid_t pid, struct fay_target **target, struct fay_error *error);
int fay_target_open_file(const char *path, struct fay_target **target, struct fay_error *error);
void fay_target_close(struct fay_target *target);
/* Forgets all but the names that fay_target_function_name() tells. */
void fay_target_forget(struct fay_target *target);
pid_t fay_target_pid(const struct fay_target *target);

/*
 * What is found out of files for one process, and used for others that have the same files, so that
 * they are attached to sooner. Nothing of it is taken for granted of a process. It outlives the
 * targets and sessions that use it, and so do the verdicts that these were attached with.
 */
struct fay_files;
int fay_files_create(struct fay_files **files, struct fay_error *error);
void fay_files_destroy(struct fay_files *files);
/* Right after the target was opened. */
void fay_target_share(struct fay_target *target, struct fay_files *files);

/*
 * Names as sources have them: whether `symbol` is called what `glob` matches there, "shop::Cart::add"
 * or "shop::Cart::add(int)". It is asked of patterns that have `::` or end with a bracket, and of a
 * plain name that no symbol has. Without a reader symbols are all that there is.
 */
typedef bool fay_names_reader(const char *glob, const char *symbol);
void fay_names_read_by(fay_names_reader *reader);

/*
 * Places of code that the debug information of a file tells, for patterns "module!@...", where
 * `text` is what stands behind the @:
 *
 *	line file.c:123            where statements of that line begin
 *	calls file.c:123           where the functions begin that these are in
 *	inlined name               where the copies of functions of that name begin; a glob, as of
 *				   functions, that `matches` knows
 *
 * and, behind a `;`, up to FAY_MARKER_OPERANDS words about variables, separated by commas: `name`
 * for the value that one has there, `&name` for the address at which it lies, `?name` for whether
 * it has a value there, `0#name` (or 1, 2; `0#&name`) for a word of the program that computes it.
 * Each place has an operand for each word, as a marker's note has its
 * arguments; one that is empty stands for a 0.
 *
 * What is said of a place is not believed: it is judged as any other place inside a function.
 */
struct fay_debug_place {
	uint64_t address; /* virtual address in the object */
	char *function;   /* that the source has there */
	char *arguments;  /* "4@%eax 8@16(%rsp)" */
};
/* What is in it is malloc'ed. */
struct fay_debug_places {
	struct fay_debug_place *items;
	size_t count;
};
void fay_debug_places_deinit(struct fay_debug_places *places);
/* FAY_E_REFUSED: nothing is known of the file. FAY_E_USAGE: there is no such place. fd stays the
 * caller's; `places` is released by the caller in any case. */
typedef int fay_places_reader(int fd, const char *path, const char *text,
			      bool (*matches)(const char *glob, const char *symbol),
			      struct fay_debug_places *places, struct fay_error *error);
void fay_places_read_by(fay_places_reader *reader);

/* All functions that match. No match is FAY_E_USAGE with "did you mean" suggestions (nearest names
 * by edit distance, and the modules there are). */
int fay_target_find(struct fay_target *target, const char *pattern, struct fay_function_list *list,
		    struct fay_error *error);

/* All USDT markers that "module!provider:name" matches, a place each, sorted by address, or the
 * places that "module!@..." is. No match: likewise, or what the places' reader says. */
int fay_target_find_markers(struct fay_target *target, const char *pattern,
			    struct fay_function_list *list, struct fay_error *error);

/* All functions that match, or the places that "module!@..." is. */
int fay_target_find_code(struct fay_target *target, const char *pattern,
			 struct fay_function_list *list, struct fay_error *error);

/* The object file that a found function is in, as it is mapped. */
struct fay_function_file {
	int fd;           /* the target's, open for reading while the target is */
	const char *path; /* the target's */
	uint64_t address; /* of the function, as a virtual address in the object */
	uint64_t offset;  /* of the function, in the file */
	uint8_t build_id[64];
	size_t build_id_size; /* 0: it has none */
	uint64_t device, inode;
};
/* false: the function is not of this target. */
bool fay_target_file_of(const struct fay_target *target, const struct fay_function *function,
			struct fay_function_file *file);

/* Where in the target's code an address is. */
struct fay_code_place {
	/* the target's. name: of the function; NULL: no symbol is known there */
	const char *module, *name;
	/* bytes from the function's start; without a name: the virtual address in the object */
	uint64_t offset;
};
/* A piece of code that is mapped from a file. */
struct fay_code_range {
	uint64_t start, end; /* addresses in the process */
	uint64_t bias;       /* address in the process - virtual address in the object */
	uint64_t device, inode;
	int fd; /* the target's, open for reading while the target is */
};
/* The target's ranges by number, in no order; `more` false: it has not so many. false: this one's
 * file cannot be read. */
bool fay_target_code(struct fay_target *target, size_t index, struct fay_code_range *range,
		     bool *more);
/* false: no module has code (data) there. A process that is gone is known by the files it had. */
bool fay_target_describe(struct fay_target *target, uint64_t address, struct fay_code_place *place);
bool fay_target_describe_data(struct fay_target *target, uint64_t address,
			      struct fay_code_place *place);
/* Whether both have the same files' code at the same addresses. */
bool fay_target_same_code(const struct fay_target *a, const struct fay_target *b);

/* The name of function or marker `hash` (fay_name_hash) that this target resolved; NULL unknown. */
const char *fay_target_function_name(const struct fay_target *target, uint64_t hash);

#define FAY_TIDS_MAX 16u
#define FAY_RING_BYTES_MAX (UINT64_C(64) << 20)
struct fay_attach_options {
	size_t size; /* sizeof(struct fay_attach_options) */
	/* threads that can have a slot at once over the session; 0: 4096 */
	uint32_t slot_max;
	/* give up if the target's threads cannot be stopped in this time; 0: 2000 */
	uint32_t stop_timeout_ms;
	/* wait for another tracer (another fay attaching) to let go; 0: 5000 */
	uint32_t tracer_wait_ms;
	/* this many functions with the same probes share one trampoline; 0: 256 */
	uint32_t shared_from;
	/* a pattern that matches nothing is passed over if another one matches */
	bool some;
	/*
	 * The process's other sessions of the same image: what is patched for them is left to them,
	 * and of modules that they have looked at nothing is looked for again, unless
	 * fay_sessions_drop_unloaded() has found them to be others by now.
	 */
	struct fay_session *const *beside;
	size_t beside_count;
	/* Only these threads of the process are traced, as /proc names them; at most FAY_TIDS_MAX.
	 * The others pass the trampolines and take no slot. */
	const pid_t *tids;
	size_t tid_count;   /* 0: all threads */
	const void *global; /* what GLOBAL holds at first; NULL: zeros */
	size_t global_size; /* bytes of it; what is more than the image's GLOBAL is left out */
	int64_t clock;      /* ns added to events' time: a clock other than this machine's */
	/* what a thread does whose ring has no room; FAY_FULL_OVERWRITE: of images without tables
	 * only */
	enum fay_when_full when_full;
	/* of each thread: a power of two from 4096 to FAY_RING_BYTES_MAX; 0: as the image needs it,
	 * 256 KiB at least */
	uint64_t ring_bytes;
	/* measure what the probes cost; each function then has a trampoline of its own */
	bool costs;
	/*
	 * The program waits, for a bounded time, whenever it has loaded or unloaded modules, until
	 * fay_session_modules_answer() is called: for the first of several sessions of a process,
	 * if its dynamic linker can be hooked (fay_session_unhooked()).
	 */
	bool modules;
	bool modules_alone; /* and the session is for that alone: it looks for no pattern */
	/* modules may be half-way through being loaded: those whose code the dynamic linker changes
	 * (text relocations) are left out */
	bool loading;
	/* find out what would be installed; the target is read, not stopped, and stays as it is */
	bool plan_only;
	/* Find out where the kernel may trap instead of points that cannot be patched
	 * (fay_session_trap()), at ends of functions with so many exits at most; 0: nowhere. If
	 * nothing can be patched and there are such places, there is a session, of which nothing is
	 * installed. */
	uint32_t traps;
	/* With `traps`, where something can be patched: once there are such places for more
	 * functions than so many, no further ones are looked for; 0: all are. */
	uint32_t trap_functions;
	/*
	 * No probe runs. At the places that probes are for the calls are counted, those of a
	 * function once, at its entry, and fay_session_costs() tells them, as with `costs`.
	 */
	bool counts_only;
	/* Is asked once, when it is known that something would be installed, before anything is:
	 * not FAY_OK: it is not, and this is the error. NULL: nobody is asked. */
	int (*permit)(void *context, pid_t pid, struct fay_error *error);
	void *permit_context;
	/*
	 * Called when it is planned what will be done, before anything is: fay_session_trap() has
	 * what this session cannot patch, as it most likely will be. Again, if it is planned again.
	 */
	void (*planned)(void *context, const struct fay_session *session);
	void *planned_context;
	/* Once it is not 0 nothing is installed any more, and who plans, or waits for another
	 * session of the process to have begun, ends: FAY_E_REFUSED. A signal handler may set it.
	 * NULL: nobody does. */
	const volatile int *given_up;
};

/* A point that could not be patched; the others are installed all the same. */
struct fay_skipped_point {
	char function[256]; /* module!name */
	char reason[256];   /* "is 3 bytes long, a jump needs 5" */
};

/* Where a marker's argument is when the marker is reached, as its note says. */
#define FAY_OPERAND_NO_REGISTER 0xffu
#define FAY_MARKER_OPERANDS 6u /* as many as event.arg has */

enum fay_operand_form {
	FAY_OPERAND_CONSTANT = 1, /* `value` */
	FAY_OPERAND_REGISTER,     /* base; its second byte if high_byte */
	FAY_OPERAND_MEMORY,       /* at value + base + index * scale */
	FAY_OPERAND_ADDRESS,      /* value + base + index * scale itself */
};

struct fay_operand {
	uint8_t form; /* enum fay_operand_form */
	uint8_t size; /* bytes: 1, 2, 4 or 8 */
	/* registers by their numbers, or FAY_OPERAND_NO_REGISTER; 1, 2, 4 or 8 */
	uint8_t base, index, scale;
	bool is_signed;
	bool high_byte; /* ah, ch, dh, bh */
	bool readable;  /* MEMORY without registers that the loader saw mapped: needs no care */
	int64_t value;
};

struct fay_trap;    /* fay/bpf.h: a point that the kernel may trap at instead */
struct fay_session; /* probes of one image installed in one process */

/*
 * Resolves each probe's pattern in the target, maps state and code, patches. All-or-nothing with
 * respect to errors: after a failure the target is as it was. Zero patchable points is a failure. A
 * kind or event field that cannot be served is FAY_E_REFUSED with its name.
 */
int fay_session_attach(struct fay_target *target, const struct fay_verdict *verdict,
		       const struct fay_attach_options *options, struct fay_session **session,
		       struct fay_error *error);
/* Restores every patched byte, unmaps what no thread can still reach. Safe if the target is gone
 * (says so through target_alive). Frees nothing of shm. */
int fay_session_detach(struct fay_session *session, struct fay_error *error);
/* All these sessions of one process in as few stops of it, and of each child that it has forked, as
 * one needs. After an error any of them may still be attached; it may be called again. */
int fay_sessions_detach(struct fay_session *const *sessions, size_t count, struct fay_error *error);
/* After it was detached: whether its memory stays mapped in the process, where a thread may still
 * be inside of it. fay_leftovers_remove() removes it when none is. */
bool fay_session_left_mapped(const struct fay_session *session);
/*
 * Runs the image's probes of this kind, FAY_PROBE_BEGIN or FAY_PROBE_END, in this process on the
 * session's state: once after attaching, once after detaching. In the same thread that polls the
 * aggregator.
 */
void fay_session_run(struct fay_session *session, uint32_t kind);
/* Runs the timer probes that are due, once for each period since the last time. */
void fay_session_tick(struct fay_session *session);
/* Detaches if still attached, unmaps shm, frees. */
void fay_session_destroy(struct fay_session *session);

/* Whether the program that was patched still runs: false after exit and after execve (the process
 * may then run another program). */
bool fay_session_target_alive(struct fay_session *session);
/* Whether any other process, a forked child of the target for one, still has the session's code
 * mapped. May look at every process. */
bool fay_session_in_use(struct fay_session *session);
/* Whether the process is a forked child that has the code of one of the sessions. */
bool fay_sessions_include(struct fay_session *const *sessions, size_t count, pid_t pid);
/* gone[i]: that the session's program does not run any more, and no other process has its code: it
 * is then as if detached. Looks at every process once, where the kernel does not tell. */
void fay_sessions_let_go(struct fay_session *const *sessions, size_t count, bool *gone);
/* Why the program does not wait when it loads modules, after fay_attach_options.modules; NULL: it
 * does. */
const char *fay_session_unhooked(const struct fay_session *session);
/* Whether the program waits because its modules have changed; *number is for the answer. What it
 * says may be untrue, as all that the program can write. */
bool fay_session_modules_asked(struct fay_session *session, uint32_t *number);
/* What came with its modules has been attached to: it goes on. */
void fay_session_modules_answer(struct fay_session *session, uint32_t number);
/* How often it went on without an answer. */
uint32_t fay_session_modules_late(const struct fay_session *session);
/*
 * All sessions of one process that have the same image forget their points in modules that are no
 * longer there, each in one stop if it has any, so that what is mapped in their place is not taken
 * for them.
 */
int fay_sessions_drop_unloaded(struct fay_session *const *sessions, size_t count,
			       struct fay_error *error);
/* false: all were dropped, and the session is of no use any more. */
bool fay_session_has_points(const struct fay_session *session);
/* A number that is another when modules were loaded or unloaded; 0: the process is gone or cannot
 * be looked into. */
uint64_t fay_process_modules(pid_t pid);
/* When the process began, in clock ticks since the machine was started (proc(5), field 22 of stat):
 * with its number it names one process only. 0: gone, or a zombie without other threads. */
uint64_t fay_process_start(pid_t pid);
/* Where the first thread's stack began when the program was started: forked children have it, too,
 * another program another one. 0: that is not known. */
uint64_t fay_process_stack_begin(pid_t pid);
/* The session's shared memory, mapped read-write here; valid until destroy. */
struct fay_shm_control *fay_session_shm(struct fay_session *session, size_t *size);
/* The image's GLOBAL, likewise; its bounds are the loader's own, not what the program may have
 * written over. */
void *fay_session_global(struct fay_session *session, size_t *size);
size_t fay_session_point_count(const struct fay_session *session);
const struct fay_function *fay_session_point(const struct fay_session *session, size_t index);
/* Whether it shares its trampoline with others. */
bool fay_session_point_is_shared(const struct fay_session *session, size_t index);
size_t fay_session_skipped_count(const struct fay_session *session);
const struct fay_skipped_point *fay_session_skipped(const struct fay_session *session,
						    size_t index);
/* With fay_attach_options.traps. */
size_t fay_session_trap_count(const struct fay_session *session);
const struct fay_trap *fay_session_trap(const struct fay_session *session, size_t index);
/*
 * What the probes at each point have cost the process's own threads since the session began; only
 * with fay_attach_options.costs. Numbers that the program can write over: good for deciding what to
 * leave out, not for more.
 */
struct fay_point_cost {
	uint64_t events;
	/* estimated: from those events that were timed, and a fixed amount for what the time stamps
	 * do not enclose */
	uint64_t nanoseconds;
	/* for the next call: events, and where calls have records also what begins and ends these;
	 * of the timed ones among them */
	uint64_t passes, cycles, timed;
	bool taken_out, fixed; /* fixed: cannot be, the runtime itself needs the place */
};
#define FAY_COSTS_MAX 32768u /* points of a session whose cost is measured */
/*
 * The points, and behind them functions without probes, in which watched calls go on or by which
 * they are left: their calls have records, too, and no events. fay_session_point(), _take_out(),
 * _put_back() and _comes_back() know them, too.
 */
size_t fay_session_cost_count(const struct fay_session *session);
/* Adds what came since the last call; `costs` is fay_session_cost_count() of them, zero at first.
 */
void fay_session_costs(struct fay_session *session, struct fay_point_cost *costs);
/* Of all of these together, as if they were one. */
void fay_session_cost_total(struct fay_session *session, struct fay_point_cost *cost);
/* Cycles that a timed event with no probe takes where all of it is in the caches, once costs were
 * asked for. */
uint64_t fay_session_stamp_cycles(const struct fay_session *session);
/* How long a cycle of struct fay_point_cost is. */
double fay_session_cycle_ns(const struct fay_session *session);
/*
 * Takes points out, in one stop: the program's bytes are put back there, the session goes on
 * without them. Calls that are under way there have no event at their end; calls of others that
 * jump there later end at the jump. An error means that some may still be in place.
 */
int fay_session_take_out(struct fay_session *session, const size_t *points, size_t count,
			 struct fay_error *error);
/*
 * Patches points again that were taken out, all in one stop, or none. Refused where anything is not
 * as it was when they were installed; where too many threads have records of calls
 * (docs/internals/returns.md); and of markers always: fay_session_comes_back() is false.
 */
int fay_session_put_back(struct fay_session *session, const size_t *points, size_t count,
			 struct fay_error *error);
bool fay_session_comes_back(const struct fay_session *session, size_t point);
/* Nanoseconds of processor time that a process has used, all its threads; 0: it is gone. */
uint64_t fay_process_cpu_ns(pid_t pid);

/* Sessions whose code lies in a process, whoever installed them. */
enum fay_owner_state {
	/* it was killed, or died; the session goes on until fay_leftovers_remove() */
	FAY_OWNER_DEAD,
	/* it ran in another PID namespace, and what would tell is not there or may not be looked at
	 * */
	FAY_OWNER_UNKNOWN,
	FAY_OWNER_LIVES,
};
struct fay_installed_session {
	uint64_t id;
	pid_t owner;              /* the fay that installed it, as it sees itself */
	uint64_t owner_namespace; /* its PID namespace's inode; 0: that of this process */
	enum fay_owner_state owner_state;
	size_t points; /* patched entries that lead to it; 0: only waits for threads to leave */
};
struct fay_installed_sessions {
	struct fay_installed_session *items;
	size_t count;
	size_t foreign; /* zones of a fay of another version, which only such a one can remove */
};
int fay_installed_sessions(pid_t pid, struct fay_installed_sessions *list, struct fay_error *error);
void fay_installed_sessions_deinit(struct fay_installed_sessions *list);
/*
 * Removes the sessions of fays that are gone: bytes back, memory unmapped. `unknown`: also those of
 * fays of which that cannot be told. `kept`: those whose memory a thread may still be inside of.
 */
int fay_leftovers_remove(pid_t pid, bool unknown, size_t *removed, size_t *kept,
			 struct fay_error *error);

/* How an accepted image's probes are run at the places that they are for: in whatever process, the
 * same. */
struct fay_dispatch {
	/* into each trampoline; otherwise the probe's code is called */
	bool inlined[FAY_IMAGE_MAX_PROBES];
	/* up to where a seldom condition leads behind the copy, which is called */
	bool leaves[FAY_IMAGE_MAX_PROBES];
	/* bytes of code that are copied: none if the probe is called, or does nothing */
	uint32_t size[FAY_IMAGE_MAX_PROBES];
	/* without a guard against reentrance, which no probe of the image needs */
	bool unguarded;
};
void fay_dispatch_choose(const struct fay_verdict *verdict, struct fay_dispatch *dispatch);
/* Functions whose trampoline is shared with others; the rest have one of their own. */
size_t fay_session_shared_points(const struct fay_session *session);
/* Nanoseconds for which the target was stopped, longest single pause; for --timing. */
uint64_t fay_session_longest_pause(const struct fay_session *session);

/* Verified probes over events from elsewhere, in this process; replay.c. Rows are those of states:
 * of tables with their tag, cells, streams. */
struct fay_replay;
typedef void fay_replay_row(void *context, uint32_t state, const uint8_t *row);
/* What fay_try_read() does in the probes: `size` bytes, at most FAY_TRY_READ_MAX, of what is said
 * to lie at `address`; false: nothing does. */
typedef bool fay_replay_read(void *context, void *to, uint64_t size, uint64_t address);
/* The verdict must outlive the replay. `read` NULL: nothing can be read, since no program is
 * there. */
int fay_replay_create(const struct fay_verdict *verdict, fay_replay_row *take,
		      fay_replay_read *read, void *context, struct fay_replay **replay,
		      struct fay_error *error);
void fay_replay_destroy(struct fay_replay *replay);
/* `probe` is a number of the verdict's; others do nothing. */
void fay_replay_event(struct fay_replay *replay, uint32_t probe, const struct fay_event *event);
/* Hands on what the states hold. */
void fay_replay_end(struct fay_replay *replay);

#endif
